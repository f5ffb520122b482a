"""NaNatomy: why gradients become NaN, and what really mends them."""

from components import home
from components.page import begin_page

begin_page("Home")
home.show()
