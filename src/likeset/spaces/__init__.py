"""Spaces: where theta lives and how covariates are embedded."""

from likeset.spaces.base import Basis, Embedded, Space
from likeset.spaces.linear import Linear

SPACES = (Linear,)
"""Every built-in space; found here by saving and by the checks."""

__all__ = ["SPACES", "Basis", "Embedded", "Linear", "Space"]
