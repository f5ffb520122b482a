"""The palette seen through simulated colour-blind eyes, computed here from published matrices.

Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB; CIELAB with D65; CIE 1976 ΔE.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from components.palette import DARK, LIGHT, STATES, Palette, palette

EYES = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
PAGE = {id(LIGHT): "#FFFFFF", id(DARK): "#10141C"}  # backgroundColor in .streamlit/config.toml
both = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
each_eye = pytest.mark.parametrize("eye", EYES)


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour: str, eye: str) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(np.asarray(EYES[eye]) @ linear(colour), 0, 1)
    ratio = xyz / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str, eye: str) -> float:
    return float(np.linalg.norm(lab(one, eye) - lab(other, eye)))


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    light = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def sequence(colours: Palette, count: int = 21) -> list[str]:
    """Colours along the finite scale, as Plotly interpolates: linearly in sRGB."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours.finite])
    at = np.linspace(0, len(stops) - 1, count)
    rgb = np.array([np.interp(at, range(len(stops)), stops[:, i]) for i in range(3)]).T
    return ["#{:02X}{:02X}{:02X}".format(*np.round(row).astype(int)) for row in rgb]


def test_lab_of_known_colours() -> None:
    np.testing.assert_allclose(lab("#FFFFFF", "normal"), [100, 0, 0], atol=0.01)
    np.testing.assert_allclose(lab("#FF0000", "normal"), [53.24, 80.09, 67.20], atol=0.02)


@both
@each_eye
def test_states_keep_apart(colours: Palette, eye: str) -> None:
    flat = [colours.zero, colours.subnormal, colours.inf, colours.nan]
    assert min(distance(a, b, eye) for a, b in combinations(flat, 2)) >= 20


@both
@each_eye
def test_no_finite_magnitude_looks_like_a_state(colours: Palette, eye: str) -> None:
    flat = [colours.zero, colours.subnormal, colours.inf, colours.nan]
    assert min(distance(blue, s, eye) for blue in sequence(colours) for s in flat) >= 20


@both
@each_eye
def test_the_finite_scale_runs_one_way_in_lightness(colours: Palette, eye: str) -> None:
    lightness = [lab(colour, eye)[0] for colour in sequence(colours)]
    steps = np.diff(lightness)
    assert np.all(steps > 0) or np.all(steps < 0)
    assert abs(lightness[-1] - lightness[0]) > 45


@both
@each_eye
def test_series_keep_apart(colours: Palette, eye: str) -> None:
    assert min(distance(a, b, eye) for a, b in combinations(colours.series, 2)) >= 20


@both
def test_marks_stand_out_from_their_state_and_curves_from_the_page(colours: Palette) -> None:
    for mark, colour in zip(colours.mark, colours.states(), strict=True):
        assert contrast(mark, colour) >= 3
    for colour in (*colours.series, colours.muted):
        assert contrast(colour, PAGE[id(colours)]) >= 3


def test_each_state_has_a_mark_of_its_own() -> None:
    assert len({state.symbol for state in STATES}) == len(STATES)
    assert len({state.glyph for state in STATES}) == len(STATES)
    assert palette(True) is DARK
    assert palette(False) is LIGHT
