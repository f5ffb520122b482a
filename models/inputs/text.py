"""What a person uploads, as text and rows of cells, or refused in one sentence."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from ..errors import BadInput

FIELD = "data"
MAX_MEGABYTES = 20
# A larger cell would already be Inf when it enters a float32 network.
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Rows:
    """The records of a CSV file: `cells[i]` stands on line `lines[i]` of the file (counted from 1).

    Lines without any content are left out. Cells carry no surrounding blanks. `decimal_comma` is
    true for files delimited by semicolons, where 0,5 is a number.
    """

    cells: list[list[str]]
    lines: list[int]
    decimal_comma: bool

    def number(self, cell: str) -> float | None:
        """The cell's value, which may be NaN or infinite; None if it is not a number."""
        if self.decimal_comma:
            cell = cell.replace(",", ".")
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return None


def decode_text(content: bytes, expected: str) -> str:
    """Text of an uploaded file: UTF-8 with or without byte order mark, or UTF-16 with one.

    `expected` completes the sentence "bring …". Raises BadInput for a file that is empty, larger
    than 20 MB (looked at first, without reading the rest), binary, or in another encoding.
    """
    if len(content) > MAX_MEGABYTES * 1e6:
        raise BadInput(
            f"The file has {len(content) / 1e6:.1f} MB; at most {MAX_MEGABYTES} MB can be "
            "read, so bring fewer rows.",
            FIELD,
        )
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        if b"\0" in content and not utf16:
            raise _binary(expected) from None
        raise BadInput(
            f"The file is not {'UTF-16' if utf16 else 'UTF-8'} text (line {line} holds the byte "
            f"0x{content[error.start]:02X}); save it in the encoding UTF-8.",
            FIELD,
        ) from None
    if "\0" in text:
        raise _binary(expected)
    if not text.strip():
        raise BadInput(f"The file is empty; bring {expected}.", FIELD)
    return text


def read_rows(content: bytes, expected: str, most: int) -> Rows:
    """Cells of an uploaded CSV file, delimited by tabs, semicolons or commas.

    `most` rows may stand below a header. Raises BadInput for what `decode_text` refuses, for more
    rows (without reading on) and for broken quotes.
    """
    text = decode_text(content, expected)
    first = next(line for line in text.splitlines() if line.strip())
    # Only a comma also occurs inside numbers, so it counts when neither of the others is there.
    delimiter = next((mark for mark in "\t;" if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = Rows([], [], decimal_comma=delimiter == ";")
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                if len(rows.cells) > most:
                    raise too_many("rows", most)
                rows.cells.append(cells)
                rows.lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(
            f"Line {reader.line_num} is not valid CSV ({error}); "
            'put quotes around whole cells only and write a quote inside a cell as "".',
            FIELD,
        ) from None
    if not rows.cells:
        raise BadInput(f"The file holds only delimiters; bring {expected}.", FIELD)
    return rows


def shown(text: str, longest: int = 30) -> str:
    """Quoted for a sentence, shortened, with control characters made visible."""
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")


def listed(texts: list[str], most: int = 8) -> str:
    """Joined for a sentence, at most `most` of them."""
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(shown(text) for text in texts[:most]) + rest


def too_many(things: str, most: int) -> BadInput:
    return BadInput(f"The file holds more than {most} {things}; bring at most {most}.", FIELD)


def _binary(expected: str) -> BadInput:
    return BadInput(
        f"The file holds binary data (NUL bytes), not text; bring {expected}, saved as UTF-8.",
        FIELD,
    )
