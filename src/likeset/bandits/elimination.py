r"""Find the best arm and prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset.arguments import real_number
from likeset.bandits.arms import Arms
from likeset.bandits.differences import difference_uppers
from likeset.bandits.protocols import Array, checked_sequence
from likeset.bandits.rewards import as_reward, reach_of
from likeset.bandits.running import RunningBounds
from likeset.bandits.ties import highest
from likeset.errors import EmptySetError, InvalidArgumentError


@dataclass(frozen=True)
class Certificate:
    """The claim "this arm is best", and what backs it.

    arm, x           the arm and its covariate
    alpha            the claim is wrong with probability at most alpha, whenever it is made
    epsilon          best up to this much reward; 0: no other arm is better
    lower, upper     bounds of the reward of the arm
    lead             advantage in z over every rival that was left at the stop; inf if all had been ruled out before
    n_observations   when the claim was made
    provable         whether the sets have a proof; if not, neither has the claim
    """

    arm: int
    x: Array
    alpha: float
    epsilon: float
    lower: float
    upper: float
    lead: float
    n_observations: int
    provable: bool

    def __str__(self) -> str:
        best = "is best" if self.epsilon == 0 else f"is best up to {self.epsilon:g}"
        proof = "" if self.provable else " (as far as sets without a proof can tell)"
        return (
            f"arm {self.arm} {best} with probability at least {1 - self.alpha:g}, after {self.n_observations} "
            f"observations; its reward lies between {self.lower:.4g} and {self.upper:.4g}{proof}"
        )


class Elimination:
    r"""Best-arm identification with a certified stop, for any likelihood.

    An arm is ruled out when every plausible parameter makes another one better, and the last arm left is best with
    probability at least 1 - alpha, however long it took (the sets hold at all times at once):

        rule out b if   max { s x_b'theta : C }  <  min { s x_a'theta : C }     (running intersection of intervals)
                 or if  max { s (x_b - x_a)'theta : C }  <  0                   (what a and b share cancels)

    with a the *leader*, the arm with the highest lower bound, and s = +1 or -1 the direction of the reward. Differences
    are used where the set bounds them (likelihood-ratio sets, and any set over a Linear space).

    The rule for asking: of the arms that are left, the one with the widest interval of z; ties go to the lower index.
    Any other rule is as valid: ``tell`` whatever you observed, of any arm, asked for or not.

    Parameters
    ----------
    seq      a ``ConfidenceSequence``, or anything with ``update``, ``set``, ``space`` and ``alpha``
    arms     covariates, one row each, all different; ``None``: the domain of an RKHS
    reward   monotone function of z, as for :class:`~likeset.UCB`
    epsilon  stop as soon as the leader is best up to this much reward. With 0, exact ties between best arms never end

    When the set is empty, ``refuted`` is true and ``ask`` raises :class:`~likeset.EmptySetError`; a certificate already
    given stays as it was.

    >>> import numpy as np
    >>> import likeset as ls
    >>> arms, theta, rng = np.eye(3), np.array([0.0, 1.0, 0.3]), np.random.default_rng(0)
    >>> policy = ls.Elimination(ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), alpha=0.05), arms)
    >>> while not policy.stopped:
    ...     i = policy.ask()
    ...     policy.tell(i, arms[i] @ theta + 0.5 * rng.normal())
    >>> policy.best, policy.certificate.alpha
    (1, 0.05)
    """

    continuous = False

    def __init__(self, seq: Any, arms: Any = None, *, reward: Any = "increasing", epsilon: float = 0.0) -> None:
        self.seq = checked_sequence(seq)
        self.epsilon = real_number("epsilon", epsilon)
        if not 0.0 <= self.epsilon < np.inf:
            raise InvalidArgumentError("epsilon", epsilon, "is not a tolerance", "pass a number >= 0")
        self.arms = Arms(seq.space, arms)
        if self.arms.fixed is None:
            raise InvalidArgumentError("arms", arms, "leaves nothing to choose from", "pass the arms to compare")
        self._rows = self.arms.fixed
        self.reward = as_reward(reward, getattr(seq, "family", None), reach_of(seq.space, self._rows))
        if len(np.unique(self._rows, axis=0)) < len(self._rows):
            raise InvalidArgumentError("arms", arms, "has an arm twice", "pass each arm once")
        self.certificate: Certificate | None = None
        self.refuted = False
        self._told = 0
        self._running = RunningBounds(seq.space, seq.alpha, self.reward)
        self._active: NDArray[np.intp] = np.arange(len(self._rows))
        self._seen: Any = None
        self._next = 0
        self._look()

    @property
    def active(self) -> NDArray[np.intp]:
        """The arms that may still be best."""
        return self._active.copy()

    @property
    def stopped(self) -> bool:
        """Whether the best arm is certified."""
        return self.certificate is not None

    @property
    def best(self) -> int | None:
        """The certified best arm, or None as long as there is none."""
        return None if self.certificate is None else self.certificate.arm

    @property
    def solves(self) -> int:
        """Number of extrema computed so far."""
        return self._running.solves

    def ask(self, arms: Any = None) -> int:
        """The arm to observe next; after the stop, the best arm. Arms cannot change on the way."""
        if arms is not None and not np.array_equal(self.arms.rows(arms), self._rows):
            raise InvalidArgumentError("arms", arms, "are not those being compared", "use UCB for changing arms")
        if self.certificate is not None:
            return self.certificate.arm
        if self._seen is not self.seq.set:  # the sequence was fed from elsewhere
            self._look()
        if self.refuted:
            raise EmptySetError(self.seq.alpha)
        return self._next if self.certificate is None else self.certificate.arm

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm (an index)."""
        self.seq.update(self.arms.covariate(arm), y)
        self._told += 1
        if self.certificate is None:
            self._look()

    def intervals(self) -> tuple[Array, Array]:
        """(lower, upper) of the reward of every arm, valid for all arms and at all times at once."""
        low, high = self._running.intervals(self.seq.set, self._rows)
        return self.reward.band(low, high)

    def _look(self) -> None:
        current = self._seen = self.seq.set
        try:
            floors, ceilings = self._running.intervals(current, self._rows, self._active)
            leader = highest(floors, None)
            keep = ceilings >= floors[leader]
            keep[leader] = True
            self._active, floors, ceilings = self._active[keep], floors[keep], ceilings[keep]
            leader = int(np.count_nonzero(keep[:leader]))
            rivals = np.delete(np.arange(len(self._active)), leader)
            ahead = self._differences(current, leader, rivals, floors, ceilings)
        except EmptySetError:
            self.refuted = True
            return
        left = ahead >= 0
        if len(rivals) == 0 or not left.any() or self._close_enough(floors[leader], ceilings[rivals], ahead):
            self._certify(leader, floors[leader], ceilings[leader], ahead)
            return
        kept = np.sort(np.append(rivals[left], leader))
        self._active = self._active[kept]
        self._next = int(self._active[highest((ceilings - floors)[kept], None)])

    def _differences(self, current: Any, leader: int, rivals: Any, floors: Array, ceilings: Array) -> Array:
        """Upper bounds of score of rival - score of leader."""
        apart = ceilings[rivals] - floors[leader]
        if len(rivals) == 0:
            return apart
        rows, best = self._rows[self._active[rivals]], self._rows[self._active[leader]]
        direct = difference_uppers(current, self.reward.sign, rows, best)
        if direct is None:
            return apart
        self._running.solves += len(rivals)
        return np.minimum(apart, direct)

    def _close_enough(self, floor: float, ceilings: Array, ahead: Array) -> bool:
        if self.epsilon == 0.0:
            return False
        gap = self.reward.of_scores(ceilings) - self.reward.of_scores(np.array([floor]))
        if self.reward.counts_scores:
            gap = np.minimum(gap, ahead)
        return bool((gap <= self.epsilon).all())

    def _certify(self, leader: int, floor: float, ceiling: float, ahead: Array) -> None:
        arm = int(self._active[leader])
        self.certificate = Certificate(
            arm=arm,
            x=self._rows[arm].copy(),
            alpha=self.seq.alpha,
            epsilon=0.0 if (ahead < 0).all() else self.epsilon,
            lower=float(self.reward.of_scores(np.array(floor))),
            upper=float(self.reward.of_scores(np.array(ceiling))),
            lead=float(-ahead.max()) if len(ahead) else np.inf,
            n_observations=int(getattr(self.seq, "n_observations", self._told)),
            provable=bool(getattr(self.seq, "provable", True)),
        )
        self._active = np.array([arm])
