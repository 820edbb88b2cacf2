r"""What policies have in common: arms on offer, a reward, bounds of it, and a recommendation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, generator
from likeset.bandits.arms import Arms, how_many
from likeset.bandits.certified_maximum import can_certify, certified_maximum
from likeset.bandits.continuous import Box, most_optimistic, safest
from likeset.bandits.differences import difference_uppers
from likeset.bandits.protocols import checked_sequence, refuse_outcome
from likeset.bandits.rewards import as_reward, reach_of
from likeset.bandits.running import RunningBounds
from likeset.bandits.ties import highest
from likeset.bandits.until import Certificate, Until, checked_until, level_sets
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.sequence import ConfidenceSequence

_GAP_TOLERANCE, _GAP_SOLVES = 0.05, 4000  # of the width at x, and cells of the box


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What to play when exploring is over: the highest guarantee, and what it may cost.

    arm     the arm with the highest lower bound of the reward; None in a box
    x       its covariate
    lower   that bound: the arm pays at least this much, in the mean
    gap     largest upper bound of any arm's reward, minus ``lower``: nothing on offer pays more than lower + gap
    alpha   both hold with probability at least 1 - alpha, at all times at once

    In a box x is found by a search, and the largest upper bound by branch and bound over the whole box, where that is
    possible (:mod:`~likeset.bandits.certified_maximum`: up to three continuous coordinates and usual kernels; linear
    models); otherwise ``searched`` is true: the largest upper bound is that of a search, too.
    """

    arm: int | None
    x: Array
    lower: float
    gap: float
    alpha: float
    searched: bool = False

    def __str__(self) -> str:
        what = f"x = {np.array2string(self.x, precision=4)}" if self.arm is None else f"arm {self.arm}"
        searched = ", as far as a search of the box finds" if self.searched else ""
        return (
            f"{what} pays at least {self.lower:.4g}, and nothing on offer pays over {self.gap:.4g} more than that"
            f"{searched}, with probability at least {1 - self.alpha:g}"
        )


class Policy(ABC):
    """A rule that chooses arms by a sequence of confidence sets. A policy of one's own implements ``_choose``.

    seq      the sequence of sets, which holds all knowledge
    arms     what is on offer: a table, or a box of covariates
    reward   the :class:`~likeset.Reward` sought

    A fresh ``ConfidenceSequence`` is told what it is for, and of arms that are known from the start (``expect``), so
    that its automatic voices can be chosen for them. That is the last thing done when a policy is made: after an error
    the sequence is as it was.
    """

    purpose: ClassVar[str] = "optimism"
    """What a fresh sequence is told that its sets are for: "optimism" or "inference"."""

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        bounds: Any = None,
        running_intersection: bool = True,
        until: Any = None,
        rng: Any = None,
    ) -> None:
        self.seq = checked_sequence(seq)
        self.until = checked_until(until)
        """What is to be certain before the policy stops; None if it does not end by itself."""
        self._certificate: Certificate | None = None
        self._checked_for: Any = None
        self.running_intersection = flag("running_intersection", running_intersection)
        self._rng = None if rng is None else generator(rng)
        self.arms: Arms | Box = (
            Arms(seq.space, arms) if bounds is None else bounds if isinstance(bounds, Box) else Box(seq.space, bounds)
        )
        reach = reach_of(seq.space, self.arms.fixed, self.box)
        self.reward = as_reward(reward, getattr(seq, "family", None), reach)
        self._running = RunningBounds(seq.space, seq.alpha, self.reward)
        self._refuse(arms)
        if self.until is not None:
            self._refuse_until(self.until)
        if getattr(seq, "n_observations", None) == 0 and callable(getattr(seq, "expect", None)):
            seq.expect(self.arms.fixed, self._expected())  # competing sets have no voices to choose, and no such method

    def __repr__(self) -> str:
        family, count = getattr(self.seq, "family", None), getattr(self.seq, "n_observations", None)
        law = type(self.seq).__name__ if family is None else repr(family)
        told = "" if count is None else f", {count} observation{'s' * (count != 1)}"
        return f"<{type(self).__name__} over {self.arms!r}: {law}{told}>"

    @property
    def box(self) -> Array | None:
        """(low, high) of every coordinate where there is a box instead of arms."""
        return self.arms.box if isinstance(self.arms, Box) else None

    @property
    def continuous(self) -> bool:
        """Whether ``ask`` returns covariates of a box rather than indices."""
        return isinstance(self.arms, Box)

    @property
    def stopped(self) -> bool:
        """Whether what ``until`` asks for is certain; False for policies that do not end by themselves."""
        return self.certificate is not None

    @property
    def certificate(self) -> Certificate | None:
        """The claim that ends it, as soon as the sequence as it is now backs it; it stays as it was made.

        A policy over a sequence that was saved, loaded or fed by others has it at once, if that one backs it.
        """
        if self._certificate is None and self.until is not None:
            current = self.seq.set
            if current is not self._checked_for:
                try:
                    self._certificate = self._certified(current, self.until)
                except EmptySetError:
                    return None  # ask raises the alarm
                self._checked_for = current
        return self._certificate

    @property
    def solves(self) -> int:
        """Number of extrema computed so far."""
        return self._running.solves

    def ask(self, arms: Any = None, n: Any = None) -> Any:
        """The index of the arm to play (of ``arms``, if given: contexts), or a list of ``n`` different ones."""
        rows = self._offered(arms)
        count = None if n is None else how_many(n, len(rows))
        self.arms.offer(rows)
        chosen = self._choose(rows, count or 1)
        return chosen[0] if count is None else chosen

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm: an index of the arms offered last, or a covariate when there is a box.

        Arm and y are checked first: after an error nothing has changed.
        """
        x = self.arms.covariate(arm)
        refuse_outcome(self.seq, y)
        self.seq.update(x, y)

    def intervals(self, arms: Any = None) -> tuple[Array, Array]:
        """(lower, upper) of the reward of every arm, valid for all arms and at all times at once."""
        return self.reward.band(*self._score_bounds(self.arms.rows(arms)))

    def recommend(self, arms: Any = None) -> Recommendation:
        """The arm (of ``arms``, if given) or point with the highest lower bound of its reward, and its gap.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=2, bound=2.0), alpha=0.1)
        >>> seq.update([[1.0, 0.0], [0.0, 1.0]] * 40, [1.0, -1.0, 0.0, 0.0] * 20)
        >>> choice = ls.UCB(seq, [[1.0, 0.0], [0.0, 1.0]]).recommend()
        >>> choice.arm, choice.lower < 0.5 < choice.lower + choice.gap
        (0, True)
        """
        if isinstance(self.arms, Box):
            if arms is None:
                return self._recommended_point(self.arms)
            raise self.arms.refused(arms)
        rows = self._offered(arms)
        return self._recommended(rows, np.arange(len(rows)), *self._score_bounds(rows))

    def _expected(self) -> str:
        """The purpose that a fresh sequence is told."""
        return self.purpose

    @abstractmethod
    def _choose(self, rows: Array, n: int) -> list[int]:
        """Indices of ``n`` different rows, best first."""

    def _refuse(self, arms: Any) -> None:  # noqa: B027
        """Raise a typed error for arms that this policy cannot use; called before anything has changed."""

    def _refuse_until(self, until: Until) -> None:
        """Raise a typed error for an end that cannot be certified here."""
        if isinstance(self.arms, Box) and until.kind == "gain" and can_certify(self.seq.space, self.arms):
            return
        if self.arms.fixed is None:
            raise InvalidArgumentError(
                "until", until.settings, "needs arms that stay the same", "give arms= to the policy, or leave until out"
            )

    def _certified(self, current: Any, until: Until) -> Certificate | None:
        """The certificate for ``until``, if the set backs it."""
        if isinstance(self.arms, Box):
            best_point = self._recommended_point(self.arms)
            if best_point.gap > until.amount:
                return None
            return Certificate(
                None, best_point.x, self.seq.alpha, until.amount, best_point.lower, best_point.lower + best_point.gap,
                np.inf, self._counted(current), self._provable, claim="gain",
            )  # fmt: skip
        rows = self.arms.rows(None)
        low, high = self._score_bounds(rows)
        lowers, uppers = self.reward.band(low, high)
        best = highest(low, None)
        count, proved = self._counted(current), self._provable
        if until.kind == "above":
            parts = level_sets(lowers, uppers, until)
            if parts is None:
                return None
            return Certificate(
                None, None, self.seq.alpha, until.within, float(lowers.min()), float(uppers.max()), np.inf, count,
                proved,
                claim="above", threshold=until.amount, above=parts[0], below=parts[1], near=parts[2],
            )  # fmt: skip
        rivals = np.delete(np.arange(len(rows)), best)
        ahead = high[rivals] - low[best]
        direct = difference_uppers(current, self.reward.sign, rows[rivals], rows[best]) if len(rivals) else None
        ahead = ahead if direct is None else np.minimum(ahead, direct)
        gains = self.reward.of_scores(high[rivals]) - lowers[best]
        if self.reward.counts_scores and until.kind == "best":
            gains = np.minimum(gains, ahead)
        alone = bool((ahead < 0).all())
        if until.kind == "gain":
            gains = np.append(gains, uppers[best] - lowers[best])
        if not (alone and until.kind == "best") and not (until.amount > 0 and (gains <= until.amount).all()):
            return None
        epsilon = 0.0 if alone and until.kind == "best" else until.amount
        lead = float(-ahead.max()) if len(ahead) else np.inf
        lower, upper = float(lowers[best]), float(uppers[best])
        x = rows[best].copy()
        return Certificate(best, x, self.seq.alpha, epsilon, lower, upper, lead, count, proved, claim=until.kind)

    def _counted(self, current: Any) -> int:
        return int(getattr(current, "n_observations", getattr(self.seq, "n_observations", getattr(self, "_told", 0))))

    @property
    def _provable(self) -> bool:
        return bool(getattr(self.seq, "provable", True))

    def _offered(self, arms: Any) -> Array:
        """Checked rows to choose from."""
        return self.arms.rows(arms)

    def _score_bounds(self, rows: Array) -> tuple[Array, Array]:
        current = self.seq.set
        if self.running_intersection and not self.continuous:
            return self._running.intervals(current, rows)
        return self.reward.score_bounds(*current.interval(rows))

    def _recommended(self, rows: Array, among: Any, low: Array, high: Array, arm: int | None = None) -> Recommendation:
        """The row with the highest lower bound (or ``arm``) of the rows ``among``, whose scores have these bounds."""
        place = highest(low, None) if arm is None else int(np.flatnonzero(among == arm)[0])
        lowers, uppers = self.reward.band(low, high)
        chosen = int(among[place])
        return self._claim(chosen, rows[chosen], float(lowers[place]), float(uppers.max()))

    def _recommended_point(self, box: Box) -> Recommendation:
        current, rng = self.seq.set, np.random.default_rng(0)  # of its own: looking does not change what is asked next
        x = safest(current, self.reward, box, rng, box.observed(self.seq))
        if isinstance(self.seq, ConfidenceSequence) and can_certify(self.seq.space, box):
            low, high = self.reward.score_bounds(*current.interval(x[None, :]))
            tolerance = _GAP_TOLERANCE * float(high[0] - low[0])
            top = certified_maximum(current, self.seq.space, self.reward, box, tolerance, _GAP_SOLVES)
            lowers, uppers = self.reward.band(low, np.array([max(top, float(high[0]))]))
            return self._claim(None, x, float(lowers[0]), float(uppers[0]))
        peak = most_optimistic(current, self.reward, box, rng)
        lowers, uppers = self.reward.bounds(*current.interval(np.stack([x, peak])))
        return self._claim(None, x, float(lowers[0]), float(uppers.max()), searched=True)

    def _claim(self, arm: int | None, x: Array, lower: float, upper: float, searched: bool = False) -> Recommendation:
        # Upward, as bounds are rounded; a reward that overflows says nothing about what lies above it.
        gap = upper - lower if np.isfinite(lower) else np.inf
        gap = float(np.nextafter(gap, np.inf)) if gap > 0 else 0.0
        return Recommendation(arm, x.copy(), lower, gap, self.seq.alpha, searched)
