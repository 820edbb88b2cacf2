r"""Find the best arm and prove it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array, Mask
from likeset.arguments import choice, real_number
from likeset.bandits.deciding import most_telling
from likeset.bandits.differences import announced_order, difference_uppers
from likeset.bandits.policy import Policy, Recommendation
from likeset.bandits.ties import highest, ranked
from likeset.bandits.until import Certificate, Until, checked_until
from likeset.errors import EmptySetError, InvalidArgumentError


class Elimination(Policy):
    r"""Best-arm identification with a certified stop, for any likelihood.

    An arm is ruled out when every plausible parameter makes another one better, and the last arm left is best with
    probability at least 1 - alpha, however long it took (the sets hold at all times at once):

        rule out b if   max { s x_b'theta : C }  <  min { s x_a'theta : C }     (running intersection of intervals)
                 or if  max { s (x_b - x_a)'theta : C }  <  0                   (what a and b share cancels)
                 or if  b is beaten by a                                        (duels, :mod:`likeset.voices.duels`)

    with a the *leader*, the arm with the highest lower bound, and s = +1 or -1 the direction of the reward. Differences
    are used where the set bounds them (likelihood-ratio sets, and any set over a Linear space), duels where the
    sequence has them: a fresh one takes them for arms that tell nothing about each other.

    The rule for asking, ``rule="soonest"``: the arm, ruled out or not, whose observation takes most from the variance
    of the difference between the leader and its strongest rival (the one that may be furthest ahead), under the beliefs
    of the sequence's predictor (:mod:`~likeset.bandits.deciding`). ``rule="widest"``: of the arms that are left, the
    one with the widest interval of z; also where the sequence has no beliefs. Any other rule is as valid: ``tell``
    whatever you observed, of any arm, asked for or not.

    Parameters
    ----------
    seq      a ``ConfidenceSequence``, or anything with ``update``, ``set``, ``space`` and ``alpha``
    arms     covariates, one row each, all different; ``None``: the domain of an RKHS
    reward   monotone function of z, as for :class:`~likeset.UCB`
    epsilon  stop as soon as the leader is best up to this much reward. With 0, exact ties between best arms never end
    until    another aim: {"gain": eps}, {"above": c}, ... (:mod:`likeset.bandits.until`), instead of epsilon
    rule     "soonest" or "widest"

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

    purpose = "inference"

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        epsilon: float = 0.0,
        until: Any = None,
        rule: str = "soonest",
    ) -> None:
        self.rule = choice("rule", rule, ("soonest", "widest"))
        self.epsilon = real_number("epsilon", epsilon)
        if not 0.0 <= self.epsilon < np.inf:
            raise InvalidArgumentError("epsilon", epsilon, "is not a tolerance", "pass a number >= 0")
        if until is not None and self.epsilon > 0:
            raise InvalidArgumentError("epsilon", epsilon, "stands beside until", 'say until={"best": epsilon}')
        super().__init__(seq, arms, reward=reward, until=checked_until(until) or Until("best", self.epsilon))
        assert self.until is not None
        self.epsilon = self.until.amount if self.until.kind == "best" else self.epsilon
        self._pair: tuple[int, int] | None = None  # leader and strongest rival
        self._refuted = False
        self._told = 0
        self._left: NDArray[np.intp] = np.arange(len(self._rows))
        self._widths = np.zeros(len(self._rows))
        self._seen: tuple[int | None, Any] | None = None
        self._look()

    @property
    def active(self) -> NDArray[np.intp]:
        """The arms that may still be best (that are undecided, for "above"); after the stop, the certified one."""
        self._look()
        if self._certificate is None:
            return self._left.copy()
        return np.array([] if self._certificate.arm is None else [self._certificate.arm], dtype=np.intp)

    @property
    def certificate(self) -> Certificate | None:
        """The claim that an arm is best, as soon as the sequence as it is now backs one; it stays as it was made."""
        self._look()
        return self._certificate

    @property
    def refuted(self) -> bool:
        """Whether the data refuted the model before an arm was certified."""
        self._look()
        return self._refuted

    @property
    def best(self) -> int | None:
        """The certified best arm, or None as long as there is none."""
        certificate = self.certificate
        return None if certificate is None else certificate.arm

    def ask(self, arms: Any = None, n: Any = None) -> Any:
        """The arm to observe next; after the stop, the best arm. Arms cannot change on the way.

        With ``n`` a list of so many different arms, each chosen as if those before it had been observed; by the rule
        "widest" the n widest arms that are left, fewer once fewer are left.
        """
        return super().ask(arms, n)

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm (an index)."""
        super().tell(arm, y)
        self._told += 1
        self._look()

    def recommend(self, arms: Any = None) -> Recommendation:
        """The certified arm; before the stop, the one with the highest lower bound. Ruled-out arms make no gap."""
        rows = self._offered(arms)
        self._look()
        if self._refuted:
            raise EmptySetError(self.seq.alpha)
        low, high = self._running.intervals(self.seq.set, rows, self._left)
        certified = None if self._certificate is None else self._certificate.arm
        return self._recommended(rows, self._left, low, high, certified)

    @property
    def _rows(self) -> Array:
        return self.arms.rows(None)

    def _refuse(self, arms: Any) -> None:
        if self.arms.fixed is None:
            raise InvalidArgumentError("arms", arms, "leaves nothing to choose from", "pass the arms to compare")
        if len(np.unique(self._rows, axis=0)) < len(self._rows):
            raise InvalidArgumentError("arms", arms, "has an arm twice", "pass each arm once")

    def _offered(self, arms: Any) -> Array:
        if arms is not None and not np.array_equal(self.arms.rows(arms), self._rows):
            raise InvalidArgumentError("arms", arms, "are not those being compared", "use UCB for changing arms")
        return self._rows

    def _expected(self) -> str:
        """Duels tell which arm is best, and nothing else."""
        assert self.until is not None
        if self.until.kind != "best" or self.until.amount > 0.0:
            return self.purpose
        return "largest" if self.reward.sign > 0 else "smallest"

    def _choose(self, rows: Array, n: int) -> list[int]:
        self._look()
        if self._certificate is not None:
            return [highest(self._running.floors(self.seq.set, rows), None)] if self.best is None else [self.best]
        if self._refuted:
            raise EmptySetError(self.seq.alpha)
        belief = getattr(self.seq, "belief", None) if self.rule == "soonest" else None
        if belief is not None:
            return most_telling(belief, rows, self._directions(), n)
        widest = ranked(self._widths, min(n, len(self._left)), None)
        return [int(arm) for arm in self._left[widest]]

    def _look(self) -> None:
        """Take note of the sequence as it is now, unless that was done; a certificate and an alarm are final."""
        if self._certificate is not None or self._refuted:
            return
        count, current = getattr(self.seq, "n_observations", None), self.seq.set
        if self._seen is not None:
            seen, last = self._seen
            if current is last or (count is not None and count == seen):
                return
        try:
            self._compare(current)
        except EmptySetError:
            self._refuted = True
        self._seen = count, current  # at the end: whatever interrupts, the next one looks again

    def _directions(self) -> Array:
        """Combinations of arms whose z decides: leader minus strongest rival, or every arm that is undecided."""
        assert self.until is not None
        if self.until.kind == "above" or self._pair is None:
            return np.eye(len(self._rows))[self._left]
        difference = np.zeros((1, len(self._rows)))
        difference[0, self._pair[0]], difference[0, self._pair[1]] = 1.0, -1.0
        return difference

    def _compare(self, current: Any) -> None:
        """Rule out arms, and certify what ends it."""
        assert self.until is not None
        if self.until.kind == "above":
            self._compare_with_level(current, self.until)
            return
        floors, ceilings = self._running.intervals(current, self._rows, self._left)
        leader = highest(floors, None)
        keep = ceilings >= floors[leader]
        keep[leader] = True
        left, floors, ceilings = self._left[keep], floors[keep], ceilings[keep]
        leader = int(np.count_nonzero(keep[:leader]))
        rivals = np.delete(np.arange(len(left)), leader)
        ahead = self._differences(current, left, leader, rivals, floors, ceilings)
        behind = self._behind(current, left[leader], left[rivals], ahead)
        kept = np.sort(np.append(rivals[~behind], leader))
        self._left, self._widths = left[kept], (ceilings - floors)[kept]
        strongest = int(np.argmax(np.where(behind, -np.inf, ahead))) if len(rivals) else 0
        self._pair = (int(left[leader]), int(left[rivals[strongest]])) if len(rivals) else None
        if self.until.kind == "gain":
            self._certificate = self._certified(current, self.until)
        elif len(kept) == 1 or self._close_enough(floors[leader], ceilings[rivals], ahead):
            self._certify(current, int(left[leader]), floors[leader], ceilings[leader], ahead, bool(behind.all()))

    def _compare_with_level(self, current: Any, until: Until) -> None:
        low, high = self._running.intervals(current, self._rows)
        lowers, uppers = self.reward.band(low, high)
        close = (lowers >= until.amount - until.within) & (uppers <= until.amount + until.within)
        open_ = ~((lowers > until.amount) | (uppers <= until.amount) | (close & (until.within > 0)))
        self._left, self._widths = np.flatnonzero(open_), (high - low)[open_]
        self._certificate = self._certified(current, until)

    def _differences(
        self, current: Any, left: NDArray[np.intp], leader: int, rivals: Any, floors: Array, ceilings: Array
    ) -> Array:
        """Upper bounds of score of rival - score of leader."""
        apart = ceilings[rivals] - floors[leader]
        if len(rivals) == 0:
            return apart
        rows, best = self._rows[left[rivals]], self._rows[left[leader]]
        direct = difference_uppers(current, self.reward.sign, rows, best)
        if direct is None:
            return apart
        self._running.solves += len(rivals)
        return np.minimum(apart, direct)

    def _behind(self, current: Any, leader: int, rivals: NDArray[np.intp], ahead: Array) -> Mask:
        """Which rivals are not best: behind by the set, or beaten by the leader in a duel."""
        behind = ahead < 0
        if hasattr(current, "beaten") and self._expected() == announced_order(self.seq) and not behind.all():
            open_ = np.flatnonzero(~behind)
            behind[open_] = current.beaten(self._rows[rivals[open_]], self._rows[[leader]])
        return behind

    def _close_enough(self, floor: float, ceilings: Array, ahead: Array) -> bool:
        if self.epsilon == 0.0:
            return False
        gap = self.reward.of_scores(ceilings) - self.reward.of_scores(np.array([floor]))
        if self.reward.counts_scores:
            gap = np.minimum(gap, ahead)
        return bool((gap <= self.epsilon).all())

    def _certify(self, current: Any, arm: int, floor: float, ceiling: float, ahead: Array, alone: bool) -> None:
        self._certificate = Certificate(
            arm=arm,
            x=self._rows[arm].copy(),
            alpha=self.seq.alpha,
            epsilon=0.0 if alone else self.epsilon,
            lower=float(self.reward.of_scores(np.array(floor))),
            upper=float(self.reward.of_scores(np.array(ceiling))),
            lead=max(0.0, float(-ahead.max())) if len(ahead) else np.inf,  # duels say who, and not by how much
            n_observations=self._counted(current),
            provable=self._provable,
        )
