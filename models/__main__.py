"""`python -m models …`, or `python -m nanatomy …` where the package is installed."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
