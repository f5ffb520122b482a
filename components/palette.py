"""Colours and marks of the figures, for Streamlit's light and dark theme.

Zero, finite magnitudes, Inf and NaN stay apart for colour-blind eyes and in grey print (smallest
CIELAB distance above 20 under protan, deutan and tritan simulation). Each state has a mark of its
own besides, so that none is told by colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Colours as `#RRGGBB`.

    Attributes:
        finite: blue sequence from the smallest to the largest magnitude.
        broken: sequence from what broke at once to what broke late; clear of the blues.
        kinds: of things that are told apart by name; each has a mark of its own besides.
        mark: of the marks drawn on a state's colour, in the order of `STATES`.
        series: for curves; more curves than colours differ by their dash.
        band: of a shaded range behind curves, with its opacity in the last two digits.
        muted: of annotations beside the data.
        edge: of lines drawn over the data, and `paper` of the rim that sets them off.
    """

    finite: tuple[str, ...]
    broken: tuple[str, ...]
    kinds: tuple[str, ...]
    zero: str
    subnormal: str
    inf: str
    nan: str
    mark: tuple[str, ...]
    series: tuple[str, ...]
    band: str
    muted: str
    edge: str
    paper: str

    def states(self) -> tuple[str, ...]:
        """Colours in the order of `STATES`."""
        return (self.zero, self.subnormal, self.inf, self.inf, self.nan)


@dataclass(frozen=True)
class State:
    """What a cell can be besides an ordinary finite number.

    Attributes:
        symbol: Plotly's name for the mark.
        glyph: the same mark as a character, for text.
    """

    name: str
    symbol: str
    glyph: str


STATES = (
    State("all zero", "circle-open", "○"),
    State("subnormal", "diamond", "◆"),
    State("−Inf", "triangle-down", "▼"),
    State("+Inf", "triangle-up", "▲"),
    State("NaN", "x-thin", "×"),
)

LIGHT = Palette(
    finite=("#9DBBFF", "#648FFF", "#0D1F66"),
    broken=("#A3195B", "#DC267F", "#FFB000"),
    kinds=("#DC267F", "#FFB000", "#7A1F3D", "#FF8A5C", "#8A6D00", "#B07AA1", "#8A8F99"),
    zero="#D9D9D9",
    subnormal="#7A4514",
    inf="#FFB000",
    nan="#DC267F",
    mark=("#6B7280", "#FFFFFF", "#3D2A00", "#3D2A00", "#FFFFFF"),
    series=("#2F5BD8", "#B8860B", "#7A1F3D", "#8A8F99", "#102A6B", "#6B4E00"),
    band="#2E9E781F",
    muted="#6B7280",
    edge="#10141C",
    paper="#FFFFFF",
)

DARK = Palette(
    finite=("#2F52BE", "#6C94FF", "#DCE8FF"),
    broken=("#A3195B", "#DC267F", "#FFB000"),
    kinds=("#DC267F", "#FFB000", "#7A1F3D", "#FF8A5C", "#8A6D00", "#B07AA1", "#8A8F99"),
    zero="#2B2F38",
    subnormal="#7F4C1B",
    inf="#FFB000",
    nan="#DC267F",
    mark=("#8E97A6", "#FFFFFF", "#3D2A00", "#3D2A00", "#FFFFFF"),
    series=("#7FA2FF", "#E8A33D", "#37D6A0", "#DADFE8", "#8E97A6", "#B08D57"),
    band="#37D6A01F",
    muted="#8E97A6",
    edge="#FFFFFF",
    paper="#10141C",
)


def palette(dark: bool) -> Palette:
    return DARK if dark else LIGHT
