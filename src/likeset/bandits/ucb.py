r"""Optimism: play the arm whose reward could be highest."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import flag, generator
from likeset.bandits.arms import Arms
from likeset.bandits.continuous import checked_box, most_optimistic
from likeset.bandits.protocols import Array, checked_sequence
from likeset.bandits.rewards import as_reward, reach_of
from likeset.bandits.running import RunningBounds, score_uppers
from likeset.bandits.ties import highest
from likeset.errors import InvalidArgumentError
from likeset.families import Gaussian
from likeset.sequence import ConfidenceSequence


class UCB:
    r"""Play the arm with the highest upper confidence bound of its reward, over any sequence of sets.

        ask:   i_t = argmax_i  max { g(x_i'theta) : theta in C_t }          tell:   C_{t+1} from (x_i, y)

    Parameters
    ----------
    seq      a ``ConfidenceSequence``, or anything with ``update``, ``set``, ``space`` and ``alpha``
    arms     covariates, one row each; ``None``: the domain of an RKHS, or arms given at every ``ask(arms)``. A fresh
             ``ConfidenceSequence`` is told of them (``expect``), so that its automatic windows can be built around them
    reward   monotone function g of z = x'theta: "increasing" (z), "decreasing" (-z: survival, where larger z is a
             shorter life), "mean" (E[y given z] of the family), or a function such as ``np.exp``. Functions are looked
             at over every z that the arms and the bound on theta can reach (|z| <= 8 where arms or bound are not known)
    bounds   a box instead of arms, for continuous domains: ``ask`` then returns a covariate, ``tell`` takes one
    running_intersection   bound each arm by its smallest upper bound of all rounds so far (still valid), not only by
             the current one. Not for boxes, where arms do not come back
    lazy     with running intersection, solve only for arms whose bound can have fallen and which can still win; the
             choices are those of the full computation. ``None``: lazy unless the sets are Gaussian joint sets, whose
             extrema are cheaper than the bookkeeping
    rng      breaks ties at random (generator or seed); ``None``: the lowest index wins. Bounds within a relative 1e-6
             of the highest are ties

    An empty set, or an empty running intersection, raises :class:`~likeset.EmptySetError` at ``ask``: the data refute
    the model. All knowledge is in ``seq``: saving it saves the policy, but for the running intersection, which starts
    anew.

    >>> import numpy as np
    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=2.0), alpha=0.1)
    >>> policy = ls.UCB(seq, arms=[[1.0, 0.0], [0.0, 1.0]], reward="mean")
    >>> for y in (0, 0, 0):
    ...     i = policy.ask()
    ...     policy.tell(i, y)
    >>> low, high = policy.intervals()             # of the mean count of each arm
    >>> bool(high[0] < high[1]) or bool(high[1] < high[0])
    True
    """

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        bounds: Any = None,
        running_intersection: bool = True,
        lazy: bool | None = None,
        rng: Any = None,
    ) -> None:
        self.seq = checked_sequence(seq)
        self.running_intersection = flag("running_intersection", running_intersection)
        lazy = None if lazy is None else flag("lazy", lazy)
        if lazy and not self.running_intersection:
            raise InvalidArgumentError(
                "lazy", lazy, "needs the running intersection", "leave lazy out, or running_intersection on"
            )
        self._rng = None if rng is None else generator(rng)
        self.box: Array | None = None
        if bounds is not None:
            if arms is not None or getattr(seq.space, "domain", None) is not None:
                raise InvalidArgumentError(
                    "bounds", bounds, "cannot stand beside arms or a finite domain", "give arms or bounds, not both"
                )
            self.box = checked_box(bounds, seq.space.covariate_shape[0])
            self._search = self._rng or np.random.default_rng(0)
        self.arms = Arms(seq.space, arms)
        family, reach = getattr(seq, "family", None), reach_of(seq.space, self.arms.fixed, self.box)
        self.reward = as_reward(reward, family, reach)
        if arms is not None and isinstance(seq, ConfidenceSequence) and seq.n_observations == 0:
            seq.expect(arms)
        self.lazy = not _closed_form(seq) if lazy is None else lazy
        self._running = RunningBounds(seq.space, seq.alpha, self.reward)
        self._last: int | None = None

    @property
    def continuous(self) -> bool:
        """Whether ``ask`` returns covariates of a box rather than indices."""
        return self.box is not None

    @property
    def solves(self) -> int:
        """Number of extrema computed so far."""
        return self._running.solves

    def ask(self, arms: Any = None) -> Any:
        """The index of the arm to play (of ``arms``, if given: contexts), or the covariate when there is a box."""
        if self.box is not None:
            if arms is not None:
                raise InvalidArgumentError("arms", arms, "cannot be offered beside a box", "leave arms or bounds out")
            return most_optimistic(self.seq.set, self.reward, self.box, self._search)
        rows = self.arms.offer(arms)
        chosen = highest(self._scores(rows), self._rng)
        self._last = chosen if rows is self.arms.fixed else None
        return chosen

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm: an index of the arms offered last, or a covariate when there is a box."""
        x = self.arms.covariate(arm) if self.box is None else self._inside(arm)
        self.seq.update(x, y)

    def intervals(self, arms: Any = None) -> tuple[Array, Array]:
        """(lower, upper) of the reward of every arm, valid for all arms and at all times at once."""
        if arms is None and self.box is not None:
            raise InvalidArgumentError("arms", None, "is needed with a box", "pass the covariates to look at")
        rows = self.arms.rows(arms)
        current = self.seq.set
        if self.running_intersection and self.box is None:
            low, high = self._running.intervals(current, rows)
        else:
            low, high = self.reward.score_bounds(*current.interval(rows))
        return self.reward.band(low, high)

    def _scores(self, rows: Array) -> Array:
        current = self.seq.set
        if not self.running_intersection:
            self._running.solves += len(rows)
            return score_uppers(current, self.reward, rows)
        played = self._last if rows is self.arms.fixed else None
        return self._running.ceilings(current, rows, self.lazy, floor_of=played)

    def _inside(self, x: Any) -> Array:
        rows = self.seq.space.covariates(x, "x")
        if len(rows) != 1:
            raise InvalidArgumentError("x", x, f"has {len(rows)} covariates", "tell one observation at a time")
        return np.asarray(rows[0])


def _closed_form(seq: Any) -> bool:
    return isinstance(getattr(seq, "family", None), Gaussian) and getattr(seq, "windows", None) is None
