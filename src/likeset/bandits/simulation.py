"""Play a policy in an environment and keep what happened."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array, IntArray, Mask
from likeset.arguments import choice as one_of
from likeset.arguments import file_path, flag, generator, positive_integer, writing
from likeset.bandits.arms import Arms
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.persistence.atomic_file import write_table
from likeset.progress import counted


@dataclass(frozen=True)
class Trace:
    """What happened, one entry per round.

    arm       index played; -1 on a continuous domain
    x         covariate played, shape (rounds, dim)
    y         observation, shape (rounds,) or, for survival, (rounds, 2)
    regret    best reward on offer minus the reward of the arm played, in means, not in noisy observations
    covered   whether the truth was in the set after the observation (True where coverage was not measured)
    width     mean of upper - lower of z over the arms after the observation; NaN where not measured
    seconds   time of ``ask`` and ``tell``
    empty     whether the policy had no set to go by, because it was empty, and a random arm was played
    """

    arm: IntArray
    x: Array
    y: Array
    regret: Array
    covered: Mask
    width: Array
    seconds: Array
    empty: Mask
    refuted: bool
    """Whether the set became empty: the data refuted the model at level alpha."""

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def cumulative_regret(self) -> Array:
        """Regret summed over rounds."""
        return np.cumsum(self.regret)

    @property
    def always_covered(self) -> bool:
        """Whether the truth was in the set after every round: what 1 - alpha promises."""
        return bool(self.covered.all())

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """One array per column, cumulative regret and round number included; survival y as time and event."""
        columns: dict[str, NDArray[Any]] = {"round": np.arange(1, len(self) + 1), "arm": self.arm}
        columns.update({f"x{j}": self.x[:, j] for j in range(self.x.shape[1])})
        columns.update({"y": self.y} if self.y.ndim == 1 else {"y": self.y[:, 0], "event": self.y[:, 1]})
        columns.update(regret=self.regret, cumulative_regret=self.cumulative_regret, covered=self.covered)
        columns.update(width=self.width, seconds=self.seconds, empty=self.empty)
        return columns

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write one line per round, with a header; flags as 0 and 1."""
        columns = {k: v.astype(int) if v.dtype == bool else v for k, v in self.as_dict().items()}
        with writing(file_path("path", path)) as target:
            write_table(target, [columns, *zip(*(column.tolist() for column in columns.values()), strict=True)])


def simulate(
    policy: Any,
    environment: Any,
    rounds: int,
    rng: Any,
    *,
    coverage: bool = True,
    width_every: int = 0,
    on_empty: str = "stop",
) -> Trace:
    """Let a policy play ``rounds`` rounds, or fewer if it stops by itself (``policy.stopped``).

    Parameters
    ----------
    policy       anything with ``ask`` and ``tell``; ``UCB``, ``Elimination``, ``LowerBound``, or your own
    environment  see :mod:`likeset.environments`
    rng          generator (or seed) of the observations, changing arms and random arms
    coverage     ask after every round whether the truth is in ``policy.seq.set`` (if the policy has a ``seq``)
    width_every  measure the band every so many rounds; 0: never (it costs two extrema per arm)
    on_empty     what to do when the set is empty, so that the policy cannot choose: "stop" (the trace ends) or
                 "explore" (play arms uniformly at random, marked in ``empty``)

    >>> import likeset as ls
    >>> env = ls.environments.linear(dim=2, n_arms=5, seed=1)
    >>> policy = ls.UCB(env.sequence(alpha=0.1), env.arms, reward=env.reward)
    >>> trace = ls.simulate(policy, env, rounds=20, rng=0)
    >>> len(trace), trace.always_covered, trace.refuted
    (20, True, False)
    """
    rounds = positive_integer("rounds", rounds)
    rng = generator(rng)
    coverage = flag("coverage", coverage)
    one_of("on_empty", on_empty, ("stop", "explore"))
    if not isinstance(width_every, (int, np.integer)) or isinstance(width_every, bool) or width_every < 0:
        raise InvalidArgumentError(
            "width_every", width_every, "is not a number of rounds", "pass 0 for never, or 1, 2, ..."
        )
    for name in ("ask", "tell"):
        if isinstance(policy, type) or not callable(getattr(policy, name, None)):
            raise InvalidArgumentError("policy", policy, f"has no {name}()", "pass e.g. UCB(seq, environment.arms)")
    if not callable(getattr(environment, "offer", None)):
        raise InvalidArgumentError(
            "environment",
            environment,
            "is not an environment",
            "make one with likeset.environments, e.g. from_function",
        )
    if getattr(policy, "reward", None) is not None and policy.reward.increasing is not environment.reward.increasing:
        raise InvalidArgumentError(
            "policy", policy, "seeks the opposite of what the environment pays", "give it reward=environment.reward"
        )
    box, dim = getattr(policy, "box", None), environment.space.covariate_shape[0]
    if box is not None and len(box) != dim:
        raise InvalidArgumentError(
            "policy",
            policy,
            f"plays in a box of {len(box)} coordinates, not {dim}",
            "give it bounds of the environment",
        )
    seq = getattr(policy, "seq", None)
    truth = getattr(environment, "theta", None)
    if coverage and seq is not None and truth is not None:
        try:  # now, rather than after the first round
            seq.set.contains(truth)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                "coverage", True, f"cannot be measured ({error})", "pass coverage=False, or use the environment's space"
            ) from error
    record: dict[str, list[Any]] = {f.name: [] for f in fields(Trace) if f.name != "refuted"}
    refuted = False
    for number in counted(range(1, rounds + 1), rounds, "playing"):
        if getattr(policy, "stopped", False):
            break
        stage = environment.offer(rng)
        changing = stage is not environment or _has_no_arms(policy)
        if not changing:
            _refuse_other_arms(policy, stage)
        start, empty = time.perf_counter(), False
        try:
            choice = policy.ask(stage.arms) if changing else policy.ask()
        except EmptySetError:
            refuted = empty = True
            if on_empty == "stop":
                break
            choice = _anything(policy, stage, rng)
        asked = time.perf_counter()
        arm, x, z = _played(policy, stage, choice)
        y = stage.family.sample(np.array([z]), rng)[0] if arm < 0 else stage.sample(arm, rng)
        told = time.perf_counter()
        policy.tell(choice, y)
        seconds = asked - start + time.perf_counter() - told

        record["arm"].append(arm)
        record["x"].append(x)
        record["y"].append(y)
        record["regret"].append(float(stage.rewards.max() - stage.reward(np.array([z]))[0]))
        record["seconds"].append(seconds)
        record["empty"].append(empty)
        record["covered"].append(bool(seq.set.contains(stage.theta)) if coverage and seq is not None else True)
        record["width"].append(_width(seq, stage) if width_every and number % width_every == 0 else np.nan)
    arrays = {name: np.array(values) for name, values in record.items()}
    if not record["arm"]:
        arrays["x"] = np.zeros((0, environment.space.covariate_shape[0]))
        arrays["covered"] = arrays["empty"] = np.zeros(0, dtype=bool)
    return Trace(**arrays, refuted=refuted)


def _has_no_arms(policy: Any) -> bool:
    """Whether a built-in policy waits for arms to be offered."""
    arms = getattr(policy, "arms", None)
    return isinstance(arms, Arms) and arms.fixed is None and not policy.continuous


def _refuse_other_arms(policy: Any, stage: Any) -> None:
    arms = getattr(policy, "arms", None)
    if isinstance(arms, Arms) and arms.fixed is not None and not np.array_equal(arms.fixed, stage.arms):
        raise InvalidArgumentError(
            "policy", policy, "plays other arms than the environment's", "give it arms=environment.arms"
        )


def _played(policy: Any, stage: Any, choice: Any) -> tuple[int, Array, float]:
    """(index or -1, covariate, true z) of a choice."""
    if not getattr(policy, "continuous", False):
        if not 0 <= int(choice) < len(stage.arms):
            raise InvalidArgumentError(
                "policy", policy, f"asked for arm {choice} of {len(stage.arms)}", "ask() must return an index"
            )
        return int(choice), stage.arms[int(choice)], float(stage.z[int(choice)])
    if stage.function is None:
        raise InvalidArgumentError(
            "environment", stage, "knows its function at the arms only", "use from_function for continuous domains"
        )
    x = np.asarray(choice, dtype=np.float64).reshape(-1)
    return -1, x, float(np.ravel(stage.function(x[None, :]))[0])


def _anything(policy: Any, stage: Any, rng: np.random.Generator) -> Any:
    if getattr(policy, "continuous", False):
        return rng.uniform(policy.box[:, 0], policy.box[:, 1])
    return int(rng.integers(len(stage.arms)))


def _width(seq: Any, stage: Any) -> float:
    """Mean width of the band over the arms; NaN without a set, or with an empty one."""
    if seq is None:
        return float("nan")
    try:
        low, high = seq.set.interval(stage.arms)
    except EmptySetError:
        return float("nan")
    return float(np.mean(high - low))
