"""Points x, y from a CSV: what is read, and what is refused with which facts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import BadInput
from models.inputs.points import Points, read_points


def lines(count: int = 10, **changes: str) -> bytes:
    """Lines `i,i²`; `line7="…"` replaces line 7."""
    texts = [f"{i},{i * i}" for i in range(count)]
    for place, text in changes.items():
        texts[int(place.removeprefix("line")) - 1] = text
    return "\n".join(texts).encode()


@pytest.mark.parametrize("header", ["", "x,y\n", "time,height\n", "\n\n"])
def test_header_is_optional(header: str) -> None:
    points = read_points(header.encode() + lines())
    np.testing.assert_array_equal(points.x, np.arange(10.0))
    np.testing.assert_array_equal(points.y, np.arange(10.0) ** 2)
    assert points.x.dtype == points.y.dtype == np.float64


def test_sorted_by_x_with_equal_x_in_their_order() -> None:
    points = read_points(b"3,1\n1,2\n2,3\n1,4\n3,5\n0,6\n1,7\n-1,8\n")
    assert points.x.tolist() == [-1, 0, 1, 1, 1, 2, 3, 3]
    assert points.y.tolist() == [8, 6, 2, 4, 7, 3, 1, 5]


def test_semicolons_with_decimal_commas() -> None:
    points = read_points("\n".join(f"0,{i};{i},5" for i in range(1, 9)).encode())
    np.testing.assert_allclose(points.x, np.arange(1, 9) / 10)
    np.testing.assert_allclose(points.y, np.arange(1, 9) + 0.5)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"", ["empty", "two columns, x and y"]),
        (b"x,y\n", ["0 points", "between 8 and 2000"]),
        (b"1,2\n", ["1 point;", "between 8 and 2000"]),
        (lines(7), ["7 points", "between 8 and 2000"]),
        (lines(2001), ["2001 points", "between 8 and 2000"]),
        (lines(2002), ["more than 2000 rows", "at most 2000"]),
        (lines(line3="2,high"), ["Line 3", "column y", "'high'", "finite number"]),
        (lines(line1="x,0"), ["Line 1", "column x", "'x'"]),
        (lines(line4="nan,1"), ["Line 4", "column x", "'nan'", "remove the line"]),
        (lines(line4="3,-inf"), ["Line 4", "column y", "'-inf'"]),
        (lines(line4="3,"), ["Line 4", "column y", "an empty cell"]),
        (lines(line4="3,1e39"), ["Line 4", "'1e39'", "3.4e+38"]),
        (lines(line5="1,2,3"), ["Line 5 has 3 columns", "two, x and y"]),
        (lines(line5="1"), ["Line 5 has 1 column;", "two, x and y"]),
        (b"1 2\n" * 9, ["Line 1 has 1 column", "comma, semicolon or tab"]),
        (b"2.5,1\n" * 9, ["Every x is 2.5", "different x"]),
        (b"\x89PNG\0", ["binary"]),
        (bytes(50_000_000), ["50.0 MB; at most 20 MB"]),
        (lines(line1="höhe,zeit").decode().encode("latin-1"), ["not UTF-8", "0xF6"]),
    ],
)
def test_bad_points_name_place_and_remedy(content: bytes, facts: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_points(content)
    assert caught.value.field == "data"
    for fact in facts:
        assert fact in caught.value.sentence


def check_invariants(points: Points) -> None:
    assert points.x.shape == points.y.shape
    assert 8 <= len(points.x) <= 2000
    assert (np.diff(points.x) >= 0).all()
    assert points.x[0] < points.x[-1]
    assert np.isfinite([points.x.astype(np.float32), points.y.astype(np.float32)]).all()


def attempt(content: bytes) -> Points | BadInput:
    try:
        return read_points(content)
    except BadInput as error:
        return error


def read_or_refuse(content: bytes) -> None:
    result = attempt(content)
    if isinstance(result, BadInput):
        assert result.sentence.endswith(".")
    else:
        check_invariants(result)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    read_or_refuse(content)


@given(
    st.lists(
        st.lists(
            st.one_of(st.floats().map(repr), st.sampled_from(["", "x", "0,5", '"'])),
            min_size=1,
            max_size=3,
        ),
        max_size=12,
    ),
    st.sampled_from([",", ";", "\t"]),
)
def test_any_csv_is_read_or_refused(rows: list[list[str]], mark: str) -> None:
    read_or_refuse("\n".join(mark.join(cells) for cells in rows).encode())


@given(
    st.lists(
        st.tuples(*[st.floats(-1e38, 1e38)] * 2),
        min_size=8,
        max_size=60,
        unique_by=lambda point: point[0],
    )
)
def test_written_points_come_back_exactly_and_sorted(points: list[tuple[float, float]]) -> None:
    read = read_points("\n".join(f"{x!r},{y!r}" for x, y in points).encode())
    assert list(zip(read.x, read.y, strict=True)) == sorted(points)
