"""Packages that only some parts need, and the extras of likeset that install them: ``pip install "likeset[plots]"``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from likeset.errors import MissingPackageError

EXTRA_OF = {"matplotlib": "plots", "typer": "cli", "rich": "cli", "sklearn": "kernels", "distributed": "cluster"}
EXTRA_OF |= dict.fromkeys(("narwhals", "formulaic", "pandas", "pyarrow"), "study")
EXTRA_OF |= dict.fromkeys(("starlette", "uvicorn", "jinja2", "anyio"), "web")
_INSTALLED_AS = {"sklearn": "scikit-learn"}


@contextmanager
def optional_packages() -> Iterator[None]:
    """Imports inside that find no package say which extra installs it, as :class:`~likeset.errors.MissingPackageError`.

    >>> with optional_packages():
    ...     import matplotlib
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA_OF:
            raise
        raise MissingPackageError(_INSTALLED_AS.get(missing, missing), EXTRA_OF[missing]) from None


def require(*packages: str) -> None:
    """Raise now, not after minutes of work, if one of the packages (names as imported) is missing."""
    with optional_packages():
        for package in packages:
            import_module(package)
