"""A realised quantity beside one bound on it, along one run."""

from __future__ import annotations

from dataclasses import dataclass

from likeset._typing import Array, IntArray


@dataclass(frozen=True)
class Track:
    """A realised quantity and one bound on it along one run.

    panel     what is bounded: "online regret", "set size", "bandit regret", "bias", "noise", ...
    name      who: the predictor or policy
    result    which result of the paper
    status    "proved"; "printed" (the display, where no proof covers it); "assumed" (an assumption is not checked)
    promise   probability with which it holds at all times at once
    """

    panel: str
    name: str
    result: str
    status: str
    promise: float
    t: IntArray
    realised: Array
    bound: Array

    @property
    def held(self) -> bool:
        """Whether the realised quantity never exceeded the bound."""
        return bool((self.realised <= self.bound * (1 + 1e-9) + 1e-9).all())
