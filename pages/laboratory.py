"""Laboratory: train a scenario, turn its knobs, watch its gradients."""

from components import laboratory
from components.page import begin_page

begin_page("Laboratory")
laboratory.show()
