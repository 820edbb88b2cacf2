"""Sums over windows of covariates, and over the windows that hold a covariate."""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.problem import VoiceTable
from likeset._typing import Array, IntArray
from likeset.compiling import inner, kernel


@inner()
def sum_voices(starts: IntArray, members: IntArray, values: Array, out: Array) -> None:
    """out[k] = sum of values[b] over the covariates b of window k, members[starts[k] : starts[k + 1]]."""
    for k in range(starts.shape[0] - 1):
        total = 0.0
        for i in range(starts[k], starts[k + 1]):
            total += values[members[i]]
        out[k] = total


@kernel()
def sum_voices_of_rows(starts: IntArray, members: IntArray, values: Array, out: Array) -> None:
    """The same for every row of ``values``."""
    for i in range(values.shape[0]):
        sum_voices(starts, members, values[i], out[i])


def voice_exponents(windows: VoiceTable, contributions: Array) -> Array:
    """log pi_k + sum_{b in W_k} contributions[..., b], shape (..., number of windows)."""
    *leading, count = contributions.shape
    rows = np.ascontiguousarray(contributions.reshape(math.prod(leading), count))
    sums = np.empty((len(rows), len(windows.log_shares)))
    sum_voices_of_rows(windows.starts, windows.members, rows, sums)
    return windows.log_shares + sums.reshape(*leading, sums.shape[1])


def group_pulls(windows: VoiceTable, voices: Array, count: int) -> Array:
    """w_b = sum of voices[k] over the windows k that hold covariate b, for b < count."""
    return np.bincount(windows.members, voices[windows.owners], minlength=count).astype(np.float64)
