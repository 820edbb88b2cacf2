r"""What a study that chooses its own rows adds to a definition; plain data, fixed when the study begins.

model        "linear": levels and slopes that add up, as in any study; "smooth": z is a smooth function of all factors
range        (low, high): what the mean outcome can be at all, anywhere; asked for by smooth models, which it scales
until        when to stop: {"gain": 1.0}, or "best", {"best": 1.0}, {"above": 50} where there are finitely many settings
safe         constraints by column: {"impurity": Below(0.05, Bernoulli())}
known_safe   settings, as rows of factors, that the user vouches for
failed       the column that is 1 where a run gave no outcome
seed         of all that is drawn at random when a choice is made
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likeset.arguments import choice, real_number
from likeset.bandits.safety import Above, Below
from likeset.bandits.until import Until, checked_until
from likeset.errors import InvalidArgumentError
from likeset.persistence.descriptions import describe, piece_from

MODELS = ("linear", "smooth")
FAILED, RUN = "failed", "run"
_MOST_SEED = 2**63 - 1
_KINDS = {"below": Below, "above": Above}


@dataclass(frozen=True)
class Campaign:
    """How a study chooses. ``given`` is false for a study that only records."""

    model: str = "linear"
    range: tuple[float, float] | None = None
    until: Until | None = None
    safe: Mapping[str, Below] = field(default_factory=dict)
    known_safe: tuple[Mapping[str, Any], ...] = ()
    failed: str = FAILED
    seed: int = 0

    @property
    def given(self) -> bool:
        """Whether anything was said about choosing: rows may then be failures, and constraints are heard."""
        return self.model != "linear" or self.until is not None or bool(self.safe) or self.failed != FAILED

    def to_json(self) -> dict[str, Any]:
        """Plain JSON without what is left at its default; empty for a study that only records."""
        found: dict[str, Any] = {
            "model": self.model,
            "range": None if self.range is None else list(self.range),
            "until": None if self.until is None else self.until.settings,
            "safe": {name: _described(constraint) for name, constraint in self.safe.items()},
            "known_safe": [dict(row) for row in self.known_safe],
            "failed": self.failed,
            "seed": self.seed,
        }
        plain: dict[str, Any] = {
            "model": "linear",
            "range": None,
            "until": None,
            "safe": {},
            "known_safe": [],
            "failed": FAILED,
        }
        return {part: value for part, value in found.items() if value != (plain | {"seed": 0})[part]}


def campaign(
    model: Any = "linear",
    range: Any = None,
    until: Any = None,
    safe: Any = None,
    known_safe: Any = None,
    failed: Any = None,
    seed: Any = 0,
) -> Campaign:
    """A campaign from what users, or a store, say."""
    ends = None
    if range is not None:
        if not isinstance(range, (tuple, list)) or len(range) != 2:
            raise InvalidArgumentError("range", range, "is no interval", "pass (low, high) of the mean outcome")
        ends = real_number("range", range[0]), real_number("range", range[1])
        if not -1e12 < ends[0] < ends[1] < 1e12:
            raise InvalidArgumentError("range", range, "is no interval", "pass (low, high) with low < high, finite")
    if failed is not None and (not isinstance(failed, str) or not failed):
        raise InvalidArgumentError("failed", failed, "names no column", "pass the name of a column")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _MOST_SEED:
        raise InvalidArgumentError("seed", seed, "is no seed", "pass a whole number from 0 on")
    rows = () if known_safe is None else _rows(known_safe)
    constraints = _constraints(safe)
    if rows and not constraints:
        raise InvalidArgumentError("known_safe", known_safe, "is of no use without constraints", "give safe=, too")
    return Campaign(
        choice("model", model, MODELS), ends, checked_until(until), constraints, rows, failed or FAILED, seed
    )


def _rows(known_safe: Any) -> tuple[Mapping[str, Any], ...]:
    rows = [known_safe] if isinstance(known_safe, Mapping) else known_safe
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidArgumentError(
            "known_safe", known_safe, "is no list of settings", 'pass rows of factors, [{"temperature": 40}]'
        )
    return tuple(dict(row) for row in rows)


def _constraints(safe: Any) -> dict[str, Below]:
    if safe is None:
        return {}
    if not isinstance(safe, Mapping) or isinstance(safe, type):
        raise InvalidArgumentError(
            "safe", safe, "is no table of constraints", 'pass {"impurity": ls.Below(0.1, ls.Gaussian(0.02))}'
        )
    found: dict[str, Below] = {}
    for name, constraint in safe.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError("safe", name, "names no column", "name constraints by their columns")
        if isinstance(constraint, Mapping):
            constraint = _constraint(name, constraint)
        if not isinstance(constraint, Below):
            raise InvalidArgumentError(f"safe[{name!r}]", constraint, "is no constraint", "use ls.Below or ls.Above")
        if constraint.space is not None:
            raise InvalidArgumentError(
                f"safe[{name!r}]", constraint, "has a space of its own", "leave it out: a study has one for all"
            )
        found[name] = constraint
    return found


def _described(constraint: Below) -> dict[str, Any]:
    return {
        "kind": "above" if isinstance(constraint, Above) else "below",
        "threshold": constraint.threshold,
        "family": describe(constraint.family),
        "bound": constraint.bound,
        "alpha": constraint.alpha,
    }


def _constraint(name: str, data: Mapping[str, Any]) -> Below:
    """A constraint as a store holds it."""
    if data.get("kind") not in _KINDS:
        raise InvalidArgumentError(f"safe[{name!r}]", data, "is no constraint", "use ls.Below or ls.Above")
    family = piece_from("family", data["family"], None)
    return _KINDS[data["kind"]](data["threshold"], family, bound=data["bound"], alpha=data["alpha"])
