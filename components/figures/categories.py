"""Things that are told apart by name: a colour and a mark each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..palette import Palette

SYMBOLS = (
    "x-thin", "triangle-up", "circle-open", "square-open", "diamond-open", "cross-thin", "asterisk",
)  # fmt: skip
GLYPHS = ("×", "▲", "○", "□", "◇", "+", "∗")
MOST = len(SYMBOLS)


@dataclass(frozen=True)
class Category:
    """The last of `MOST` stands for all that follow, too."""

    name: str
    colour: str
    symbol: str
    glyph: str


def categories(names: tuple[str, ...], colours: Palette) -> list[Category]:
    """At most `MOST` of them."""
    chosen = list(names[:MOST])
    if len(names) > MOST:
        chosen[-1] = f"{len(names) - MOST + 1} others"
    return [
        Category(name, colours.kinds[i], SYMBOLS[i], GLYPHS[i]) for i, name in enumerate(chosen)
    ]


def kind_scale(kinds: list[Category]) -> dict[str, Any]:
    """Plotly's colour axis: a flat band for each, for z from 0 to len(kinds) − 1."""
    count = max(len(kinds), 1)
    scale = [[edge / count, kind.colour] for i, kind in enumerate(kinds) for edge in (i, i + 1)]
    parts = {"colorscale": scale} if scale else {}
    return {"cmin": -0.5, "cmax": count - 0.5, "showscale": False, **parts}


def name_of_set(names: tuple[str, ...]) -> str:
    """A set of parameters in a few words: `W1, b1`, or `encoder.Wz … encoder.bh (9)`."""
    if not names:
        return "none: the loss alone"
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"
