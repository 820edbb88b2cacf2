r"""Derivatives of a user's function in z, by central differences of order six: with f_j = f(y, z + j h),

f'  ~ [ 45 (f_1 - f_-1) - 9 (f_2 - f_-2) + (f_3 - f_-3) ] / (60 h)
f'' ~ [ 270 (f_1 + f_-1) - 27 (f_2 + f_-2) + 2 (f_3 + f_-3) - 490 f_0 ] / (180 h^2)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likeset._typing import Array
from likeset.compiling import kernel

STEP = 2e-3  # balances the truncation error (step^6) against rounding


def differences(f: Callable[[Array, Array], Array], y: Array, z: Array) -> tuple[Array, Array, Array]:
    """f, df/dz and d2f/dz2 from seven values of f; y and z have one shape."""
    values = f(y, z), *(f(y, z + sign * j * STEP) for j in (1, 2, 3) for sign in (1, -1))
    first, second = np.empty(z.size), np.empty(z.size)
    at, up1, down1, up2, down2, up3, down3 = (np.ascontiguousarray(each).reshape(-1) for each in values)
    combine(at, up1, down1, up2, down2, up3, down3, first, second)
    return values[0], first.reshape(z.shape), second.reshape(z.shape)


@kernel()
def combine(
    at: Array, up1: Array, down1: Array, up2: Array, down2: Array, up3: Array, down3: Array, first: Array, second: Array
) -> None:
    """Write f' and f'' at every point."""
    for i in range(at.size):
        first[i] = (45 * (up1[i] - down1[i]) - 9 * (up2[i] - down2[i]) + (up3[i] - down3[i])) / (60 * STEP)
        curved = 270 * (up1[i] + down1[i]) - 27 * (up2[i] + down2[i]) + 2 * (up3[i] + down3[i])
        second[i] = (curved - 490 * at[i]) / (180 * STEP * STEP)
