"""Uploaded bytes become text, or one sentence says why not."""

from __future__ import annotations

import pytest

from models.errors import BadInput
from models.inputs.text import decode_text, listed, read_rows, shown


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_accepted_encodings_give_the_same_text(encoding: str) -> None:
    assert decode_text("naïve, œuf\n".encode(encoding), "text") == "naïve, œuf\n"


def test_big_endian_utf16_with_byte_order_mark() -> None:
    assert decode_text(b"\xfe\xff" + "é".encode("utf-16-be"), "text") == "é"


def test_latin1_names_line_byte_and_remedy() -> None:
    with pytest.raises(
        BadInput, match=r"not UTF-8 .*line 2 holds the byte 0xE9.*save it"
    ) as caught:
        decode_text("a,b\né,1".encode("latin-1"), "a CSV")
    assert caught.value.field == "data"


def test_truncated_utf16_is_named() -> None:
    with pytest.raises(BadInput, match="not UTF-16"):
        decode_text("ab".encode("utf-16")[:-1], "a CSV")


@pytest.mark.parametrize(
    "content",
    [b"a\0b", b"PK\x03\x04\0\0\xff", "a,b\n1,2".encode("utf-16-le"), b"\xff\xfe\0\0a\0\0\0"],
)
def test_binary_is_named(content: bytes) -> None:
    with pytest.raises(BadInput, match=r"binary data.*bring a CSV, saved as UTF-8"):
        decode_text(content, "a CSV")


@pytest.mark.parametrize("content", [b"", b" \r\n\t\n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_empty_says_what_to_bring(content: bytes) -> None:
    with pytest.raises(BadInput, match=r"file is empty; bring a CSV"):
        decode_text(content, "a CSV")


class Unread(bytes):
    """A file that nobody may read."""

    def decode(self, *_: object) -> str:
        raise AssertionError("it was read")


def test_fifty_megabytes_are_refused_unread() -> None:
    with pytest.raises(BadInput, match=r"50\.0 MB; at most 20 MB"):
        read_rows(Unread(50_000_000), "a CSV", 9)


def test_twenty_megabytes_are_not_too_many() -> None:
    assert len(decode_text(b"x" * 20_000_000, "text")) == 20_000_000


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_delimiters_blank_lines_and_quotes(mark: str) -> None:
    rows = read_rows(f'\na{mark}"b{mark}""c"""\r\n\r\n 1 {mark}2\r'.encode(), "a CSV", 9)
    assert rows.cells == [["a", f'b{mark}"c"'], ["1", "2"]]
    assert rows.lines == [2, 4]


def test_decimal_commas_only_beside_semicolons() -> None:
    assert read_rows(b"0,5;1", "a CSV", 9).number("0,5") == 0.5
    assert read_rows(b"a\tb", "a CSV", 9).number("0,5") is None


def test_underscores_and_words_are_not_numbers() -> None:
    rows = read_rows(b"a,b", "a CSV", 9)
    assert [rows.number(cell) for cell in ["1_000", "one", ""]] == [None] * 3


@pytest.mark.parametrize("content", [b'a,"b\n1,2\n', b'a,"b"c\n', b"a," + b"x" * 200_000])
def test_invalid_csv_names_the_line(content: bytes) -> None:
    with pytest.raises(BadInput, match=r"Line \d+ is not valid CSV"):
        read_rows(content, "a CSV", 9)


def test_only_delimiters() -> None:
    with pytest.raises(BadInput, match=r"only delimiters; bring a CSV"):
        read_rows(b",,\n,\n", "a CSV", 9)


def test_what_people_wrote_is_shown_short_and_safe() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown("x" * 1000)) == 32
    assert listed([str(i) for i in range(10)], 2) == "'0', '1' and 8 more"


def test_reading_stops_after_too_many_rows() -> None:
    broken_later = b"1,2\n" * 102 + b'"a"b\n'
    with pytest.raises(BadInput, match=r"more than 100 rows; bring at most 100"):
        read_rows(broken_later, "a CSV", 100)
    assert len(read_rows(b"a\n" + b"1\n" * 100, "a CSV", 100).cells) == 101
