"""`python -m models …`, or `python -m nanatomy …` where the package is installed."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from .cli import main
    except KeyboardInterrupt:  # while the commands themselves are being read
        sys.exit(130)
    sys.exit(main())
