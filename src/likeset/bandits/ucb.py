r"""Optimism: play the arm whose reward could be highest."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array
from likeset.arguments import flag, positive_integer
from likeset.bandits.continuous import Box, most_optimistic
from likeset.bandits.policy import Policy
from likeset.bandits.protocols import checked_sequence
from likeset.bandits.running import score_uppers
from likeset.bandits.ties import ranked
from likeset.errors import InvalidArgumentError


class UCB(Policy):
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
             choices are those of the full computation. ``None``: lazy unless the set says that its extrema are
             cheaper than the bookkeeping (``closed_form``: joint sets of Gaussian noise)
    until    when to stop: "best", {"best": eps}, {"gain": eps} or {"above": c} (:mod:`likeset.bandits.until`); then
             ``stopped`` is true and ``certificate`` says what is certain. ``None``: no end
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
        until: Any = None,
        rng: Any = None,
    ) -> None:
        checked_sequence(seq)
        lazy = None if lazy is None else flag("lazy", lazy)
        if lazy and not flag("running_intersection", running_intersection):
            raise InvalidArgumentError(
                "lazy", lazy, "needs the running intersection", "leave lazy out, or running_intersection on"
            )
        if bounds is not None and (arms is not None or getattr(seq.space, "domain", None) is not None):
            raise InvalidArgumentError(
                "bounds", bounds, "cannot stand beside arms or a finite domain", "give arms or bounds, not both"
            )
        super().__init__(
            seq, arms, reward=reward, bounds=bounds, running_intersection=running_intersection, until=until, rng=rng
        )  # fmt: skip
        self.lazy = lazy
        self._search = self._rng or np.random.default_rng(0)
        self._last: int | None = None

    def ask(self, arms: Any = None, n: Any = None) -> Any:
        """The index of the arm to play (of ``arms``, if given: contexts), or the covariate when there is a box.

        With ``n`` a list of so many different arms, the highest upper bounds of all; a box has one highest point only.
        """
        if not isinstance(self.arms, Box):
            return super().ask(arms, n)
        if arms is not None:
            raise self.arms.refused(arms)
        if n is not None:
            positive_integer("n", n, 1, "in a box one point is searched for")
        point = most_optimistic(self.seq.set, self.reward, self.arms, self._search)
        return point if n is None else [point]

    def _choose(self, rows: Array, n: int) -> list[int]:
        with SingleThreadedBlas():  # once, and not for every question
            ceilings = self._ceilings(rows)
        chosen = ranked(ceilings, n, self._rng)
        self._last = chosen[0] if rows is self.arms.fixed else None
        return chosen

    def _ceilings(self, rows: Array) -> Array:
        current = self.seq.set
        if not self.running_intersection:
            self._running.solves += len(rows)
            return score_uppers(current, self.reward, rows)
        played = self._last if rows is self.arms.fixed else None
        lazy = not getattr(current, "closed_form", False) if self.lazy is None else self.lazy
        return self._running.ceilings(current, rows, lazy, floor_of=played)
