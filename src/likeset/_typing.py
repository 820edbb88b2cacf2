"""Types and constants that mean one thing everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next number."""
