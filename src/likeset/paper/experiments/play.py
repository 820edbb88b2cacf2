"""One bandit run: optimism with one confidence sequence, as in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.bandits import UCB, Guarded, Trace, simulate
from likeset.bandits.environments import Environment
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.methods import played_for


def play(
    environment: Environment, sequence: Any, rounds: int, rng: np.random.Generator, ties: np.random.Generator
) -> Trace:
    """Plain UCB: the bound of the current set only, no running intersection, which heuristic sets do not survive.

    Ties are broken at random: at the start many arms share the bound B, and the order of the grid must not decide.
    When a set is empty, arms are played at random from then on, and the rows say so.
    """
    policy = UCB(sequence, environment.arms, reward=environment.reward, running_intersection=False, rng=ties)
    return simulate(policy, environment, rounds, rng, on_empty="explore")


def play_by_belief(
    environment: Environment, sequence: Any, rounds: int, rng: np.random.Generator, ties: np.random.Generator
) -> Trace:
    """``Guarded`` with its default insurance: arms by belief, none that the certified set has ruled out."""
    policy = Guarded(sequence, environment.arms, reward=environment.reward, rng=ties)
    return simulate(policy, environment, rounds, rng, on_empty="explore")


def bandit_rows(cell: Cell, environment: Environment) -> Rows:
    """The rows of a cell that is one bandit run: regret so far, truth in the set, set empty, for every round."""
    method = played_for(environment.family, environment.space)[cell.method]
    sequence = method.build(environment.family, environment.space, cell.number("alpha"))
    run = play_by_belief if method.by_belief else play
    trace = run(environment, sequence, cell.count("rounds"), cell.rng(), cell.rng("ties"))
    return {
        "provable": [method.provable] * len(trace),
        "t": list(range(1, len(trace) + 1)),
        "arm": trace.arm.tolist(),
        "regret": trace.cumulative_regret.tolist(),
        "covered": trace.covered.tolist(),
        "empty": trace.empty.tolist(),
    }
