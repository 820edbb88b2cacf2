r"""Safety: only points whose constraints are certified are asked for.

A constraint is an outcome of its own, with a family, a space and a sequence of its own: impurity as a number, failures
as events. A point is *certified* when the bounds of the constraint's mean over its confidence set (running
intersection) are on the safe side of the threshold, or when it belongs to the seed, which the user vouches for. The
sets hold at all times at once, so with several constraints, of error levels alpha_1, ..., alpha_m,

    P( an unsafe point is ever asked for )  <=  alpha_1 + ... + alpha_m     (and the seed, if it is unsafe),

whatever rule chooses among certified points. By default the levels share the alpha of the sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import error_level, positive, real_number
from likeset.bandits.deciding import most_telling
from likeset.bandits.rewards import INCREASING
from likeset.bandits.running import RunningBounds
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family, checked_family
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear

_TARGETS, _TELLS = 4, 0.01


class Below:
    """The constraint "the mean of this outcome is at most ``threshold``".

    family   the law of the outcome, e.g. ``Gaussian(0.02)`` for an impurity, ``Bernoulli()`` for failures
    space    where its parameter lives; ``None``: like that of the objective, with ``bound``
    bound    of the parameter's norm in that space; ``None``: the objective's
    alpha    the probability with which an unsafe point may ever be asked for on account of this constraint; ``None``:
             an equal share of the objective's alpha

    >>> from likeset.families import Bernoulli
    >>> Below(0.05, Bernoulli())
    Below(0.05, Bernoulli())
    """

    sign = 1.0

    def __init__(
        self, threshold: float, family: Any, *, space: Any = None, bound: Any = None, alpha: Any = None
    ) -> None:
        self.threshold = real_number("threshold", threshold)
        if not np.isfinite(self.threshold):
            raise InvalidArgumentError("threshold", threshold, "is not finite", "pass the limit of what is safe")
        self.family: Family = checked_family(family)
        if not callable(getattr(self.family, "mean", None)):
            raise InvalidArgumentError("family", family, "has no mean", "pass a family with a mean, e.g. Gaussian(0.1)")
        self.space, self.bound = space, None if bound is None else positive("bound", bound)
        self.alpha = None if alpha is None else error_level("alpha", alpha)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.threshold:g}, {self.family!r})"

    def start(self, name: str, like: Any, alpha: float) -> ConfidenceSequence:
        """The sequence of this constraint, over covariates as the objective's space ``like`` has them."""
        space = self.space
        if space is None and isinstance(like, RKHS):
            space = RKHS(like.kernel, self.bound or like.bound, like.domain, like.dim)
        elif space is None and isinstance(like, Linear):
            space = Linear(like.dim, self.bound or like.bound)
        made = ConfidenceSequence(self.family, space, self.alpha or alpha)
        if made.space.covariate_shape != like.covariate_shape:
            raise InvalidArgumentError(
                f"safe[{name!r}]", self, "takes other covariates than the objective", "pass a space of the same points"
            )
        return made


class Above(Below):
    """The constraint "the mean of this outcome is at least ``threshold``"; arguments are those of :class:`Below`."""

    sign = -1.0


class Safety:
    """Constraints by name, their sequences (made here unless they are given), and the seed."""

    def __init__(
        self, seq: Any, safe: Any, seed: Any, sequences: Mapping[str, ConfidenceSequence] | None = None
    ) -> None:
        self.constraints = _checked(safe) if sequences is None else dict(safe)
        share = seq.alpha / max(len(self.constraints), 1)
        self.sequences = (
            {name: c.start(name, seq.space, share) for name, c in self.constraints.items()}
            if sequences is None
            else dict(sequences)
        )
        self.alpha = sum(s.alpha for s in self.sequences.values())
        """P(an unsafe point is ever asked for), at most."""
        self.seed = np.zeros((0, *seq.space.covariate_shape))
        if seed is not None:
            if not self.constraints:
                raise InvalidArgumentError("seed", seed, "is of no use without constraints", "give safe=, too")
            self.seed = seq.space.covariates(seed, "seed")
        self._trusted = {row.tobytes() for row in self.seed}
        self._running = {n: RunningBounds(s.space, s.alpha, INCREASING) for n, s in self.sequences.items()}

    def expect(self, arms: Array | None) -> None:
        """Tell the sequences which points will be asked about."""
        for sequence in self.sequences.values():
            sequence.expect(arms, "inference")

    def certified(self, rows: Array) -> Mask:
        """Which rows may be asked for."""
        sure = np.ones(len(rows), dtype=bool)
        for name, constraint in self.constraints.items():
            left = np.flatnonzero(sure)
            if len(left):
                sure[left] = self.margins(name, constraint, rows[left]) >= 0.0
        return sure | np.array([row.tobytes() in self._trusted for row in rows], dtype=bool)

    def margins(self, name: str, constraint: Below, rows: Array) -> Array:
        """By how much the certified worst case of a constraint keeps its threshold."""
        low, high = self._running[name].intervals(self.sequences[name].set, rows)
        ends = np.stack([np.asarray(constraint.family.mean(end), dtype=np.float64) for end in (low, high)])
        worst = (constraint.sign * ends).max(axis=0)
        return np.asarray(constraint.sign * constraint.threshold - worst)

    def checked_outcomes(self, outcomes: Mapping[str, Any]) -> None:
        """All constraints, and nothing else, or a typed error."""
        if set(outcomes) != set(self.constraints):
            wanted = ", ".join(f"{name}=..." for name in self.constraints) or "no outcomes but y"
            raise InvalidArgumentError(
                "outcomes", sorted(outcomes), "are not those of the constraints", f"pass {wanted}"
            )
        for name, value in outcomes.items():
            self.sequences[name].family.observations(value)

    def tell(self, x: Array, outcomes: Mapping[str, Any]) -> None:
        """What was observed of every constraint at x."""
        for name, value in outcomes.items():
            self.sequences[name].update(x, value)

    def step_towards(self, rows: Array, scores: Array, free: Mask, allowed: Mask, deviations: float) -> int | None:
        """A certified row that tells most about the safety of the best row that is not; None if that does not pay.

        It pays if a row promises more than every certified one, may be safe as far as the beliefs go, and would be
        known better: by at least a hundredth of the constraint's deviation there.
        """
        if not free.any():
            return None
        worth = np.where(~allowed & (scores > scores[allowed].max()), scores, -np.inf)
        for name, constraint in self.constraints.items():
            belief = self.sequences[name].belief
            if belief is not None and np.isfinite(worth).any():
                mean, sd = belief.moments(rows)
                ends = [constraint.family.mean(mean + side * deviations * sd) for side in (-1.0, 1.0)]
                best = np.min([constraint.sign * np.asarray(end) for end in ends], axis=0)
                worth[best > constraint.sign * constraint.threshold] = -np.inf
        while np.isfinite(worth).any():
            target = int(np.argmax(worth))
            step = self._most_telling_about(rows, target, free)
            if step is not None:
                return step
            worth[target] = -np.inf
            worth[worth <= np.sort(worth)[-_TARGETS:].min()] = -np.inf  # a few are enough
        return None

    def _most_telling_about(self, rows: Array, target: int, free: Mask) -> int | None:
        question = np.zeros((1, len(rows)))
        question[0, target] = 1.0
        for name, constraint in self.constraints.items():
            belief = self.sequences[name].belief
            if belief is None or self.margins(name, constraint, rows[target : target + 1])[0] >= 0.0:
                continue
            step = most_telling(belief, rows, question, 1, free)[0]
            before = belief.moments(rows[target])[1][0]
            if belief.supposing(rows[step]).moments(rows[target])[1][0] < (1.0 - _TELLS) * before:
                return step
        return None

    def nothing(self, rows: Array) -> InvalidArgumentError:
        """What to say when no point is certified: how far the best one is, and what would help."""
        parts = []
        for name, constraint in self.constraints.items():
            margins = self.margins(name, constraint, rows)
            best = int(np.argmax(margins))
            parts.append(
                f"{name} can only be said to be within {-margins[best]:.3g} of its threshold at best, at {rows[best]}"
            )
        return InvalidArgumentError(
            "seed", self.seed, f"leaves nothing that is certified to be safe ({'; '.join(parts)})",
            "name points known to be safe as seed=, tell more observations of the constraints there "
            "(policy.tell of any point you trust), or give them a smaller bound, less noise or a wider threshold",
        )  # fmt: skip


def _checked(safe: Any) -> dict[str, Below]:
    if safe is None:
        return {}
    if not isinstance(safe, Mapping) or isinstance(safe, type) or not safe:
        raise InvalidArgumentError(
            "safe", safe, "is no table of constraints", 'pass {"impurity": ls.Below(0.1, ls.Gaussian(0.02))}'
        )
    for name, constraint in safe.items():
        if not isinstance(name, str) or not name.isidentifier() or name in ("arm", "y", "failed", "self"):
            raise InvalidArgumentError("safe", name, "cannot name an outcome", "use a plain word such as impurity")
        if not isinstance(constraint, Below):
            raise InvalidArgumentError(f"safe[{name!r}]", constraint, "is no constraint", "use ls.Below or ls.Above")
    return dict(safe)
