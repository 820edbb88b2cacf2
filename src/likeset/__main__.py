"""``likeset`` and ``python -m likeset``: the command line, or one sentence about what it needs."""

from __future__ import annotations

import sys

from likeset.errors import MissingPackageError
from likeset.extras import optional_packages


def main() -> None:
    """Run the command line; without the packages of the extra "cli" say what to install and leave with exit code 2."""
    try:
        with optional_packages():
            from likeset.cli import main as command_line
    except MissingPackageError as error:
        print(f"likeset: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    command_line()


if __name__ == "__main__":
    main()
