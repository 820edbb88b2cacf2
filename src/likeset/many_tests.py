r"""Many hypotheses at once: which to reject so that few of the rejections are false.

An e-value e has expectation at most one if its hypothesis is true. The false discovery rate is the expected share of
true hypotheses among those rejected. Both procedures below keep it at most ``level`` *whatever the dependence* of the
e-values:

* :func:`e_bh`             all hypotheses at once (Wang and Ramdas 2022): with e_(1) >= e_(2) >= ...  reject the k
  largest, k the last number with  e_(k) >= K / (k level);
* :class:`OnlineTests`     one after the other, for ever (e-LOND; Xu and Ramdas 2023): reject the t-th if
  e_t >= 1 / (level g_t (1 + rejections so far)),  g_t = 1/(t (t + 1)).

What goes in must be e-values: the evidence *at the time of testing*, which may be chosen by looking. The largest
evidence *ever seen* is none: its expectation may be infinite (docs/many-tests.md).
"""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import error_level
from likeset.errors import InvalidArgumentError, ShapeError


def e_bh(log_e_values: Any, level: float = 0.05) -> Mask:
    """Which hypotheses to reject, one per entry, with false discovery rate at most ``level``.

    >>> e_bh(np.log([100.0, 3.0, 50.0, 0.1, 45.0]), level=0.05)
    array([ True, False,  True, False,  True])
    """
    logs = _log_e_values(log_e_values)
    if logs.ndim != 1:
        raise ShapeError("log_e_values", log_e_values, f"has shape {logs.shape}", "pass one number per hypothesis")
    level = error_level("level", level)
    if not len(logs):
        return np.zeros(0, dtype=bool)
    order = np.argsort(-logs, kind="stable")
    k = np.arange(1, len(logs) + 1)
    good = np.flatnonzero(logs[order] >= np.log(len(logs) / (k * level)))
    rejected = np.zeros(len(logs), dtype=bool)
    if len(good):
        rejected[logs >= logs[order[good[-1]]]] = True
    return rejected


class OnlineTests:
    """Hypotheses that come one after the other, without end; every answer is final.

    >>> tests = OnlineTests(level=0.1)
    >>> [tests.test(log_e) for log_e in np.log([30.0, 5.0, 500.0, 90.0])]
    [True, False, True, True]
    >>> tests
    OnlineTests(level=0.1) with 4 hypotheses, 3 rejected
    """

    def __init__(self, level: float = 0.05) -> None:
        self.level = error_level("level", level)
        self.count = 0
        self.rejections = 0

    def __repr__(self) -> str:
        return f"OnlineTests(level={self.level:g}) with {self.count} hypotheses, {self.rejections} rejected"

    @property
    def threshold(self) -> float:
        """What the logarithm of the next e-value must reach: log [ t (t + 1) / (level (1 + rejections)) ]."""
        t = self.count + 1
        return log(t * (t + 1.0)) - log(self.level * (1.0 + self.rejections))

    def test(self, log_e_value: Any) -> bool:
        """Whether the next hypothesis is rejected."""
        logs = _log_e_values(log_e_value)
        if logs.size != 1:
            raise ShapeError("log_e_value", log_e_value, f"has shape {logs.shape}", "pass one number at a time")
        rejected = bool(float(logs.reshape(())) >= self.threshold)
        self.count, self.rejections = self.count + 1, self.rejections + rejected
        return rejected


def _log_e_values(value: Any) -> Array:
    """Logarithms of e-values: numbers, -inf for zero, +inf where a hypothesis leaves no parameter."""
    try:
        logs = np.asarray(value)
        if logs.dtype.kind not in "iuf" or logs.size > 10**8:
            raise TypeError
        logs = logs.astype(np.float64)
    except Exception:
        raise InvalidArgumentError("log_e_values", value, "is no array of numbers", _REMEDY) from None
    if np.isnan(logs).any():
        raise InvalidArgumentError("log_e_values", value, "contains NaN", _REMEDY)
    return np.clip(logs, -inf, inf)


_REMEDY = "pass e.g. s.evidence(X, below=0.0).log_e_value"
