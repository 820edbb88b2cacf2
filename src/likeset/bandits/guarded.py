r"""Choice by belief, guarded by the certified set."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array, Mask
from likeset.arguments import flag, positive_integer, real_number
from likeset.bandits.believing import Beliefs, hopes
from likeset.bandits.continuous import Box
from likeset.bandits.failures import Failures
from likeset.bandits.guarded_box import SMALL, PointsOfBox
from likeset.bandits.learnt_scales import ScalesBelief
from likeset.bandits.policy import Policy
from likeset.bandits.safety import Safety
from likeset.bandits.ties import highest
from likeset.bandits.under_way import Choice, UnderWay
from likeset.errors import InvalidArgumentError
from likeset.progress import counted
from likeset.sequence import ConfidenceSequence

DEFAULT_INSURANCE = 0.05
_MOST_AT_ONCE = 1000


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
    bounds     a box instead of arms: a pair (low, high) for each coordinate, ``range(a, b)`` for integers, a set of
               numbers for categories; ``ask`` then returns a covariate, ``tell`` takes one
    insurance  eps, the share of rounds that are due, from 0 (none: no guarantee on regret) to 1
    belief     whose beliefs: ``None`` for those of the sequence's predictor; a predictor (``Mixture([1.0])``) or a
               fresh ``ConfidenceSequence`` (another family, kernel, length scale) that learns beside it; or any object
               with ``update(x, y)`` and ``belief``, which has ``moments(X)`` and ``supposing(X)``, as
               :class:`~likeset.Belief` has
    success    what is thought of runs that fail: ``None`` for a model made at the first ``tell(arm, failed=True)``,
               or a ``ConfidenceSequence(Bernoulli(), ...)`` of your own
    safe       constraints by name, {"impurity": ls.Below(0.1, ls.Gaussian(0.02))}: outcomes of their own, told as
               ``tell(arm, y, impurity=0.03)``. Only arms whose constraints are certified are asked for: the probability
               of ever asking for an unsafe one is at most ``policy.safety.alpha``
    seed       points that are known to be safe, to start from
    until      when to stop, as for :class:`~likeset.UCB`
    rng        breaks ties at random (generator or seed); ``None``: the lowest index wins

    An arm counts as ruled out when its upper bound, computed before it is played, is below the highest lower bound
    known; lower bounds are computed for arms that are played, and for all of them by ``intervals`` and ``recommend``.

    Several at once: ``ask(n=4)`` names four different arms (fewer, once fewer are not ruled out), one after the other,
    each as if the answers of those before, and of all that are ``pending``, were what the belief expects; the certified
    set is never told of imagined data. Answers may come in any order, through ``tell`` or ``seq.update``, **as long as
    when they come does not depend on what they are** (docs/bandits.md, late answers).

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
        bounds: Any = None,
        insurance: float = DEFAULT_INSURANCE,
        belief: Any = None,
        success: Any = None,
        safe: Any = None,
        seed: Any = None,
        until: Any = None,
        rng: Any = None,
    ) -> None:
        self.insurance = real_number("insurance", insurance)
        if not 0.0 <= self.insurance <= 1.0:
            raise InvalidArgumentError("insurance", insurance, "is no share of the rounds", "pass a number in [0, 1]")
        self._given = belief, success, safe, seed
        super().__init__(seq, arms, reward=reward, bounds=bounds, until=until, rng=rng)
        self.exploration = sqrt(2.0 * log(1.0 / self.seq.alpha))
        """Standard deviations above the mean that a choice by belief goes by."""
        self._out = UnderWay(seq)
        self._points: PointsOfBox | None = None
        if isinstance(self.arms, Box):
            search = self._rng or np.random.default_rng(0)
            self._points = PointsOfBox(self.arms, self.reward, self.safety, self._out, self._belief_scores, search)

    def _refuse(self, arms: Any) -> None:
        belief, success, safe, seed = self._given
        self._beliefs, self._failures = Beliefs(self.seq, belief), Failures(self.seq, success)
        self.safety = safe if isinstance(safe, Safety) else Safety(self.seq, safe, seed)
        """The constraints' sequences, and what they certify."""
        if self.safety.constraints and self.safety is not safe:
            self.safety.expect(self.arms.fixed)

    # -- what is out ----------------------------------------------------------------------------------------------

    @property
    def pending(self) -> Array:
        """Covariates asked for and not yet told, one row each, oldest first."""
        self._out.look()
        return self._out.covariates()

    @property
    def insured(self) -> int:
        """Number of rounds told so far that certified optimism chose."""
        self._out.look()
        return self._out.insured

    @property
    def successes(self) -> ConfidenceSequence | None:
        """The sequence of successes and failures, with sets of its own; None as long as nothing has failed."""
        return self._failures.sequence

    def tell(self, arm: Any, y: Any = None, failed: bool = False, **outcomes: Any) -> None:
        """What was observed at an arm (an index): y, or that the run failed and there is no y.

        A failure goes to the model of success, and not into the sets of the outcome, which stay valid as long as
        whether a run fails does not depend on the y it would have had. Failures that do (the best yields clog the
        tube) are not ignorable: what is certified is then the mean of y *where runs work*. ``outcomes`` are those of
        the constraints, by name; after a failure they may be left out.
        """
        x = self.arms.covariate(arm)
        if outcomes or not flag("failed", failed):
            self.safety.checked_outcomes(outcomes)
        if flag("failed", failed):
            if y is not None:
                raise InvalidArgumentError("y", y, "stands beside failed=True", "leave it out: a failed run has no y")
            self._failures.failed(x)
            self.safety.tell(x, outcomes)
            self._out.drop(x)
            return
        super().tell(arm, y)
        self.safety.tell(x, outcomes)
        self._beliefs.told(x, y)
        if isinstance(self.seq, ConfidenceSequence):
            self._out.look()
        else:
            self._out.arrived(x)
        self._failures.worked(x)

    def cancel(self, arm: Any) -> None:
        """A choice that will never be told, because the run was not made; forgotten without consequences."""
        self._out.look()
        self._out.cancel(self.arms.covariate(arm))

    def resume(self, X: Any) -> None:
        """Covariates that are under way although this policy did not ask for them: those of an earlier process, say."""
        self._out.choices += [Choice(x.copy()) for x in self.seq.space.covariates(X, "X")]

    @property
    def certified_regret(self) -> float:
        r"""sum_t [ g(U_T) - g(l_T(x_t)) ] over the answers told since the policy was made, with today's bounds.

        With probability at least 1 - alpha the true regret, in means, is below it, at all times at once. It costs the
        bounds of all arms, and takes arms that stay the same.
        """
        self._out.look()
        if isinstance(self.arms, Box):
            return self._certified_regret_in(self.arms)
        rows = self._fixed_rows("certified_regret")
        lower, upper = self.intervals()
        number_of = {row.tobytes(): i for i, row in enumerate(rows)}
        plays = self._out.plays.items()
        total = sum(count * (upper.max() - lower[number_of[x]]) for x, count in plays if x in number_of)
        return float(np.nextafter(total, np.inf)) if total else 0.0

    def safe_arms(self, arms: Any = None) -> NDArray[np.intp]:
        """The arms that are certified to be safe, the seed included; all of them without constraints."""
        return np.flatnonzero(self.safety.certified(self.arms.rows(arms)))

    # -- boxes ----------------------------------------------------------------------------------------------------

    def ask(self, arms: Any = None, n: Any = None) -> Any:
        """The index of the arm to play (of ``arms``, if given: contexts), or the covariate when there is a box.

        With ``n`` a list of so many different ones, each knowing of those before it and of those ``pending``.
        """
        if self._points is None:
            return super().ask(arms, n)
        if arms is not None:
            raise self._points.box.refused(arms)
        count = 1 if n is None else positive_integer("n", n, _MOST_AT_ONCE, "a batch is chosen point by point")
        self._out.look()
        chosen = self._points.chosen(self.seq, self._belief(), self.insurance, count)
        self._out.choices += chosen
        points = [choice.x.copy() for choice in chosen]
        return points[0] if n is None else points

    # -- choices --------------------------------------------------------------------------------------------------

    def _choose(self, rows: Array, n: int) -> list[int]:
        self._out.look()
        current, belief = self.seq.set, self._belief()
        chosen: list[int] = []
        taken: list[Choice] = []
        allowed = self.safety.certified(rows)
        if not allowed.any():
            raise self.safety.nothing(rows)
        free = allowed.copy()
        for _ in counted(range(n), n, "choosing"):
            if not free.any():
                break
            due = self._out.is_due(self.insurance, taken)
            top = self._optimistic(current, rows, free, taken) if due else None
            arm = self._believed_best(current, rows, belief, free, allowed) if top is None else top
            if arm is None:
                break
            free[arm] = False
            chosen.append(arm)
            slot = self._running.slots(rows)[arm]
            width = float(self._running.ceiling[slot] - self._running.floor[slot])
            taken.append(Choice(rows[arm].copy(), max(width, 0.0), due, top is not None))
            if len(chosen) < n:
                belief = belief.supposing(rows[arm : arm + 1])
        self._out.choices += (
            taken  # at the end: after an alarm, or an interrupt, nothing is out that nobody was told of
        )
        return chosen

    def _optimistic(self, current: Any, rows: Array, free: Mask, taken: list[Choice]) -> int | None:
        """The arm of a due round; None where what is left to gain is small enough to go by belief."""
        lazy = not getattr(current, "closed_form", False)
        ceilings = self._running.ceilings(current, rows, lazy)
        left = np.flatnonzero(free)
        top = int(left[highest(ceilings[left], self._rng)])
        self._running.intervals(current, rows, [top])
        known = self._running.floor[self._running.slots(rows)].max()
        if ceilings.max() - known <= SMALL * self._out.mean_width(taken) < np.inf:
            return None
        return top

    def _believed_best(self, current: Any, rows: Array, belief: Any, free: Mask, allowed: Mask) -> int | None:
        """The arm with the highest score under the beliefs of those that are free and not ruled out.

        Where an arm that is not certified to be safe promises more than any that is, and looking at a safe arm tells
        whether it is, that one is played instead: expansion where it pays.
        """
        scores = self._belief_scores(belief, rows)
        if not allowed.all():
            step = self.safety.step_towards(rows, scores, free, allowed, self.exploration)
            if step is not None:
                self._running.intervals(current, rows, [step])
                return step
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

    def _belief(self) -> Any:
        """As it is now, and as if what is under way had been answered as it expects."""
        belief = self._beliefs.now()
        return belief.supposing(self._out.covariates()) if self._out.choices else belief

    def _belief_scores(self, belief: Any, rows: Array) -> Array:
        if isinstance(belief, ScalesBelief):
            improvement, chances = belief.log_improvement(rows, self.reward.sign), self._failures.chances(rows)
            return improvement if chances is None else improvement + np.log(np.maximum(chances, 1e-300))
        scores, chances = hopes(belief, rows, self.reward.sign, self.exploration), self._failures.chances(rows)
        if chances is None:
            return scores
        expected = self.reward.sign * np.asarray(belief.moments(rows)[0])
        return chances * np.maximum(scores - expected.max(), 0.0)

    def _certified_regret_in(self, box: Box) -> float:
        choice, plays = self.recommend(), self._out.plays
        if choice.searched:
            raise InvalidArgumentError(
                "bounds", box, "is a box whose maximum cannot be certified", "use at most three continuous coordinates"
            )
        if not plays:
            return 0.0
        x = np.array([np.frombuffer(key, dtype=np.float64) for key in plays])
        lower = self.reward.band(*self.reward.score_bounds(*self.seq.set.interval(x)))[0]
        total = float(np.array(list(plays.values())) @ (choice.lower + choice.gap - lower))
        return float(np.nextafter(total, np.inf))

    def _fixed_rows(self, what: str) -> Array:
        if self.arms.fixed is None:
            raise InvalidArgumentError(
                "arms", None, f"change, and {what} needs arms that stay", "give arms= to the policy"
            )
        return self.arms.fixed
