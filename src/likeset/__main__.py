"""``likeset`` and ``python -m likeset``: the command line, or one sentence about what it needs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from likeset.errors import LikesetError, MissingPackageError
from likeset.extras import optional_packages


def main() -> None:
    """Run the command line; without the packages of the extra "cli" only ``warmup`` runs.

    All else says what to install and leaves with exit code 2.
    """
    try:
        with optional_packages():
            from likeset.cli import main as command_line
    except MissingPackageError as error:
        if sys.argv[1:2] == ["warmup"]:  # small images, which are the ones to be warmed up, need not have the extra
            return _warm_up(sys.argv[2:])
        print(f"likeset: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    command_line()


def _warm_up(arguments: list[str]) -> None:
    """``likeset warmup`` in plain text."""
    from likeset.warmup import warm_up

    parser = ArgumentParser("likeset warmup", description="Compile the kernels now.")
    parser.add_argument("--family", help="only this family, e.g. poisson; default: all of them")
    family = parser.parse_args(arguments).family
    try:
        print(warm_up(family, lambda name, number, count: None))
    except LikesetError as error:
        print(f"likeset: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
