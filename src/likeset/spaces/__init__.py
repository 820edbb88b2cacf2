"""Spaces: where theta lives and how covariates are embedded."""

from likeset.embedded import Embedded
from likeset.spaces.base import Basis, Space
from likeset.spaces.ellipsoid import LinearEllipsoid
from likeset.spaces.linear import Linear
from likeset.spaces.rkhs import RKHS

SPACES = (Linear, LinearEllipsoid, RKHS)
"""Every built-in space; found here by saving and by the checks."""

__all__ = ["RKHS", "SPACES", "Basis", "Embedded", "Linear", "LinearEllipsoid", "Space"]
