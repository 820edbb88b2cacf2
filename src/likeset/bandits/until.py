r"""When to stop: one argument, ``until=``, and one kind of certificate.

    until                          stops when it is certain at level alpha ...                    certificate
    "best", {"best": 0}            which arm is best                                              ``arm``
    {"best": eps}                  of one arm that none is better by more than eps                ``arm``
    {"gain": eps}                  that nothing pays over eps more than one lower bound           ``arm``, ``lower``
    {"above": c}                   of every arm whether it pays more than c                       ``above``, ``below``
    {"above": c, "within": eps}    ... but for arms that pay c up to eps                          and ``near``

Sets hold at all times at once, so looking after every observation costs nothing, and the claim holds whenever it is
made. Amounts are in units of the reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import real_number
from likeset.errors import InvalidArgumentError

_REMEDY = 'use "best", {"best": 0.1}, {"gain": 0.1}, {"above": 1.5} or {"above": 1.5, "within": 0.1}'


@dataclass(frozen=True)
class Until:
    """What is to be certain: ``kind`` is "best", "gain" or "above"; ``amount`` eps or c; ``within`` for "above"."""

    kind: str
    amount: float = 0.0
    within: float = 0.0

    @property
    def settings(self) -> dict[str, float]:
        """As it was given, in a form that can be written down."""
        return {self.kind: self.amount} | ({"within": self.within} if self.within else {})


def checked_until(until: Any) -> Until | None:
    """What a user may say, made an :class:`Until`; None for no end.

    >>> checked_until("best"), checked_until({"above": 1.5, "within": 0.1}).settings
    (Until(kind='best', amount=0.0, within=0.0), {'above': 1.5, 'within': 0.1})
    """
    if until is None or isinstance(until, Until):
        return until
    if isinstance(until, str) and until == "best":
        return Until("best")
    if not isinstance(until, Mapping) or isinstance(until, type):
        raise InvalidArgumentError("until", until, "is no aim", _REMEDY)
    given = {str(key): until[key] for key in until}
    kinds = [kind for kind in ("best", "gain", "above") if kind in given]
    if len(kinds) != 1 or set(given) - {kinds[0], "within"} or ("within" in given and kinds != ["above"]):
        raise InvalidArgumentError("until", until, "is no aim, or more than one", _REMEDY)
    kind = kinds[0]
    amount, within = (
        real_number(f"until[{kind!r}]", given[kind]),
        real_number("until['within']", given.get("within", 0)),
    )
    tolerance = within if kind == "above" else amount
    if not 0.0 <= tolerance < np.inf or not np.isfinite(amount):
        raise InvalidArgumentError("until", until, "has a tolerance below zero, or no finite number", _REMEDY)
    if kind == "gain" and amount == 0.0:
        raise InvalidArgumentError("until", until, "will never be certain", 'allow some gain, or use "best"')
    return Until(kind, amount, within)


@dataclass(frozen=True)
class Certificate:
    """A claim about the arms, and what backs it.

    arm, x           the arm and its covariate; None where the claim is about all arms (``above``)
    alpha            the claim is wrong with probability at most alpha, whenever it is made
    epsilon          best, or nothing more to gain, up to this much reward; 0: no other arm is better
    lower, upper     bounds of the reward of the arm (of all arms, where the claim is about all)
    lead             advantage in z over every rival that was left at the stop; inf if all had been ruled out before
    n_observations   when the claim was made
    provable         whether the sets have a proof; if not, neither has the claim
    claim            "best", "gain" or "above"
    threshold        c of "above"
    above, below     arms that surely pay more than c, and arms that surely do not
    near             arms that are neither, but surely within epsilon of c
    """

    arm: int | None
    x: Array | None
    alpha: float
    epsilon: float
    lower: float
    upper: float
    lead: float
    n_observations: int
    provable: bool
    claim: str = "best"
    threshold: float = np.nan
    above: tuple[int, ...] = ()
    below: tuple[int, ...] = ()
    near: tuple[int, ...] = ()

    def __str__(self) -> str:
        sure = f"with probability at least {1 - self.alpha:g}, after {self.n_observations} observations"
        proof = "" if self.provable else " (as far as sets without a proof can tell)"
        if self.claim == "above":
            near = f", {_arms(self.near)} within {self.epsilon:g} of it" if self.near else ""
            return f"{_arms(self.above)} above {self.threshold:g}, {_arms(self.below)} not{near}, {sure}{proof}"
        what = f"arm {self.arm}" if self.arm is not None else f"x = {np.array2string(np.asarray(self.x), precision=4)}"
        if self.claim == "gain":
            more = f"and nothing on offer pays over {self.epsilon:g} more than that"
            return f"{what} pays at least {self.lower:.4g}, {more}, {sure}{proof}"
        best = "is best" if self.epsilon == 0 else f"is best up to {self.epsilon:g}"
        return f"{what} {best} {sure}; its reward lies between {self.lower:.4g} and {self.upper:.4g}{proof}"


def _arms(which: tuple[int, ...]) -> str:
    if len(which) > 12:
        return f"{len(which)} arms"
    return "no arm" if not which else f"arm{'s' * (len(which) > 1)} {', '.join(map(str, which))}"


def level_sets(low: Array, high: Array, until: Until) -> tuple[tuple[int, ...], ...] | None:
    """(above, below, near) from bounds of the rewards, if every arm is decided."""
    over, under = low > until.amount, high <= until.amount
    close = (low >= until.amount - until.within) & (high <= until.amount + until.within) & (until.within > 0)
    if not (over | under | close).all():
        return None
    parts = over, under & ~over, close & ~over & ~under
    return tuple(tuple(int(i) for i in np.flatnonzero(part)) for part in parts)
