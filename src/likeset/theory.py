"""The paper's bounds as numbers: the public name of :mod:`likeset.paper.theory`."""

from likeset.paper.theory import *  # noqa: F403
from likeset.paper.theory import __all__ as __all__
