"""Story: a scenario told in a few screens, with a real run behind each."""

from components import story
from components.page import begin_page

begin_page("Story")
story.show()
