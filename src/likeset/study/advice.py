"""What a study says when it is asked what to do: a recommendation, or a claim that ends it, in the user's words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from likeset.study.numerals import number


@dataclass(frozen=True)
class Recommended:
    """The setting with the best guarantee, and what it may cost.

    setting    the factors, as the user writes them
    bound      the mean outcome there is at least this (goal "maximise"), or at most this ("minimise")
    gap        no setting on offer is better than ``bound`` by more than this
    estimate   the mean outcome that the beliefs expect there; no guarantee
    alpha      both hold with probability at least 1 - alpha, at all times at once
    rows       number of rows told
    searched   the gap is as far as a search finds, and not certified over all settings
    """

    setting: dict[str, Any]
    bound: float
    gap: float
    estimate: float
    alpha: float
    rows: int
    searched: bool
    outcome: str
    units: str
    goal: str

    def __str__(self) -> str:
        units = f" {self.units}" if self.units else ""
        side = "at least" if self.goal == "maximise" else "at most"
        gap = (
            f"no setting is better than that by more than {number(self.gap)}{units}"
            if math.isfinite(self.gap)
            else "how much better another setting may be is not known yet"
        )
        searched = ", as far as a search finds" if self.searched and math.isfinite(self.gap) else ""
        mean = f"the mean of {self.outcome} is {side} {number(self.bound)}{units}"
        sure = f"with probability at least {1 - self.alpha:g}, after {self.rows:,} rows"
        return f"{setting_text(self.setting)}: {mean}, and {gap}{searched}, {sure}"

    def to_json(self) -> dict[str, Any]:
        """Plain data; infinite numbers are None."""
        finite = {k: v if math.isfinite(v) else None for k, v in (("bound", self.bound), ("gap", self.gap))}
        return {
            "setting": self.setting, **finite, "estimate": self.estimate, "alpha": self.alpha, "rows": self.rows,
            "searched": self.searched, "outcome": self.outcome, "units": self.units, "goal": self.goal,
            "text": str(self),
        }  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """What ``until`` asks for, certain at level alpha.

    kind      "best", "gain" or "above"
    setting   the setting it is about; None where it is about all of them
    above, below, near   for "above": the settings that pay more than the threshold, that do not, and those near it
    """

    kind: str
    setting: dict[str, Any] | None
    text: str
    alpha: float
    rows: int
    above: tuple[dict[str, Any], ...] = ()
    below: tuple[dict[str, Any], ...] = ()
    near: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind, "setting": self.setting, "text": self.text, "alpha": self.alpha, "rows": self.rows,
            "above": list(self.above), "below": list(self.below), "near": list(self.near),
        }  # fmt: skip


def setting_text(setting: dict[str, Any]) -> str:
    """A setting in one line, whole numbers as such.

    >>> setting_text({"temperature": 41.25, "hours": 3.0, "catalyst": "X"})
    'temperature = 41.25, hours = 3, catalyst = X'
    """
    whole = {k: int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else v for k, v in setting.items()}
    return ", ".join(f"{name} = {value}" for name, value in whole.items())
