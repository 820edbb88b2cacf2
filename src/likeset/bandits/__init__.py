"""Policies over any sequence of confidence sets, environments to play in, and ``simulate``."""

from likeset.bandits import environments
from likeset.bandits.elimination import Elimination
from likeset.bandits.guarded import Guarded
from likeset.bandits.lower_bound import LowerBound
from likeset.bandits.policy import Policy, Recommendation
from likeset.bandits.rewards import Reward
from likeset.bandits.safety import Above, Below
from likeset.bandits.simulation import Trace, simulate
from likeset.bandits.ucb import UCB
from likeset.bandits.until import Certificate

__all__ = [
    "UCB", "Above", "Below", "Certificate", "Elimination", "Guarded", "LowerBound", "Policy", "Recommendation",
    "Reward", "Trace", "environments", "simulate",
]  # fmt: skip
