r"""Laws outside a family, for the alarm: other scales and shapes, heavier tails, counts with more or less variance.

Families say which are theirs (``outside``). Each is a normalised density of y, given where the family itself
expects it: z with mean m and deviation s under what is believed before y. How good they are decides how loud an alarm
can get, never whether it is valid.

Where z is not noise but a rate or odds, uncertainty about it is more dispersion: e^z counts as Gamma distributed with
the relative variance v = e^(s^2) - 1 of a log-normal law, which keeps densities in closed form.

They are asked at every observation, so they are plain arithmetic with numbers: no arrays, nothing to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, expm1, hypot, inf, lgamma, log, log1p, pi, sqrt
from typing import Any

from likeset._typing import Array
from likeset.families.outside import Outside, Student

SCALES = (0.25, 0.35, 0.5, 0.7, 1.4, 2.0, 2.8, 4.0, 8.0)
TAILS = (0.5, 1.0, 2.0)
SHAPES = (0.4, 0.5, 0.6, 0.75, 1.33, 1.65, 2.1, 3.0)
VARIANCES = (0.3, 0.6, 1.4, 2.0, 3.0, 5.0)
VARYING = (0.3, 0.6, 1.0)
CORRELATIONS = (0.003, 0.02, 0.1, 0.4)
HEAVY = Student(3.0)  # of tails
_LOG_ROOT = 0.5 * log(2.0 * pi)
_FAR = 600.0  # |z| beyond which e^z is not computed
_LEAST = 1e-8  # relative variance below which there is none
_MANY = 1e9  # counts beyond which logarithms of factorials cancel to less than a millionth of a nat


class Noise(Outside):
    """Noise around z of other scales and with heavier tails; ``read`` has y on the scale of z (log, or as it is)."""

    names = (
        *(f"noise of {c:g} times the scale" for c in SCALES),
        *(f"heavy tails (Student's t) at {c:g} times the scale" for c in TAILS),
    )

    def __init__(self, scale: float, sharp: bool, read: Callable[[float], float] | None = None) -> None:
        self.scale, self.sharp, self.read = scale, sharp, read

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """Noise of every scale, then of every tail, widened by what is not known of z."""
        at, jacobian = self._read(y)
        misfit, scale = abs(at - m), self.scale
        found = [self._density(misfit, hypot(c * scale, s)) - jacobian for c in SCALES]
        return found + [HEAVY.log_density(misfit, hypot(c * scale, s)) - jacobian for c in TAILS]

    def own(self, y: Array, z: float, s: float) -> float:
        """Noise of the model's scale, widened by s."""
        at, jacobian = self._read(y)
        return self._density(abs(at - z), hypot(self.scale, s)) - jacobian

    def slope(self, y: Array, z: float) -> float:
        """Of log p: misfit over variance, or its sign over the scale."""
        misfit = self._read(y)[0] - z
        if self.sharp:
            return (misfit > 0.0) / self.scale - (misfit < 0.0) / self.scale
        return misfit / self.scale / self.scale

    def information(self, z: float) -> float:
        """One over the scale squared."""
        return 1.0 / self.scale / self.scale

    def _density(self, misfit: float, width: float) -> float:
        u = misfit / width
        return -u - log(2.0 * width) if self.sharp else -0.5 * u * u - log(width) - _LOG_ROOT

    def _read(self, y: Array) -> tuple[float, float]:
        """y on the scale of z, and log dy/dz."""
        number = float(y)
        if self.read is None:
            return number, 0.0
        at = self.read(number)
        return at, at


class Counts(Outside):
    """Counts with mean e^z: negative binomial laws, and rounded normal ones with less variance than the mean."""

    names = (
        *(f"counts with {k:g} times the variance" for k in VARIANCES),
        *(f"counts whose mean varies by {100 * c:g} %" for c in VARYING),
    )

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """Of other variances (below the mean: rounded normal laws), then of rates that vary; widened by s."""
        k, v = float(y), _relative_variance(s)
        mean = exp(min(max(m, -_FAR), _FAR)) * sqrt(1.0 + v)
        if not mean > 0.0:
            return [0.0 if k == 0.0 else -inf] * len(self.names)
        found = [
            _negative_binomial(k, mean, (factor - 1.0) / mean + v)
            if factor > 1.0
            else _rounded(k, mean, factor * mean + v * mean * mean)
            for factor in VARIANCES
        ]
        return found + [_negative_binomial(k, mean, c * c + v) for c in VARYING]

    def own(self, y: Array, z: float, s: float) -> float:
        """A Poisson law, with e^z Gamma distributed where s is not zero."""
        k, v = float(y), _relative_variance(s)
        z = min(max(z, -_FAR), _FAR) + 0.5 * log1p(v)
        if v > _LEAST:
            return _negative_binomial(k, exp(z), v)
        return k * z - exp(z) - lgamma(k + 1.0) if k + exp(z) < _MANY else -inf

    def slope(self, y: Array, z: float) -> float:
        """y - e^z."""
        return float(y) - exp(min(max(z, -_FAR), _FAR))

    def information(self, z: float) -> float:
        """e^z."""
        return exp(min(max(z, -_FAR), _FAR))


def _relative_variance(s: float) -> float:
    """Of e^z, where z has the deviation s; not without limit."""
    return expm1(min(s * s, 2.0))


def _negative_binomial(y: float, mean: float, dispersion: float) -> float:
    """log P(y) of the negative binomial law with variance mean + dispersion mean^2."""
    size = 1.0 / dispersion
    if y + size + mean > _MANY:
        return -inf
    return (
        lgamma(y + size) - lgamma(size) - lgamma(y + 1.0) - size * log1p(mean / size)
        + y * (log(mean) - log(size + mean))
    )  # fmt: skip


def _rounded(y: float, mean: float, variance: float) -> float:
    """log P(y) of normal noise around the mean, rounded, at least zero."""
    width = sqrt(2.0 * variance)
    low, high = (y - 0.5 - mean) / width, (y + 0.5 - mean) / width
    below = 0.0 if y == 0.0 else erfc(-low)  # all that is below zero counts as zero
    mass = erfc(low) - erfc(high) if y > 0.0 and low > 0.0 else erfc(-high) - below
    return log(0.5 * mass) if mass > 0.0 else -inf


class Proportions(Outside):
    """Successes in so many trials, whose probability varies from row to row by a Beta law."""

    names = tuple(f"proportions that vary from row to row (correlation {r:g})" for r in CORRELATIONS)

    def __init__(self, trials: int) -> None:
        self.trials = float(trials)

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """Beta mixtures of binomial laws, one for every correlation of the trials."""
        k, n, p = float(y), self.trials, self._probability(m)
        ways, unsure = self._ways(k), min(p * (1.0 - p) * s * s, 0.5)
        return [ways + self._beta(k, n, p, 1.0 - (1.0 - r) * (1.0 - unsure)) for r in CORRELATIONS]

    def own(self, y: Array, z: float, s: float) -> float:
        """A binomial law, with a Beta distributed chance where s is not zero."""
        k, p = float(y), self._probability(z)
        unsure = min(p * (1.0 - p) * s * s, 0.5)
        if unsure > _LEAST:
            return self._ways(k) + self._beta(k, self.trials, p, unsure)
        z = min(max(z, -_FAR), _FAR)
        return self._ways(k) + k * z - self.trials * (max(z, 0.0) + log1p(exp(-abs(z))))

    def slope(self, y: Array, z: float) -> float:
        """y - n p."""
        return float(y) - self.trials * self._probability(z)

    def information(self, z: float) -> float:
        """n p (1 - p)."""
        p = self._probability(z)
        return self.trials * p * (1.0 - p)

    def _ways(self, k: float) -> float:
        if self.trials > _MANY:
            return -inf
        return lgamma(self.trials + 1.0) - lgamma(k + 1.0) - lgamma(self.trials - k + 1.0)

    @staticmethod
    def _beta(k: float, n: float, p: float, correlation: float) -> float:
        """Of one order of successes and failures."""
        total = (1.0 - correlation) / correlation
        a, b = total * p, total * (1.0 - p)
        if total > _MANY:
            return -inf
        return lgamma(k + a) + lgamma(n - k + b) - lgamma(n + total) + lgamma(total) - lgamma(a) - lgamma(b)

    @staticmethod
    def _probability(z: float) -> float:
        return 1.0 / (1.0 + exp(-max(min(z, 30.0), -30.0)))


class Lifetimes(Outside):
    """Lifetimes of other shapes c p, at the z' to which a fit of shape p would answer m: z' = c (m + log Gamma(1+1/c)).

    For then E[T^p] = e^-m, which is what the fit looks at.
    """

    def __init__(self, shape: float, logs: bool, entry: float = -inf) -> None:
        self.shape, self.logs = shape, logs
        self.names = tuple(f"lifetimes of shape {shape * c:.2g}" for c in SHAPES)
        self.entry = entry if logs or entry == -inf else (log(entry) if entry > 0.0 else -inf)

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """With z moved to where a fit of the model's shape would see it."""
        return [
            self._density(y, self.shape * c, c * (m + moved), c * s) for c, moved in zip(SHAPES, _MOVED, strict=True)
        ]

    def own(self, y: Array, z: float, s: float) -> float:
        """Of the model's shape."""
        return self._density(y, self.shape, z, s)

    def slope(self, y: Array, z: float) -> float:
        """event - H."""
        return float(y[1]) - self._lived(self._log_time(y), self.shape, z)

    def information(self, z: float) -> float:
        """One per time that is seen."""
        return 1.0

    def _density(self, y: Array, shape: float, z: float, s: float) -> float:
        r"""With H = (t^p - entry^p) e^z: log of (p t^p e^z / t)^event e^-H, averaged over e^z with relative variance v,

        event [z + log p + p log t - log t] - (1/v + event) log(1 + v H);       without log t where y is that.
        """
        at, event, v = self._log_time(y), float(y[1]), _relative_variance(s)
        z += 0.5 * log1p(v)
        happened = z + log(shape) + shape * at - (0.0 if self.logs else at) if event else 0.0
        past = exp(min(shape * self.entry + z, _FAR)) if self.entry > -inf else 0.0
        lived = exp(min(shape * at + z, _FAR))
        if v <= _LEAST:
            return happened - (lived - past)
        # those who are alive at the entry have smaller rates than others
        return happened - (1.0 / v + event) * log1p(v * lived) + log1p(v * past) / v

    def _lived(self, at: float, shape: float, z: float) -> float:
        lived = exp(min(shape * at + z, _FAR))
        return lived - exp(min(shape * self.entry + z, _FAR)) if self.entry > -inf else lived

    def _log_time(self, y: Array) -> float:
        return float(y[0]) if self.logs else log(float(y[0]))


_MOVED: Any = tuple(lgamma(1.0 + 1.0 / c) for c in SHAPES)
