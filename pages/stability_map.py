"""Stability map: where in the space of settings training stays finite."""

from components import stability_map
from components.page import begin_page

begin_page("Stability map")
stability_map.show()
