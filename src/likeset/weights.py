r"""Weights w_s in [0, 1] of the observations: known before y_s, applied to both sides of the ratio.

A weighting is started for a family and a space and then asked before every observation:
``weight(phi)`` first, ``observe(phi, y)`` afterwards. Coverage holds for any weights made this way.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, positive, real_number
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.spaces.base import Space
from likeset.state_checks import expect_inverse
from likeset.undo import Undo


@runtime_checkable
class Weigher(Protocol):
    """A running weighting: the two methods a user's own must have."""

    def weight(self, phi: Embedded) -> float:
        """w in [0, 1] for the observation about to be made at phi."""
        ...

    def observe(self, phi: Embedded, y: Array) -> None:
        """Take note of the observation (x, y)."""
        ...


@runtime_checkable
class Weighting(Protocol):
    """Settings of a weighting, from which a sequence starts its own :class:`Weigher`."""

    def start(self, family: Family, space: Space) -> Weigher:
        """A fresh weigher."""
        ...


class Unweighted:
    """The classical ratio: w = 1."""

    def __repr__(self) -> str:
        return "Unweighted()"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {}

    def start(self, family: Family, space: Space) -> Unweighted:
        """Nothing to start."""
        return self

    def weight(self, phi: Embedded) -> float:
        """1."""
        return 1.0

    def observe(self, phi: Embedded, y: Array) -> None:
        """Nothing to note."""

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Nothing to keep."""

    def state(self) -> dict[str, Array]:
        """Nothing to save."""
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Nothing to restore."""


class Powered:
    """Every observation counts with the same power w in (0, 1]: sets { prod_s [ q_s / p_theta ]^w <= 1/alpha }.

    A hedge against noise that is somewhat wilder than the family says. Gaussian likelihoods to the power w are those of
    noise with 1/w times the variance, and so it is, roughly, with counts that vary 1/w times as much as a Poisson law.
    It is none against a wrong mean, a wrong bound or rows that are copies of each other (measured: docs/robustness.md),
    and it costs: with w = 1/2 sets have twice as much to overcome, log(1/alpha)/w.

    >>> Powered(0.5).weight(None)
    0.5
    """

    def __init__(self, w: float = 0.5) -> None:
        self.w = real_number("w", w)
        if not 0.0 < self.w <= 1.0:
            raise InvalidArgumentError("w", w, "is outside (0, 1]", "pass e.g. 0.5; above one coverage is lost")

    def __repr__(self) -> str:
        return f"Powered({self.w:g})"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"w": self.w}

    def start(self, family: Family, space: Space) -> Powered:
        """Nothing to start."""
        return self

    def weight(self, phi: Embedded | None) -> float:
        """w."""
        return self.w

    def observe(self, phi: Embedded, y: Array) -> None:
        """Nothing to note."""

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Nothing to keep."""

    def state(self) -> dict[str, Array]:
        """Nothing to save."""
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Nothing to restore."""


class BiasWeighting:
    r"""Weights that discount observations where the FTRL estimate is still biased (the paper's Algorithm 1).

        w_s = (1/L) / (1/L + bias^2)

    with L the smoothness of the family on [-B, B] and, by ``estimate``,

    * ``"bound"``       bias^2 = 2 lambda B^2 x'V^-1 x,     V = mu sum_{j<s} x_j x_j' + lambda I    (Theorem 2)
    * ``"exact"``       bias^2 = 4 lambda^2 B^2 x'V^-2 x,   V = mu sum_{j<s} x_j x_j' + 2 lambda I
      (the worst case of the Gaussian FTRL bias -2 lambda x'V^-1 theta*; other families use their mu)
    * ``"projection"``  bias^2 = B^2 |(I - P) x|^2,         P the projection on the past covariates' span.

    Symbols: lambda ``penalty``, B the space's bound, mu and L the family's ``curvature_bounds(B)``.

    Weighted on both sides, as validity demands, they keep R_t independent of the noise where w = 1 makes it blow up,
    and make intervals narrower than w = 1 does for inference with little noise. They do little for the regret of short
    bandit games (``"bound"`` nothing), and the default (voices) is narrower in nearly every case: ``likeset reproduce
    weights`` and ``fig2``.
    """

    def __init__(self, estimate: str = "bound", penalty: float = 1.0) -> None:
        self.estimate = choice("estimate", estimate, ("bound", "exact", "projection"))
        self.penalty = positive("penalty", penalty)

    def __repr__(self) -> str:
        return f"BiasWeighting(estimate={self.estimate!r}, penalty={self.penalty:g})"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"estimate": self.estimate, "penalty": self.penalty}

    @classmethod
    def examples(cls) -> list[BiasWeighting]:
        """One instance per estimate, for the contract suite."""
        return [cls(estimate) for estimate in ("bound", "exact", "projection")]

    def start(self, family: Family, space: Space) -> BiasWeigher:
        """A fresh weigher; the bias of an estimate is only bounded on a bounded space."""
        if not np.isfinite(space.bound):
            raise InvalidArgumentError(
                "weighting",
                self,
                "needs a finite bound on |theta|",
                "give the space a bound or use Unweighted()",
            )
        mu, L = family.curvature_bounds(space.bound)
        return BiasWeigher(self.estimate, self.penalty, space.bound, mu, L)


class BiasWeigher:
    """Running state of :class:`BiasWeighting`: the inverse of V on the span, by rank-one updates."""

    def __init__(self, estimate: str, penalty: float, bound: float, mu: float, L: float) -> None:
        self.estimate, self.penalty, self.bound, self.mu, self.L = estimate, penalty, bound, mu, L
        # V starts as (start of V) * I and keeps that value off the span.
        self.start_of_V = 2 * penalty if estimate == "exact" else penalty
        self.inverse = np.zeros((0, 0))

    def weight(self, phi: Embedded) -> float:
        """1 / (1 + L bias^2)."""
        return float(1.0 / (1.0 + self._curvatures(phi)[1] * self._squared_bias(phi.coordinates)))

    def observe(self, phi: Embedded, y: Array) -> None:
        """V <- V + mu x x' (Sherman-Morrison on the inverse)."""
        x = phi.coordinates
        self.inverse = self._grown(len(x))
        Vx, mu = self.inverse @ x, self._curvatures(phi)[0]
        self.inverse = self.inverse - np.outer(Vx, Vx) * (mu / (1.0 + mu * float(x @ Vx)))

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep the inverse, which is replaced and not written to."""
        undo.keep(self)

    def state(self) -> dict[str, Array]:
        """The inverse of V."""
        return {"inverse": self.inverse}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.inverse = expect_inverse(state, "inverse")

    def fits(self, count: int, dimension: int) -> bool:
        """Whether the state is that of a span of this dimension."""
        return len(self.inverse) == dimension

    def _curvatures(self, phi: Embedded) -> tuple[float, float]:
        """mu and L of the row: many trials count more than one."""
        return (self.mu, self.L) if phi.law is None else phi.law.curvature_bounds(self.bound)

    def _squared_bias(self, x: Array) -> float:
        if self.estimate == "projection":
            # Coordinates beyond the old dimension are the part outside the past span.
            new = x[len(self.inverse) :]
            return self.bound**2 * float(new @ new)
        Vx = self._grown(len(x)) @ x
        if self.estimate == "bound":
            return 2 * self.penalty * self.bound**2 * float(x @ Vx)
        return 4 * self.penalty**2 * self.bound**2 * float(Vx @ Vx)

    def _grown(self, dimension: int) -> Array:
        old = len(self.inverse)
        if dimension == old:
            return self.inverse
        grown = np.eye(dimension) / self.start_of_V
        grown[:old, :old] = self.inverse
        return grown


WEIGHTINGS = (Unweighted, Powered, BiasWeighting)
"""Every built-in weighting; found here by saving and by the checks."""
