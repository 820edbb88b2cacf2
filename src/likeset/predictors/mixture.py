r"""The hyper-mixture: sequential likelihood mixing over Gaussian priors of several widths. The default numerator.

For prior precisions lambda_1, ..., lambda_J, each with its Gaussian belief N(m_j, S_j) about theta,

    q_s(y) = sum_j pi_j ∫ p(y | z) N(z; x'm_j, x'S_j x) dz,      pi_j <- pi_j q_j(y_s) / q_s(y_s).

For Gaussian noise beliefs and integrals are exact, and with one precision the set is the prior-posterior-ratio set.
Elsewhere the belief is approximate and q_s still is a normalised density, so coverage is exact all the same.
A mixture hedges over the uncertain z, which a plug-in estimate cannot: this is where its gain comes from.

Where |theta| is bounded the lambda are 4^k / B^2 with k = 0 to 4, in equal shares. A bound may be loose, so in linear
models k goes on, with a tenth of the shares for all that follow, until priors are narrow in units of the noise: a
quarter of I(0)^-1/2. It costs 0.1 nats at most, and bounds far from the truth cost little more than those near it.

Where |theta| has no bound, or the noise no scale, there is no unit to choose lambda_j in. They then are a wide
geometric grid in units of the noise, I(0)^-1/2, and in linear models of the columns of x
(:mod:`~likeset.predictors.columns`), so that units of measurement do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.nuisance import Gain
from likeset._typing import Array
from likeset.arguments import real_array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.answers import information, posterior, predictive, prior_precisions
from likeset.families.base import Family
from likeset.families.beliefs import Beliefs, Posterior
from likeset.families.merged import MergedData
from likeset.families.outside import Believed
from likeset.families.predictive import Predictive
from likeset.predictors.belief import Belief
from likeset.predictors.columns import MOST_COLUMNS, ColumnUnits
from likeset.spaces.base import Basis, Space
from likeset.spaces.linear import Linear
from likeset.state_checks import expect_log_shares
from likeset.undo import Undo

DEFAULT_GRID = (1.0, 4.0, 16.0, 64.0, 256.0)
NARROW = 0.25  # in units of the noise: a prior that is narrow enough for any bound
FURTHER = 7  # narrower priors at most
FURTHER_SHARE = 0.1
UNBOUNDED_SCALE = 10.0  # stood in for B where there is none, in files of version 4 and before


class Mixture:
    """Mixture over N(0, I/lambda) priors; ``precisions`` are the lambdas, by default {1, 4, 16, 64, 256} / B^2.

    In linear models some more follow where the bound is loose. Without a bound B, or where the scale of the noise is
    unknown, the default is a wide grid in units of the noise.

    >>> Mixture(precisions=[1.0])
    Mixture(precisions=[1.0])
    """

    def __init__(self, precisions: Sequence[float] | None = None) -> None:
        self.precisions: Array | None = None
        if precisions is not None:
            array = np.atleast_1d(real_array("precisions", precisions))
            if array.ndim != 1 or len(array) == 0 or not (array > 0).all():
                raise InvalidArgumentError(
                    "precisions", precisions, "is not a list of positive numbers", "pass prior precisions > 0"
                )
            self.precisions = array

    def __repr__(self) -> str:
        return f"Mixture({'' if self.precisions is None else f'precisions={self.precisions.tolist()}'})"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"precisions": None if self.precisions is None else self.precisions.tolist()}

    def start(self, family: Family, space: Space) -> MixtureForecaster:
        """A forecaster with prior beliefs."""
        if self.precisions is not None:
            return MixtureForecaster(family, space.bound, self.precisions)
        in_noise = prior_precisions(family, bounded=bool(np.isfinite(space.bound)))
        if in_noise is None:
            more = _further(family, space.bound) if isinstance(space, Linear) else 0
            grid = np.append(DEFAULT_GRID, DEFAULT_GRID[-1] * 4.0 ** np.arange(1.0, more + 1.0))
            forecaster = MixtureForecaster(family, space.bound, grid / space.bound**2)
            forecaster.may_be_earlier = True
            if more:
                forecaster.log_shares[:-more] += np.log((1.0 - FURTHER_SHARE) * len(grid) / len(DEFAULT_GRID))
                forecaster.log_shares[-more:] += np.log(FURTHER_SHARE * len(grid) / more)
            return forecaster
        columns = ColumnUnits(space.dim) if isinstance(space, Linear) and space.dim <= MOST_COLUMNS else None
        forecaster = MixtureForecaster(family, space.bound, in_noise, columns)
        forecaster.may_be_earlier = not np.isfinite(space.bound)
        return forecaster


def _further(family: Family, bound: float) -> int:
    """How many more priors, each half as wide as the one before, until they are narrow in units of the noise."""
    noise = min(max(float(information(family, np.zeros(1))[0]), 1e-12), 1e12) ** -0.5
    widest = bound / np.sqrt(DEFAULT_GRID[-1])
    return int(np.clip(np.ceil(np.log2(widest / (NARROW * noise))), 0, FURTHER))


class MixtureForecast:
    """sum_j pi_j q_j, frozen."""

    __slots__ = ("_latest", "components", "family", "log_shares")

    def __init__(self, family: Family, components: Predictive, log_shares: Array) -> None:
        self.family, self.components, self.log_shares = family, components, log_shares
        self._latest: tuple[bytes | None, Array, Array] = None, log_shares, log_shares  # y, log pi_j q_j(y), log of sum

    def log_density(self, y: Array) -> Array:
        """log sum_j pi_j q_j(y)."""
        joint = self.log_shares + self.components.log_densities(y)
        total = log_sum_exp(joint)
        self._latest = _bytes_of(y), joint, total
        return total

    def updated_shares(self, y: Array) -> Array:
        """The log of the shares by Bayes' rule; for the y that was scored last all is known."""
        if self._latest[0] is None or self._latest[0] != _bytes_of(y):
            self.log_density(y)
        _, joint, total = self._latest
        return joint - total if np.isfinite(total) else self.log_shares


def _shares_in_units(posterior: Posterior, log_shares: Array) -> Array:
    """The shares that beliefs would have if units had always been these, where that is known."""
    evidence = posterior.evidence()
    if evidence is None or not np.isfinite(evidence).all():
        return log_shares
    return np.asarray(evidence - log_sum_exp(evidence))


def _bytes_of(y: object) -> bytes | None:
    """What identifies one observation as the sequence has it: a number, or a pair of them."""
    one = type(y) is np.float64 or (type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1 and y.size == 2)
    return y.tobytes() if one else None  # type: ignore[attr-defined]


class Measured(NamedTuple):
    """A covariate in units of columns, beliefs in these units, and the log of their shares."""

    seen: Embedded
    posterior: Posterior
    log_shares: Array


class MixtureForecaster:
    """Running state of :class:`Mixture`: beliefs and the log of their shares."""

    may_be_earlier = False
    """Whether a state may be of a release that knew the first five priors alone: where none were chosen."""

    def __init__(self, family: Family, bound: float, precisions: Array, columns: ColumnUnits | None = None) -> None:
        self.family, self.bound, self.columns = family, bound, columns
        self.posterior: Posterior = posterior(family, precisions)
        count = getattr(self.posterior, "components", len(precisions))
        self.log_shares = np.full(count, -np.log(count))
        self._latest: tuple[Embedded, MixtureForecast] | None = None
        self._moments = (np.zeros(0), np.zeros(0))  # of z at the latest covariate
        self._measured: tuple[Embedded, Measured] | None = None  # the latest covariate, and beliefs in its units
        self._kept_shares = (np.zeros(0), np.zeros(0))  # their logarithms, and the shares
        self._held: tuple[Beliefs, Array] | None = None  # beliefs and shares that forecasts go by, if not the latest

    def forecast(self, phi: Embedded) -> MixtureForecast:
        """The predictive mixture at phi."""
        seen, posterior, log_shares = self._in_units(phi)
        mean, sd = posterior.predict(seen)
        made = self._mixture(phi, seen, posterior, mean, sd, log_shares)
        self._latest, self._moments = (phi, made), (mean, sd)
        if self._held is None:
            return made
        beliefs, shares = self._held
        return self._mixture(phi, seen, posterior, *beliefs.predict(seen.coordinates), shares)

    def _mixture(
        self, phi: Embedded, seen: Embedded, posterior: Posterior, mean: Array, sd: Array, log_shares: Array
    ) -> MixtureForecast:
        """The mixture of the predictive densities of beliefs with these moments of z."""
        own = getattr(posterior, "predictive", None)  # of beliefs that are not about theta alone
        law = phi.law_or(self.family)
        if own is not None:
            return MixtureForecast(law, own(mean, sd, seen), log_shares)
        x = phi.coordinates
        length = float(np.sqrt(x @ x))
        reach = self.bound * length if length else 0.0  # also where there is no bound
        return MixtureForecast(law, predictive(law, mean, sd, reach), log_shares)

    def spread(self, phi: Embedded) -> float:
        """sum_j pi_j I(m_j) s_j^2: the variance of z in units of the noise, I the information of one y about z."""
        if not (self._latest and self._latest[0] is phi):
            self.forecast(phi)
        mean, sd = self._moments
        with np.errstate(over="ignore", invalid="ignore"):
            variances = information(phi.law_or(self.family), mean) * sd**2
            expected = float(self._shares(phi) @ variances)
        return expected if expected == expected else np.inf

    def belief_about_z(self, phi: Embedded) -> Believed:
        """Mean and standard deviation of z at phi; and an unknown number of the family, as it is thought to be."""
        if not (self._latest and self._latest[0] is phi):
            self.forecast(phi)
        mean, sd = self._moments
        posterior, shares = self._in_units(phi).posterior, self._shares(phi)
        own = getattr(posterior, "believed_of_z", None)  # of beliefs that are not about theta alone
        if own is not None:
            return own(shares, mean, sd)  # type: ignore[no-any-return]
        centre = float(shares @ mean)
        return Believed(centre, float(np.sqrt(shares @ (sd**2 + (mean - centre) ** 2))))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Bayes' rule for the shares, then for the beliefs."""
        if not (self._latest and self._latest[0] is phi):
            self.forecast(phi)
        assert self._latest is not None
        seen, self.posterior, _ = self._in_units(phi)
        self.log_shares = self._latest[1].updated_shares(y)
        self.posterior.observe(seen, y)
        if self.columns is not None:
            self.columns.observe(phi.x)
        self._measured = None

    @contextmanager
    def as_of_now(self) -> Iterator[None]:
        """Forecasts meanwhile go by the beliefs and shares of now; what is observed is learnt for later ones."""
        try:
            self._held = self.posterior.settled(), self.log_shares
            yield
        finally:
            self._held = None

    def _in_units(self, phi: Embedded) -> Measured:
        """The covariate as beliefs see it, and these in the units that it brings: changed copies where it does."""
        if self.columns is None:
            return Measured(phi, self.posterior, self.log_shares)
        if self._measured is None or self._measured[0] is not phi:
            ratios = self.columns.ratios(phi.x)
            posterior, log_shares = self.posterior, self.log_shares
            if ratios is not None:
                posterior = posterior.rescaled(ratios)
                log_shares = _shares_in_units(posterior, log_shares)
            self._measured = phi, Measured(self.columns.seen(phi), posterior, log_shares)
        return self._measured[1]

    def _shares(self, phi: Embedded) -> Array:
        """Of the beliefs in the units that phi brings; read only, since they are kept until others are asked for."""
        log_shares = self._in_units(phi).log_shares
        if self._kept_shares[0] is not log_shares:
            self._kept_shares = log_shares, np.exp(log_shares)
        return self._kept_shares[1]

    def belief(self, space: Space, basis: Basis) -> Belief:
        """What is believed now, frozen, for questions in terms of this basis."""
        shares = np.exp(self.log_shares)
        own, precision = getattr(self.posterior, "believed", None), None  # of beliefs that are not about theta alone
        if own is None:
            beliefs = self.posterior.settled()
        else:
            beliefs, shares, precision = own(shares)
        if self.columns is not None:
            beliefs = self.columns.of_theta(beliefs, basis.vectors)  # type: ignore[attr-defined]
        return Belief(
            self.family, space, basis, beliefs.priors, shares / shares.sum(), beliefs.means, beliefs.factors, precision
        )  # fmt: skip

    def gain(self) -> Gain | None:
        """What a numerator made for the test of one scale has earned so far, where beliefs know one."""
        own = getattr(self.posterior, "gain", None)
        return None if own is None else own()

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep shares and beliefs."""
        undo.keep(self)
        if self.columns is not None:
            self.columns.remember(undo)
            if hasattr(self.posterior, "data"):
                undo.keep(self.posterior.data)
        self.posterior.remember(undo, self._in_units(phi).seen)

    def state(self) -> dict[str, Array]:
        """Shares and beliefs."""
        columns = {} if self.columns is None else self.columns.state()
        return {"log_shares": self.log_shares} | columns | self.posterior.state()

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        count = len(state.get("log_shares", ()))
        if self.may_be_earlier and count == len(DEFAULT_GRID) != len(self.log_shares):
            # It goes on with these, without a bound in a scale of that release's own.
            self.columns = None
            scale = self.bound if self.bound < np.inf else UNBOUNDED_SCALE
            self.posterior = posterior(self.family, np.array(DEFAULT_GRID) / scale**2)
            self.log_shares = np.zeros(len(DEFAULT_GRID))
        if self.columns is not None:
            self.columns.restore(state)
        self.log_shares = expect_log_shares(state, "log_shares", len(self.log_shares))
        self.posterior.restore(state)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether the beliefs are those of so many distinct covariates and dimensions."""
        if self.columns is not None:
            dimension = len(self.columns.units) if count else 0
        return self.posterior.fits(count, dimension)

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        own = getattr(self.posterior, "data", None)
        self.posterior.resume(data)
        if self.columns is not None and own is not None:
            self.posterior.data.measure(own.coordinates)  # type: ignore[attr-defined]
