"""Choice by belief, guarded by the certified set."""

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset.errors import InvalidArgumentError

FALSE_ALARM = 1e-6


class Stubborn:
    """A belief that never learns: one arm is far better than all others."""

    def __init__(self, favourite):
        self.favourite = favourite

    def update(self, x, y):
        pass

    @property
    def belief(self):
        return self

    def moments(self, rows):
        return np.where(np.arange(len(rows)) == self.favourite, 100.0, 0.0), np.full(len(rows), 1e-3)

    def supposing(self, rows):
        return self


def worst(env):
    return int(np.argmin(env.rewards))


# -- beliefs -----------------------------------------------------------------------------------------------------------


def test_belief_is_the_exact_gaussian_process_posterior():
    rng = np.random.default_rng(0)
    env = ls.environments.random_function(1)
    seq = ls.ConfidenceSequence(env.family, env.space, predictor=ls.Mixture([0.25]))
    arms = rng.integers(len(env.arms), size=12)
    for arm in arms:
        seq.update(env.arms[arm], env.sample(arm, rng))
    K, sigma2 = env.space.domain_gram / 0.25, env.family.sigma**2
    gain = np.linalg.solve(K[np.ix_(arms, arms)] + sigma2 * np.eye(12), K[arms])
    mean, sd = seq.belief.moments(env.arms)
    np.testing.assert_allclose(mean, gain.T @ seq.ledger.y.rows, atol=1e-6)
    np.testing.assert_allclose(sd**2, np.diag(K - gain.T @ K[arms]), atol=1e-6)

    more = np.append(arms, [3, 3, 40])
    gain = np.linalg.solve(K[np.ix_(more, more)] + sigma2 * np.eye(15), K[more])
    supposed = seq.belief.supposing(env.arms[[3, 3, 40]]).moments(env.arms)
    np.testing.assert_allclose(supposed[0], mean, atol=1e-6)
    np.testing.assert_allclose(supposed[1] ** 2, np.diag(K - gain.T @ K[more]), atol=1e-6)


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Laplace(0.5), ls.Poisson(), ls.Logistic(0.5)], ids=repr)
def test_looking_at_beliefs_changes_nothing(family, tmp_path):
    def fed(look):
        rng = np.random.default_rng(1)
        seq = ls.ConfidenceSequence(family, ls.Linear(3, 1.0))
        for _ in range(8):
            x = rng.standard_normal(3)
            seq.update(x, family.sample(np.array([0.1]), rng)[0])
            if look:
                seq.belief.moments(np.eye(3))
        return seq

    plain, looked = fed(False), fed(True)
    assert np.array_equal(plain.ledger.log_q.rows, looked.ledger.log_q.rows)
    draws = np.array([looked.belief.draw(np.eye(3), np.random.default_rng(k)) for k in range(2000)])
    mean, sd = looked.belief.moments(np.eye(3))
    assert (np.abs(draws.mean(axis=0) - mean) < 6 * sd / np.sqrt(2000)).all()
    assert ls.ConfidenceSequence(family, ls.Linear(3, 1.0), predictor=ls.FTRL()).belief is None


# -- choices -----------------------------------------------------------------------------------------------------------


def test_certified_regret_bounds_the_regret_and_sets_cover():
    runs, alpha, missed, above = 40, 0.1, 0, 0
    for k in range(runs):
        env = ls.environments.linear(dim=2, family=ls.Bernoulli(), seed=k, bound=2.0, reward="mean")
        policy = ls.Guarded(env.sequence(alpha), env.arms, reward=env.reward, rng=k)
        trace = ls.simulate(policy, env, 40, np.random.default_rng([1, k]))
        missed += not trace.always_covered
        above += trace.regret.sum() > policy.certified_regret
        choice = policy.recommend()
        above += choice.lower + choice.gap < env.rewards.max()
    assert missed <= binom.ppf(1 - FALSE_ALARM, runs, alpha)
    assert above <= binom.ppf(1 - FALSE_ALARM, runs, alpha)


def test_regret_is_well_below_that_of_optimism():
    def regret(make):
        total = []
        for k in range(4):
            env = ls.environments.paper_1d()
            policy = make(env.sequence(0.1), env.arms, reward=env.reward, rng=k)
            total.append(ls.simulate(policy, env, 120, np.random.default_rng([2, k]), coverage=False).regret.sum())
        return np.mean(total)

    assert regret(ls.Guarded) < 0.75 * regret(ls.UCB)


def test_a_stubbornly_wrong_belief_is_overruled():
    env = ls.environments.linear(dim=2, n_arms=10, seed=3)
    runs = {}
    for insurance in (0.0, 0.1):
        policy = ls.Guarded(env.sequence(0.1), env.arms, insurance=insurance, belief=Stubborn(worst(env)))
        runs[insurance] = ls.simulate(policy, env, 200, np.random.default_rng(4), coverage=False)
    # Without insurance nothing else is ever looked at, and nothing rules the favourite out.
    assert (runs[0.0].arm == worst(env)).all()
    # With it the favourite is ruled out, and then never played again.
    insured = runs[0.1]
    last = np.flatnonzero(insured.arm == worst(env))[-1]
    assert last < 120
    assert insured.regret.sum() < 0.6 * runs[0.0].regret.sum()


def test_arms_that_are_ruled_out_are_never_played():
    env = ls.environments.linear(dim=2, n_arms=10, seed=3)
    policy = ls.Guarded(env.sequence(0.1), env.arms, insurance=0.2, belief=Stubborn(worst(env)))
    rng = np.random.default_rng(5)
    ruled_out = np.zeros(10, dtype=bool)
    for _ in range(80):
        arm = policy.ask()
        assert not ruled_out[arm]
        policy.tell(arm, env.sample(arm, rng))
        low, high = policy.intervals()
        ruled_out |= high < low.max()
    assert ruled_out[worst(env)]


def test_due_rounds_are_at_least_the_share_asked_for_in_every_prefix():
    env = ls.environments.linear(dim=3, n_arms=6, seed=0)
    policy = ls.Guarded(env.sequence(0.1), env.arms, insurance=0.3)
    rng = np.random.default_rng(0)
    for t in range(1, 41):
        arm = policy.ask()
        policy.tell(arm, env.sample(arm, rng))
        assert policy._out.due == np.ceil(0.3 * t)


def test_beliefs_of_another_model_and_of_other_sets():
    rng, env = np.random.default_rng(6), ls.environments.linear(dim=2, n_arms=5, seed=1)
    other = ls.ConfidenceSequence(ls.Laplace(0.3), ls.Linear(2, 5.0))
    rivals = ls.comparison.AbbasiYadkori(env.space, 0.1, env.family.sigma, 1.0)
    for seq, belief in [(env.sequence(), other), (env.sequence(), ls.Mixture([1.0])), (rivals, None),
                        (env.sequence(predictor=ls.FTRL()), None)]:  # fmt: skip
        policy = ls.Guarded(seq, env.arms, belief=belief)
        for _ in range(15):
            arm = policy.ask()
            policy.tell(arm, env.sample(arm, rng))
        mean, _ = policy._beliefs.now().moments(env.arms)
        assert abs(mean[arm] - env.z[arm]) < 0.6  # it has learnt
    assert other.n_observations == 15


@pytest.mark.parametrize(
    "options",
    [
        {"insurance": -0.1}, {"insurance": 1.1}, {"insurance": np.nan}, {"insurance": "much"}, {"belief": 3},
        {"belief": ls.FTRL()}, {"belief": ls.ConfidenceSequence}, {"reward": "best"}, {"rng": "now"},
    ],
)  # fmt: skip
def test_refusals_come_before_anything_changes(options):
    seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.0))
    voices = seq.voices
    with pytest.raises(InvalidArgumentError):
        ls.Guarded(seq, np.eye(2), **options)
    assert seq.voices is voices


def test_used_companions_and_changing_arms_are_refused_where_they_make_no_sense():
    seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.0))
    used = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.0))
    used.update([1.0, 0.0], 0.3)
    with pytest.raises(InvalidArgumentError, match="fresh"):
        ls.Guarded(seq, np.eye(2), belief=used)
    with pytest.raises(InvalidArgumentError, match="coordinates"):
        ls.Guarded(seq, np.eye(2), belief=ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(3, 1.0)))
    policy = ls.Guarded(seq)
    arm = policy.ask(np.eye(2))
    policy.tell(arm, 0.5)
    with pytest.raises(InvalidArgumentError, match="stay"):
        _ = policy.certified_regret


def test_beliefs_with_unknown_noise_are_those_with_the_noise_that_is_there():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    y = x @ [0.5, -0.3] + 0.2 * rng.standard_normal(300)
    unknown = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2, 1.0))
    known = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.Linear(2, 1.0))
    for seq in (unknown, known):
        seq.update(x, y)
    (mean, sd), (expected, spread) = (seq.belief.moments(np.eye(2)) for seq in (unknown, known))
    np.testing.assert_allclose(mean, expected, atol=4e-3)
    np.testing.assert_allclose(sd, spread, rtol=0.15)
    more = unknown.belief.supposing(np.eye(2)[[0] * 300]).moments(np.eye(2))[1]
    np.testing.assert_allclose(more[0] / sd[0], np.sqrt(0.5), rtol=0.05)


# -- batches, late answers, failures ---------------------------------------------------------------------------------


def test_batches_are_different_points_aware_of_those_pending():
    env = ls.environments.paper_1d()
    policy = ls.Guarded(env.sequence(0.1), env.arms, rng=0)
    first = policy.ask(n=4)
    assert len(set(first)) == 4 and len(policy.pending) == 4
    gaps = np.diff(np.sort(env.arms[first, 0]))
    assert gaps.min() > 0.06  # further apart than the length scale: not four neighbours of the same hope
    second = policy.ask(n=2)
    distance = np.abs(env.arms[second][:, None, 0] - env.arms[first][None, :, 0])
    assert distance.min() > 0.03
    rng = np.random.default_rng(0)
    for arm in [*reversed(first), *second]:  # in any order
        policy.tell(arm, env.sample(arm, rng))
    assert len(policy.pending) == 0 and policy.seq.n_observations == 6


def test_imagined_answers_reach_no_set():
    env = ls.environments.linear(dim=2, n_arms=6, seed=0)
    policy = ls.Guarded(env.sequence(0.1), env.arms)
    before = policy.intervals()
    policy.ask(n=5)
    assert policy.seq.n_observations == 0
    np.testing.assert_array_equal(before, policy.intervals())


def test_answers_given_to_the_sequence_are_noticed():
    env = ls.environments.linear(dim=2, n_arms=6, seed=0)
    policy = ls.Guarded(env.sequence(0.1), env.arms)
    first, second = policy.ask(n=2)
    policy.seq.update(env.arms[second], 0.1)
    np.testing.assert_array_equal(policy.pending, env.arms[[first]])
    policy.cancel(first)
    assert len(policy.pending) == 0
    with pytest.raises(InvalidArgumentError, match="not asked"):
        policy.cancel(first)
    policy.resume(env.arms[[3]])
    np.testing.assert_array_equal(policy.pending, env.arms[[3]])


def test_delays_that_do_not_depend_on_y_keep_coverage():
    runs, alpha, missed = 40, 0.2, 0
    for k in range(runs):
        rng, env = np.random.default_rng([3, k]), ls.environments.linear(dim=2, seed=k, n_arms=8)
        policy, out = ls.Guarded(env.sequence(alpha), env.arms, rng=k), []
        covered = True
        for _ in range(12):
            out += [(arm, env.sample(arm, rng)) for arm in policy.ask(n=3)]
            for _ in range(int(rng.integers(0, 5))):
                if out:
                    policy.tell(*out.pop(int(rng.integers(len(out)))))
                    covered &= policy.seq.set.contains(env.theta)
        missed += not covered
    assert missed <= binom.ppf(1 - FALSE_ALARM, runs, alpha)


def test_failures_are_learnt_and_avoided():
    env = ls.environments.paper_1d()
    fails = env.arms[:, 0] > 0.9  # which is where the best arm is
    runs = {}
    for known in (True, False):
        policy = ls.Guarded(env.sequence(0.1), env.arms, rng=0)
        rng, failed = np.random.default_rng(1), 0
        for _ in range(40):
            arm = policy.ask()
            if fails[arm]:
                failed += 1
                policy.tell(arm, failed=True) if known else policy.cancel(arm)
            else:
                policy.tell(arm, env.sample(arm, rng))
        runs[known] = failed
        assert policy.seq.n_observations == 40 - failed
    assert policy.successes is None  # nothing was told of failures
    assert runs[True] < 0.5 * runs[False]


def test_failures_change_no_set_and_have_one_of_their_own():
    env = ls.environments.linear(dim=2, n_arms=6, seed=0)
    policy = ls.Guarded(env.sequence(0.1), env.arms)
    policy.tell(0, 0.3)
    before = policy.intervals()
    for _ in range(5):
        policy.tell(policy.ask(), failed=True)
    np.testing.assert_array_equal(before, policy.intervals())
    assert policy.successes.n_observations == 6 and len(policy.pending) == 0
    with pytest.raises(InvalidArgumentError, match="failed"):
        policy.tell(0, 0.4, failed=True)
    with pytest.raises(ls.LikesetError):
        policy.tell(0)
    with pytest.raises(InvalidArgumentError, match="model of success"):
        ls.Guarded(env.sequence(0.1), env.arms, success=ls.ConfidenceSequence(ls.Gaussian(1.0), env.space))
