"""Side by side with BoTorch: regret, the gap over time, cost per round, and whether what is claimed is true.

The same problems, noise and number of rounds for all. BoTorch's part is what its users write: ``SingleTaskGP`` with its
default kernel and priors, fitted anew before every choice, the variance of Gaussian noise given (ours knows it, too),
and ``UpperConfidenceBound`` or ``LogExpectedImprovement`` over all arms; counts go into it as they are. It starts with
three arms at random. Its band is the posterior mean with as many standard deviations as make it hold for all arms at
once, at one time; ours is the set's, which holds for all arms at all times.

BoTorch is no dependency, not even of the benchmarks, since it pulls a gigabyte of torch: ``pip install botorch``.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.stats import norm

import likeset as ls
from benchmarks.common import Array, Report

ALPHA, ROUNDS, RUNS, LOOKS, FIRST, FIRST_SEED = 0.1, 60, 12, (20, 40, 60), 3, 61_000
PROBLEMS: dict[str, Callable[[int], Any]] = {
    "1-D gaussian": lambda seed: ls.environments.paper_1d("gaussian"),
    "1-D poisson": lambda seed: ls.environments.paper_1d("poisson"),
    "camelback": lambda seed: ls.environments.camelback(),
    "random functions": lambda seed: ls.environments.random_function(seed),
}


class Ours:
    """A policy of likeset; its band is that of the rewards."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.ask, self.tell = policy, policy.ask, policy.tell

    def band(self) -> tuple[Array, Array]:
        """Bounds of every arm's reward."""
        return self.policy.intervals()


class BoTorch:
    """A Gaussian process of BoTorch with one of its acquisition functions, over arms."""

    def __init__(self, env: Any, kind: str, rng: np.random.Generator) -> None:
        import torch

        torch.set_num_threads(1)
        low, high = env.arms.min(axis=0), env.arms.max(axis=0)
        self.grid = torch.tensor((env.arms - low) / (high - low), dtype=torch.double)
        self.variance = env.family.sigma**2 if isinstance(env.family, ls.Gaussian) else None
        self.kind, self.rng = kind, rng
        self.told: list[tuple[int, float]] = []
        self.model: Any = None

    def ask(self) -> int:
        """The arm with the highest acquisition."""
        import torch
        from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound

        if len(self.told) < FIRST:
            return int(self.rng.integers(len(self.grid)))
        model = self._fitted()
        if self.kind == "UCB":
            acquisition = UpperConfidenceBound(model, beta=2.0 * np.log(1.0 / ALPHA))
        else:
            seen = self.grid[[arm for arm, _ in self.told]]
            acquisition = LogExpectedImprovement(model, best_f=model.posterior(seen).mean.max())
        with torch.no_grad():
            return int(acquisition(self.grid[:, None, :]).argmax())

    def tell(self, arm: int, y: float) -> None:
        """Remember, and fit anew: here, so that the cost of a round has it whoever asks for the band."""
        self.told.append((arm, float(y)))
        self.model = None
        if len(self.told) >= FIRST:
            self._fitted()

    def band(self) -> tuple[Array, Array]:
        """Mean and deviations of the posterior, for all arms at once (Bonferroni)."""
        import torch

        model = self._fitted()
        with torch.no_grad():
            posterior = model.posterior(self.grid)
            mean, sd = posterior.mean[:, 0].numpy(), posterior.variance[:, 0].sqrt().numpy()
        reach = norm.isf(ALPHA / (2 * len(mean))) * sd
        return mean - reach, mean + reach

    def _fitted(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        if self.model is None:
            x = self.grid[[arm for arm, _ in self.told]]
            y = torch.tensor([[y] for _, y in self.told], dtype=torch.double)
            noise = None if self.variance is None else torch.full_like(y, self.variance)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model = SingleTaskGP(x, y, train_Yvar=noise)
                fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
        return self.model


def players() -> dict[str, Callable[[Any, Any], Any]]:
    """Makers, by name."""
    made: dict[str, Callable[[Any, Any], Any]] = {
        "Guarded": lambda env, rng: Ours(ls.Guarded(env.sequence(ALPHA), env.arms, reward=env.reward, rng=rng)),
        "certified optimism": lambda env, rng: Ours(ls.UCB(env.sequence(ALPHA), env.arms, reward=env.reward, rng=rng)),
    }
    if importlib.util.find_spec("botorch") is not None:
        for kind in ("UCB", "EI"):
            made[f"BoTorch {kind}"] = lambda env, rng, kind=kind: BoTorch(env, kind, rng)
    return made


def play(player: Any, env: Any, rng: np.random.Generator) -> dict[str, Any]:
    """One run."""
    regret, spent, gaps, always, claims = 0.0, 0.0, [], True, []
    for t in range(1, ROUNDS + 1):
        began = time.process_time()
        arm = player.ask()
        spent += time.process_time() - began
        y = env.sample(arm, rng)
        began = time.process_time()
        player.tell(arm, y)
        spent += time.process_time() - began
        regret += float(env.rewards.max() - env.rewards[arm])
        if t <= FIRST:
            continue
        low, high = player.band()
        inside = (low <= env.rewards) & (env.rewards <= high)
        always &= bool(inside.all())
        if t in LOOKS:
            chosen = int(np.argmax(low))
            gaps.append(float(high.max() - low[chosen]))
            claims.append(bool(env.rewards[chosen] >= low[chosen] and env.rewards.max() <= high.max()))
    return {
        "regret": regret, "gaps": gaps, "always": always, "inside": float(inside.mean()), "claims": claims,
        "ms": 1e3 * spent / ROUNDS,
    }  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """Every problem, every player."""
    report = Report(
        f"Beside BoTorch, {ROUNDS} rounds",
        [
            ("problem", "problem", ""), ("player", "player", ""), ("regret", "median regret", ".1f"),
            *((f"gap{t}", f"gap at {t}", ".2f") for t in LOOKS), ("true", "claims that are true", ""),
            ("always", "all arms inside at all times", ""), ("inside", "arms inside at the end (%)", ".1f"),
            ("ms", "ms per round", ".1f"),
        ],
    )  # fmt: skip
    runs, made = 2 if quick else RUNS, players()
    task = progress.add_task("peers", total=len(PROBLEMS) * len(made) * runs)
    for problem, make in PROBLEMS.items():
        for name, build in made.items():
            games = []
            for k in range(runs):
                env = make(FIRST_SEED + k)
                player = build(env, np.random.default_rng([1, k]))
                games.append(play(player, env, np.random.default_rng([FIRST_SEED, k])))
                progress.advance(task)
            gaps = np.median([game["gaps"] for game in games], axis=0)
            report.records.append(
                {"problem": problem, "player": name, "regret": float(np.median([game["regret"] for game in games])),
                 **{f"gap{t}": float(gap) for t, gap in zip(LOOKS, gaps, strict=True)},
                 "true": f"{sum(sum(game['claims']) for game in games)}/{runs * len(LOOKS)}",
                 "always": f"{sum(game['always'] for game in games)}/{runs}",
                 "inside": 100.0 * float(np.mean([game["inside"] for game in games])),
                 "ms": float(np.median([game["ms"] for game in games]))}
            )  # fmt: skip
    report.notes.append(
        f"{runs} runs each, alpha = {ALPHA:g}. Claims, at rounds {', '.join(map(str, LOOKS))}: the arm with the "
        "highest lower bound pays at least that, and no arm more than that and the gap."
    )
    if "BoTorch EI" not in made:
        report.notes.append("BoTorch is not installed: pip install botorch")
    return report
