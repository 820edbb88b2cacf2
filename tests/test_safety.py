"""Only points whose constraints are certified are asked for."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset.errors import InvalidArgumentError

FALSE_ALARM = 1e-6
GRID = np.linspace(0.0, 1.0, 33)


class Problem:
    """A yield that grows to the right and a constraint that is broken there, or on both sides."""

    def __init__(self, noise, two_sided=False):
        centres = np.array([[0.35], [0.75]]) if not two_sided else np.array([[0.5], [0.6]])
        kernel = RBF(0.35)
        k = kernel(GRID[:, None], centres)
        self.z = k @ (np.array([-1.6, 1.6]) if not two_sided else np.array([-1.0, -1.0]))
        self.reward = kernel(GRID[:, None], np.array([[0.8]]))[:, 0]
        self.family = {"gaussian": ls.Gaussian(0.1), "bernoulli": ls.Bernoulli(), "poisson": ls.Poisson()}[noise]
        self.mean = np.asarray(self.family.mean(self.z))
        self.threshold = float(np.quantile(self.mean, 0.75 if not two_sided else 0.6))
        self.seed = GRID[[int(np.argmin(self.mean))]]
        self.space = ls.RKHS(kernel, 2.5, domain=GRID)

    def policy(self, alpha, k, constraint=ls.Below, **options):
        safe = {"impurity": constraint(self.threshold, self.family, bound=3.0)}
        seq = ls.ConfidenceSequence(ls.Gaussian(0.1), self.space, alpha)
        return ls.Guarded(seq, safe=safe, seed=self.seed, rng=k, **options)

    def play(self, policy, rounds, rng):
        """Rounds, and how often an arm was asked for that is unsafe."""
        unsafe = 0
        for _ in range(rounds):
            arm = policy.ask()
            unsafe += self.mean[arm] > self.threshold
            impurity = self.family.sample(self.z[arm : arm + 1], rng)[0]
            policy.tell(arm, self.reward[arm] + 0.1 * rng.standard_normal(), impurity=impurity)
        return unsafe


@pytest.mark.parametrize(("noise", "two_sided", "rounds"), [("gaussian", False, 40), ("gaussian", True, 40),
                                                             ("poisson", False, 70),
                                                             ("bernoulli", False, 140)])  # fmt: skip
def test_from_the_seed_outward_with_many_certified_expansions(noise, two_sided, rounds):
    problem = Problem(noise, two_sided)
    policy = problem.policy(0.1, 0)
    assert policy.safe_arms().tolist() == [int(np.argmin(problem.mean))]
    assert problem.play(policy, rounds, np.random.default_rng(0)) == 0
    safe = policy.safe_arms()
    assert len(safe) >= 11 and (problem.mean[safe] <= problem.threshold).all()


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_an_unsafe_point_is_asked_for_as_seldom_as_promised(runs):
    alpha = 0.2
    problem = Problem("gaussian")
    bad = sum(problem.play(problem.policy(alpha, k), 20, np.random.default_rng([7, k])) > 0 for k in range(runs))
    assert bad <= binom.ppf(1 - FALSE_ALARM, runs, alpha)


def test_without_constraints_the_same_play_is_unsafe():
    """The negative control: what the objective alone would do."""
    problem = Problem("gaussian")
    policy = ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), problem.space, 0.1), rng=0)
    rng, unsafe = np.random.default_rng(0), 0
    for _ in range(25):
        arm = policy.ask()
        unsafe += problem.mean[arm] > problem.threshold
        policy.tell(arm, problem.reward[arm] + 0.1 * rng.standard_normal())
    assert unsafe > 5


def test_above_is_below_of_the_opposite():
    problem = Problem("gaussian")
    low, high = problem.policy(0.1, 0), problem.policy(0.1, 0)
    mirrored = ls.Guarded(
        ls.ConfidenceSequence(ls.Gaussian(0.1), problem.space, 0.1),
        safe={"purity": ls.Above(-problem.threshold, problem.family, bound=3.0)}, seed=problem.seed, rng=0,
    )  # fmt: skip
    rng = np.random.default_rng(3)
    for _ in range(12):
        arm = low.ask()
        assert arm == mirrored.ask()
        y, impurity = problem.reward[arm], problem.z[arm] + 0.1 * rng.standard_normal()
        low.tell(arm, y, impurity=impurity)
        mirrored.tell(arm, y, purity=-impurity)
    np.testing.assert_array_equal(low.safe_arms(), mirrored.safe_arms())
    assert high.safety.alpha == 0.1


def test_the_message_when_nothing_is_safe_says_what_would_help():
    problem = Problem("gaussian")
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), problem.space, 0.1)
    policy = ls.Guarded(seq, safe={"impurity": ls.Below(0.0, ls.Gaussian(0.1))})
    with pytest.raises(InvalidArgumentError, match=r"impurity can only be said to be within .* seed="):
        policy.ask()


def test_refusals():
    problem = Problem("gaussian")
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), problem.space, 0.1)
    for options in [{"safe": 3}, {"safe": {}}, {"safe": {"y": ls.Below(1, ls.Poisson())}}, {"safe": {"a": 3}},
                    {"seed": [0.0]}, {"safe": {"a": ls.Below(1, ls.Poisson())}, "seed": [0.123]},
                    {"safe": {"a": ls.Below(1, ls.Poisson(), space=ls.Linear(2, 1.0))}}]:  # fmt: skip
        with pytest.raises(ls.LikesetError):
            ls.Guarded(seq, **options)
    for arguments in [("low", ls.Poisson()), (np.inf, ls.Poisson()), (1.0, "Poisson"), (1.0, ls.Poisson)]:
        with pytest.raises(InvalidArgumentError):
            ls.Below(*arguments)
    policy = problem.policy(0.1, 0)
    arm = policy.ask()
    for wrong in [{}, {"purity": 0.1}, {"impurity": "much"}]:
        with pytest.raises(ls.LikesetError):
            policy.tell(arm, 0.3, **wrong)
    assert policy.seq.n_observations == 0 == policy.safety.sequences["impurity"].n_observations
    policy.tell(arm, failed=True)
    policy.tell(arm, 0.3, impurity=0.1)
