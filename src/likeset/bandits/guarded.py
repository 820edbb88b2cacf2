r"""Choice by belief, guarded by the certified set."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.arguments import real_number
from likeset.bandits.believing import Beliefs, hopes
from likeset.bandits.policy import Policy
from likeset.bandits.ties import highest
from likeset.errors import InvalidArgumentError

DEFAULT_INSURANCE = 0.05
SMALL = 2.0  # mean widths of what was played: a due round with no more than this to gain goes by belief


@dataclass(frozen=True, eq=False)
class UnderWay:
    """A choice that was asked for and not yet told: its covariate, its certified width then, whether it was due."""

    x: Array
    width: float
    due: bool


class Guarded(Policy):
    r"""Play what the predictor's beliefs rate best, never what the certified set has ruled out.

        belief round:     i_t = argmax_i  m_i + sqrt(2 log(1/alpha)) s_i      over arms with  u_t(i) >= L_t
        insured round:    i_t = argmax_i  u_t(i)                             (certified optimism)

    m_i and s_i: mean and standard deviation of the score +-x_i'theta under the beliefs (averaged over the Gaussians of
    the mixture); [l_t, u_t] its certified bounds (running intersection), U_t and L_t the highest of each. Sets hold
    under any rule of choosing, so what is reported (``intervals``, ``recommend``, ``certified_regret``) is as certain
    as ever, however wrong the beliefs.

    The *insurance* eps bounds the regret for any belief: of every 1/eps rounds one is due, and a due round is played
    by optimism, unless U_t - L_t is at most twice the mean width of what was played so far. Regret is then at most
    1 + max(6, 4/sqrt(eps)) times the bound of optimism; statement, conditions and proof are in docs/choosing.md.

    Parameters
    ----------
    seq        a ``ConfidenceSequence``, or anything with ``update``, ``set``, ``space`` and ``alpha``
    arms       covariates, one row each; ``None``: the domain of an RKHS, or arms given at every ``ask(arms)``
    reward     monotone function of z, as for :class:`~likeset.UCB`
    insurance  eps, the share of rounds that are due, from 0 (none: no guarantee on regret) to 1
    belief     whose beliefs: ``None`` for those of the sequence's predictor; a predictor (``Mixture([1.0])``) or a
               fresh ``ConfidenceSequence`` (another family, kernel, length scale) that learns beside it; or any object
               with ``update(x, y)`` and ``belief``, which has ``moments(X)`` and ``supposing(X)``, as
               :class:`~likeset.Belief` has
    rng        breaks ties at random (generator or seed); ``None``: the lowest index wins

    An arm counts as ruled out when its upper bound, computed before it is played, is below the highest lower bound
    known; lower bounds are computed for arms that are played, and for all of them by ``intervals`` and ``recommend``.

    >>> import numpy as np
    >>> import likeset as ls
    >>> env = ls.environments.paper_1d()
    >>> policy = ls.Guarded(env.sequence(alpha=0.1), env.arms, rng=0)
    >>> trace = ls.simulate(policy, env, rounds=30, rng=1, coverage=False)
    >>> bool(trace.regret.sum() <= policy.certified_regret)
    True
    """

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        insurance: float = DEFAULT_INSURANCE,
        belief: Any = None,
        rng: Any = None,
    ) -> None:
        self.insurance = real_number("insurance", insurance)
        if not 0.0 <= self.insurance <= 1.0:
            raise InvalidArgumentError("insurance", insurance, "is no share of the rounds", "pass a number in [0, 1]")
        self._belief_given = belief
        super().__init__(seq, arms, reward=reward, rng=rng)
        self.exploration = sqrt(2.0 * log(1.0 / self.seq.alpha))
        """Standard deviations above the mean that a choice by belief goes by."""
        self._under_way: list[UnderWay] = []
        self._rounds = self._due = 0
        self._widths = 0.0
        self._plays: dict[bytes, int] = {}
        self.insured = 0
        """Number of rounds played by certified optimism so far."""

    def _refuse(self, arms: Any) -> None:
        self._beliefs = Beliefs(self.seq, self._belief_given)

    @property
    def pending(self) -> Array:
        """Covariates asked for and not yet told, one row each, oldest first."""
        return np.array([choice.x for choice in self._under_way]).reshape(-1, self.seq.space.covariate_shape[0])

    @property
    def certified_regret(self) -> float:
        r"""sum_t [ g(U_T) - g(l_T(x_t)) ] over the choices told so far, with today's bounds.

        With probability at least 1 - alpha the true regret, in means, is below it, at all times at once. It costs the
        bounds of all arms, and takes arms that stay the same.
        """
        rows = self._fixed_rows("certified_regret")
        lower, upper = self.intervals()
        number_of = {row.tobytes(): i for i, row in enumerate(rows)}
        total = sum(count * (upper.max() - lower[number_of[x]]) for x, count in self._plays.items() if x in number_of)
        return float(np.nextafter(total, np.inf)) if total else 0.0

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm (an index)."""
        x = self.arms.covariate(arm)
        super().tell(arm, y)
        self._beliefs.told(x, y)
        self._arrived(x)

    def _arrived(self, x: Array) -> None:
        key = x.tobytes()
        self._plays[key] = self._plays.get(key, 0) + 1
        for place, choice in enumerate(self._under_way):
            if choice.x.tobytes() == key:
                del self._under_way[place]
                self._rounds, self._due = self._rounds + 1, self._due + choice.due
                self._widths += choice.width
                return

    def _choose(self, rows: Array, n: int) -> list[int]:
        current = self.seq.set
        belief = self._beliefs.now()
        if self._under_way:
            belief = belief.supposing(self.pending)
        chosen: list[int] = []
        free = np.ones(len(rows), dtype=bool)
        while len(chosen) < n and free.any():
            due = self._is_due()
            arm = self._optimistic(current, rows, free) if due else None
            insured = arm is not None
            if arm is None:
                arm = self._believed_best(current, rows, belief, free)
            if arm is None:
                break
            self.insured += insured
            free[arm] = False
            chosen.append(arm)
            slot = self._running.slots(rows)[arm]
            width = float(self._running.ceiling[slot] - self._running.floor[slot])
            self._under_way.append(UnderWay(rows[arm].copy(), max(width, 0.0), due))
            if len(chosen) < n:
                belief = belief.supposing(rows[arm : arm + 1])
        return chosen

    def _is_due(self) -> bool:
        """Whether fewer than eps t of the first t rounds were due, this one included."""
        due = self._due + sum(choice.due for choice in self._under_way)
        return due < self.insurance * (self._rounds + len(self._under_way) + 1)

    def _optimistic(self, current: Any, rows: Array, free: NDArray[np.bool_]) -> int | None:
        """The arm of a due round; None where what is left to gain is small enough to go by belief."""
        lazy = not getattr(current, "closed_form", False)
        ceilings = self._running.ceilings(current, rows, lazy)
        top = highest(ceilings, self._rng)
        self._running.intervals(current, rows, [top])
        known = self._running.floor[self._running.slots(rows)].max()
        rounds = self._rounds + len(self._under_way)
        widths = self._widths + sum(choice.width for choice in self._under_way)
        if rounds and ceilings.max() - known <= SMALL * widths / rounds:
            return None
        if free[top]:
            return top
        left = np.flatnonzero(free)
        return int(left[highest(ceilings[left], self._rng)])

    def _believed_best(self, current: Any, rows: Array, belief: Any, free: NDArray[np.bool_]) -> int | None:
        """The arm with the highest score under the beliefs of those that are free and not ruled out."""
        scores = self._belief_scores(belief, rows)
        left = free.copy()
        slots = self._running.slots(rows)
        while left.any():
            candidates = np.flatnonzero(left)
            arm = int(candidates[highest(scores[candidates], self._rng)])
            if not self._known_ruled_out(slots[arm], slots):
                self._running.intervals(current, rows, [arm])
                if not self._known_ruled_out(slots[arm], slots):
                    return arm
            left[arm] = False
        return None

    def _known_ruled_out(self, slot: int, slots: NDArray[np.intp]) -> bool:
        return bool(self._running.ceiling[slot] < self._running.floor[slots].max())

    def _belief_scores(self, belief: Any, rows: Array) -> Array:
        return hopes(belief, rows, self.reward.sign, self.exploration)

    def _fixed_rows(self, what: str) -> Array:
        if self.arms.fixed is None:
            raise InvalidArgumentError(
                "arms", None, f"change, and {what} needs arms that stay", "give arms= to the policy"
            )
        return self.arms.fixed
