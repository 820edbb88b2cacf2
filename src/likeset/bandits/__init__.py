"""Policies over any sequence of confidence sets, environments to play in, and ``simulate``."""

from likeset.bandits import environments
from likeset.bandits.elimination import Certificate, Elimination
from likeset.bandits.guarded import Guarded
from likeset.bandits.lower_bound import LowerBound
from likeset.bandits.policy import Policy, Recommendation
from likeset.bandits.rewards import Reward
from likeset.bandits.simulation import Trace, simulate
from likeset.bandits.ucb import UCB

__all__ = [
    "UCB", "Certificate", "Elimination", "Guarded", "LowerBound", "Policy", "Recommendation", "Reward", "Trace",
    "environments", "simulate",
]  # fmt: skip
