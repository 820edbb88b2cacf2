"""What a study is: factors or a formula, an outcome and its family, the question. Fixed when the study begins.

A definition is plain data: ``to_json`` and ``from_json`` are inverse to each other, and two studies are the same if
their
JSON is. It turns checked columns into covariates and outcomes (:meth:`Definition.batch`) and knows which rows of the
design are asked about (:mod:`~likeset.study.questions`).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, error_level, flag, positive
from likeset.errors import InvalidArgumentError
from likeset.families import FAMILIES
from likeset.families.answers import has_entries, size_name
from likeset.families.base import Family
from likeset.families.unknown import Unknown
from likeset.persistence.descriptions import describe, piece_from
from likeset.study.batch import Batch, read_batch
from likeset.study.campaign import campaign
from likeset.study.factors import Factor, Levels, factor, factors_of
from likeset.study.formulas import Formula, like_columns
from likeset.study.frames import Columns, columns_of
from likeset.study.spelling import near

GOALS = ("maximise", "minimise")
SIZES = ("trials", "exposure")
LONGEST_NAME = 200
CONSTANT = "(constant)"
_COMMON = {  # other names of families
    "normal": "gaussian is the normal law", "binary": "bernoulli is that of zeros and ones",
    "logit": "bernoulli is that of zeros and ones", "count": "poisson is that of counts",
    "counts": "poisson is that of counts", "survival": "weibull is one of lifetimes", "t": "studentt is Student's",
}  # fmt: skip


class Definition:
    """The definition of one study; see :class:`~likeset.study.study.Study` for what its parts mean."""

    def __init__(
        self,
        name: Any,
        *,
        outcome: Any,
        factors: Any = None,
        formula: Any = None,
        control: Any = None,
        goal: Any = "maximise",
        alpha: Any = 0.05,
        margin: Any = None,
        key: Any = None,
        event: Any = None,
        entry: Any = None,
        trials: Any = None,
        exposure: Any = None,
        offset: Any = None,
        bound: Any = None,
        units: Any = None,
        like: Any = None,
        alarm: Any = True,
        **choosing: Any,
    ) -> None:
        self.name = study_name(name)
        self.outcome, self.family = _outcome(outcome)
        self.goal = choice("goal", goal, GOALS)
        self.alpha = error_level("alpha", alpha)
        self.margin = None if margin is None else positive("margin", margin)
        self.key = None if key is None else column_name("key", key)
        given = {"event": event, "entry": entry, "trials": trials, "exposure": exposure, "offset": offset}
        self.roles: dict[str, str] = {r: column_name(r, c) for r, c in given.items() if c is not None}
        self.bound = math.inf if bound is None else positive("bound", bound, infinite=True)
        self.alarm = flag("alarm", alarm)
        self.units = "" if units is None else _text("units", units)
        self.formula: Formula | None = None
        self.like: dict[str, list[float]] = {}
        self._declared = factors_of(factors)
        if formula is not None:
            self._declared, self.like = _example(formula, self._declared, like)
            self.formula = Formula(formula, self._declared, self.like)
        elif like is not None:
            raise InvalidArgumentError("like", like, "stands without a formula", "leave it out")
        self.factors: tuple[Factor, ...] = self._declared if self.formula is None else self.formula.factors
        if not self.factors and self.formula is None:
            raise InvalidArgumentError(
                "factors", factors, "names nothing that outcomes may depend on", 'pass e.g. {"variant": ["A", "B"]}'
            )
        self.control = self._controls(control)
        self.campaign = campaign(**choosing)
        if self.smooth and self.formula is not None:
            raise InvalidArgumentError("model", "smooth", "stands beside a formula", "leave one of them out")
        self._check_columns()

    # -- as plain data ----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that says all of it."""
        described = {
            "name": self.name,
            "factors": {f.name: f.described() for f in self._declared},
            "formula": None if self.formula is None else self.formula.text,
            "like": self.like,
            "outcome": self.outcome,
            "family": describe(self.family),
            "control": self.control,
            "goal": self.goal,
            "alpha": self.alpha,
            "margin": self.margin,
            "key": self.key,
            "roles": self.roles,
            "bound": "inf" if math.isinf(self.bound) else self.bound,
            "units": self.units,
        }
        if not self.alarm:
            described["alarm"] = False
        if self.campaign.to_json():
            described["campaign"] = self.campaign.to_json()
        return described

    @classmethod
    def from_json(cls, data: Any, family: Family | None = None) -> Definition:
        """The definition whose ``to_json`` this is; ``family`` where it is the user's own."""
        family = piece_from("family", data["family"], family)
        made = cls(
            data["name"], outcome={data["outcome"]: family}, factors=data["factors"], control=data["control"] or None,
            goal=data["goal"], alpha=data["alpha"], margin=data["margin"], key=data["key"], units=data["units"],
            bound=math.inf if data["bound"] == "inf" else data["bound"], formula=data["formula"],
            like=data["like"] or None, alarm=data.get("alarm", True), **data["roles"], **data.get("campaign", {}),
        )  # fmt: skip
        return made

    # -- rows -------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the design's columns."""
        if self.formula is not None:
            return self.formula.columns
        if self.smooth:
            return tuple(f.name for f in self.factors)
        own = tuple(column for f in self.factors for column in f.columns)
        return own if self._has_levels else (CONSTANT, *own)

    @property
    def _has_levels(self) -> bool:
        return any(isinstance(f, Levels) for f in self.factors)

    @property
    def smooth(self) -> bool:
        """Whether z is a smooth function of all factors, one coordinate each, rather than a sum of their columns."""
        return self.campaign.model == "smooth"

    def batch(self, frame: Columns, failed: bool = False) -> Batch:
        """Rows of a frame, every cell checked; RowError names the first that cannot be used.

        Failed rows, all of them or those that the column says, need no outcome.
        """
        return read_batch(self, frame, failed)

    def covariates(self, recorded: Mapping[str, Array], frame: Columns | None = None) -> Array:
        """Rows of the design for recorded columns."""
        if self.formula is not None:
            x = self.formula.encoded(recorded)
        elif self.smooth:  # levels by their numbers: the kernel knows that these are no distances
            coordinates = [
                recorded[f.name] if isinstance(f, Levels) else f.encoded(recorded[f.name])[:, 0] for f in self.factors
            ]
            x = np.column_stack(coordinates)
        else:
            parts = [f.encoded(recorded[f.name]) for f in self.factors]
            x = np.hstack(parts if self._has_levels else [np.ones((len(parts[0]), 1)), *parts])
        broken = ~np.isfinite(x).all(axis=1)
        if broken.any() and frame is not None:
            index = int(np.argmax(broken))
            column = self.columns[int(np.argmin(np.isfinite(x[index])))]
            raise frame.error(column, index, "is not finite for this row", "mend the row, or the formula")
        return x + 0.0

    def asked(self, frame: Columns) -> Array:
        """Rows of the design for a frame without outcomes."""
        return self.covariates({f.name: f.recorded(frame) for f in self.factors}, frame)

    # -- checks -----------------------------------------------------------------------------------------------------

    def _controls(self, control: Any) -> dict[str, Any]:
        """The control level of each factor that has one."""
        if control is None:
            return {}
        with_levels = [f for f in self.factors if isinstance(f, Levels)]
        if not isinstance(control, Mapping):
            holder = [f for f in with_levels if f.number(control) is not None]
            if len(holder) != 1:
                known = "; ".join(f"{f.name}: {', '.join(map(str, f.values[:6]))}" for f in with_levels) or "none"
                problem = "is not a level of any factor" if not holder else "is a level of several factors"
                remedy = f"the levels are {known}; pass one of them" + (", as {factor: level}" if holder else "")
                raise InvalidArgumentError("control", control, problem, remedy)
            control = {holder[0].name: control}
        found = {}
        for name, level in control.items():
            f = next((f for f in with_levels if f.name == name), None)
            number = None if f is None else f.number(level)
            if f is None or number is None:
                raise InvalidArgumentError("control", level, f"is no level of {name!r}", "name one of the levels")
            found[name] = f.values[number]
        return found

    def _check_columns(self) -> None:
        names = [f.name for f in self.factors] + [self.outcome, *self.roles.values()]
        names += [self.key] if self.key is not None else []
        names += [*self.campaign.safe, *([self.campaign.failed] if self.campaign.given else [])]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise InvalidArgumentError("column", twice, "has two roles in the study", "use each column once")
        for role in SIZES:
            if role in self.roles and size_name(self.family) != role:
                raise InvalidArgumentError(
                    role, self.roles[role], f"means nothing for {self.family!r}", "leave it out, see docs/exposure.md"
                )
        if "entry" in self.roles and not has_entries(self.family):
            raise InvalidArgumentError(
                "entry", self.roles["entry"], f"means nothing for {self.family!r}", "leave it out, see docs/exposure.md"
            )
        lifetimes = bool(self.family.observation_shape)
        for role in ("event", "entry"):
            if role in self.roles and not lifetimes:
                raise InvalidArgumentError(
                    role, self.roles[role], f"is for lifetimes, not for {type(self.family).__name__}", "leave it out"
                )


def study_name(name: Any) -> str:
    """A name that can be typed and printed."""
    text = _text("name", name)
    if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable() or text != text.strip():
        raise InvalidArgumentError("name", name, "is no name", f"pass 1 to {LONGEST_NAME} printable characters")
    return text


def column_name(argument: str, name: Any) -> str:
    """The name of a column."""
    text = _text(argument, name)
    if not text:
        raise InvalidArgumentError(argument, name, "names no column", "pass the name of a column")
    return text


def family_named(text: Any) -> Family:
    """A built-in family as it is written on a command line. What can be unknown and is not given is unknown.

    >>> family_named("poisson"), family_named("weibull(shape=1.5)"), family_named("gaussian")
    (Poisson(), Weibull(shape=1.5), Gaussian(sigma=Unknown()))
    """
    known = {cls.__name__.lower(): cls for cls in FAMILIES}
    found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text) if isinstance(text, str) else None
    if found is None or found[1].lower() not in known:
        given_name = "" if found is None else found[1].lower()
        meant = f" ({_COMMON[given_name]})" if given_name in _COMMON else near(given_name, known)
        raise InvalidArgumentError("outcome", text, f"is no family{meant}", f"use one of {', '.join(sorted(known))}")
    cls: Any = known[found[1].lower()]
    given: dict[str, Any] = {}
    for part in filter(str.strip, (found[2] or "").split(",")):
        name, _, word = part.partition("=")
        try:
            given[name.strip()] = Unknown() if word.strip() == "unknown" else float(word)
        except ValueError:
            raise InvalidArgumentError("outcome", text, f"has {part.strip()!r} in it", "write name=number") from None
    parameters = inspect.signature(cls).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    missing = [name for name in names if name not in given]
    try:
        return cls(**dict.fromkeys(missing, Unknown()), **given)  # type: ignore[no-any-return]
    except (TypeError, AttributeError, InvalidArgumentError) as error:
        problem = f"must know its {' and '.join(missing)}" if missing else f"cannot be used ({error})"
        wanted = ", ".join(f"{name}=1.0" for name in names)
        raise InvalidArgumentError("outcome", text, problem, f"write e.g. {found[1].lower()}({wanted})") from None


def differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Parts of two definitions that are not the same."""
    parts = dict.fromkeys([*given, *stored])
    return {part: (stored.get(part), given.get(part)) for part in parts if stored.get(part) != given.get(part)}


def _outcome(outcome: Any) -> tuple[str, Family]:
    """Column and family: {"converted": Bernoulli()}, or a family alone, whose column is "outcome"."""
    column: Any = "outcome"
    if isinstance(outcome, Mapping):
        if len(outcome) != 1:
            raise InvalidArgumentError("outcome", outcome, "is not one column", 'pass {"converted": Bernoulli()}')
        ((column, outcome),) = outcome.items()
    if isinstance(outcome, str):
        outcome = family_named(outcome)
    if isinstance(outcome, type) or not isinstance(outcome, Family):
        raise InvalidArgumentError(
            "outcome", outcome, "is not a family", 'pass e.g. Bernoulli(), or {"converted": Bernoulli()}'
        )
    return column_name("outcome", column), outcome


def _example(
    formula: Any, declared: tuple[Factor, ...], like: Any
) -> tuple[tuple[Factor, ...], dict[str, list[float]]]:
    if like is None:
        return declared, {}
    return like_columns(formula, declared, columns_of(like, "like"))


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, value, "is no text", "pass a string")
    return value


__all__ = ["Batch", "Definition", "factor", "family_named"]
