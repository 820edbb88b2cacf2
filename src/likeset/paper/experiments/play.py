"""One bandit run with one confidence sequence: for what arms pay, as in the paper, or for a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.bandits import UCB, Elimination, Guarded, Trace, simulate
from likeset.bandits.environments import Environment
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.methods import BELIEF, certifying_for, is_certifying, played_for


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
    if is_certifying(cell.method):
        return certificate_rows(cell, environment)
    method = played_for(environment.family, environment.space)[cell.method]
    sequence = method.build(environment.family, environment.space, cell.number("alpha"))
    run = play_by_belief if method.policy == BELIEF else play
    trace = run(environment, sequence, cell.count("rounds"), cell.rng(), cell.rng("ties"))
    return _rows_of(trace, method.provable)


def certificate_rows(cell: Cell, environment: Environment) -> Rows:
    """The same for a run of ``Elimination``, and how many arms may still be best, and whether the best one may.

    One arm left is the certificate; it is played from then on.
    """
    method = certifying_for(environment.family, environment.space)[cell.method]
    sequence = method.build(environment.family, environment.space, cell.number("alpha"))
    policy = _Watched(sequence, environment.arms, reward=environment.reward, rule=method.policy)
    rounds, best = cell.count("rounds"), environment.rewards.max()
    trace = simulate(policy, environment, rounds, cell.rng(), on_empty="explore")
    rows = _rows_of(trace, method.provable)
    rows["left"] = [len(arms) for arms in policy.left]
    rows["best_left"] = [bool(best in environment.rewards[arms]) for arms in policy.left]
    arm, so_far = policy.best, float(trace.cumulative_regret[-1])
    for after in range(1, rounds - len(trace) + 1) if arm is not None else ():
        lost = float(best - environment.rewards[arm])
        changed = {"t": len(trace) + after, "arm": arm, "regret": so_far + after * lost}
        for name, values in rows.items():
            values.append(changed.get(name, values[-1]))
    return rows


class _Watched(Elimination):
    """Elimination that keeps which arms were left after every round."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.left: list[Any] = []

    def tell(self, arm: Any, y: Any) -> None:
        super().tell(arm, y)
        self.left.append(self.active)


def _rows_of(trace: Trace, provable: bool) -> Rows:
    return {
        "provable": [provable] * len(trace),
        "t": list(range(1, len(trace) + 1)),
        "arm": trace.arm.tolist(),
        "regret": trace.cumulative_regret.tolist(),
        "covered": trace.covered.tolist(),
        "empty": trace.empty.tolist(),
    }
