"""Strict JSON: results that any parser reads, non-finite numbers included."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..strict import strict

STDOUT = "-"


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE|-", help="write JSON to a file, or to standard output (-)"
    )


def check_writable(target: str | None) -> None:
    """BadInput where `target` cannot be written: said before the work, not after it."""
    if target is None or target == STDOUT:
        return
    try:
        with Path(target).open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise BadInput(f"{target} cannot be written: {error.strerror}.", field="json") from None


def write_json(target: str, value: Any) -> None:
    text = json.dumps(strict(value), allow_nan=False, ensure_ascii=False, indent=1)
    if target == STDOUT:
        print(text)
    else:
        Path(target).write_text(text + "\n", encoding="utf-8")
