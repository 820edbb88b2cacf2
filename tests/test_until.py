"""When to stop: one argument, one kind of certificate."""

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset.bandits.deciding import most_telling
from likeset.errors import InvalidArgumentError

FALSE_ALARM = 1e-6
ARMS = np.eye(4)
MEANS = np.array([0.2, 0.9, 0.5, -0.4])


def played(policy, rng, most=2000, means=MEANS, sigma=0.3):
    while not policy.stopped and policy.seq.n_observations < most:
        arm = policy.ask()
        policy.tell(arm, means[arm] + sigma * rng.standard_normal())
    return policy.certificate


def fresh(alpha=0.1):
    return ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(4, 1.5), alpha)


@pytest.mark.parametrize("make", [ls.UCB, ls.Guarded, ls.Elimination], ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    "until", ["best", {"best": 0.3}, {"gain": 0.3}, {"above": 0.35}, {"above": 0.5, "within": 0.4}], ids=str
)
def test_every_policy_stops_with_the_claim_that_was_asked_for(make, until):
    if make is not ls.Elimination and (until == "best" or "above" in until):
        pytest.skip("players of good arms take long to find out about others")
    claim = played(make(fresh(), ARMS, until=until), np.random.default_rng(0))
    assert claim is not None and claim.n_observations < 2000
    assert "with probability at least 0.9" in str(claim)
    if claim.claim == "above":
        assert claim.arm is None and set(claim.above) <= {1, 2} and set(claim.below) <= {0, 2, 3}
        assert len(claim.above) + len(claim.below) + len(claim.near) == 4
    else:
        assert claim.arm == 1 and claim.lower <= 0.9
        if claim.claim == "gain":
            assert claim.lower + claim.epsilon >= 0.9


def test_claims_are_wrong_as_seldom_as_promised():
    runs, alpha, wrong = 24, 0.2, 0
    for k in range(runs):
        rng = np.random.default_rng([1, k])
        means = rng.uniform(-0.6, 0.6, 4)
        until = [{"above": 0.0, "within": 0.2}, {"best": 0.2}, {"gain": 0.4}][k % 3]
        claim = played(ls.Elimination(fresh(alpha), ARMS, until=until), rng, 150, means)
        if claim is None:
            continue
        if claim.claim == "above":
            wrong += (
                any(means[list(claim.above)] <= 0.0)
                or any(means[list(claim.below)] > 0.0)
                or any(np.abs(means[list(claim.near)]) > 0.2)
            )
        elif claim.claim == "best":
            wrong += means[claim.arm] < means.max() - claim.epsilon
        else:
            wrong += means.max() > claim.lower + claim.epsilon
    assert wrong <= binom.ppf(1 - FALSE_ALARM, runs, alpha)


def test_a_saved_sequence_has_the_same_certificate(tmp_path):
    policy = ls.Guarded(fresh(), ARMS, until={"gain": 0.4})
    claim = played(policy, np.random.default_rng(0))
    policy.seq.save(tmp_path / "s.likeset")
    again = ls.Guarded(ls.load(tmp_path / "s.likeset"), ARMS, until={"gain": 0.4})
    # The running intersection starts anew, so the claim may need the current set to back it alone.
    assert again.certificate is None or str(again.certificate) == str(claim)
    assert ls.Guarded(ls.load(tmp_path / "s.likeset"), ARMS, until={"gain": 0.8}).stopped


def test_the_most_telling_arm_by_brute_force():
    rng = np.random.default_rng(2)
    arms = rng.standard_normal((7, 3))
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 1.0), predictor=ls.Mixture([2.0]))
    seq.update(arms[[0, 1, 2, 0]], [1, 0, 2, 1])
    question = np.zeros((1, 7))
    question[0, 4], question[0, 2] = 1.0, -1.0
    direction = arms[4] - arms[2]
    left = [seq.belief.supposing(arm).moments(direction)[1][0] for arm in arms]
    first, second = most_telling(seq.belief, arms, question, 2)
    assert first == int(np.argmin(left))
    left = [seq.belief.supposing(arms[[first, i]]).moments(direction)[1][0] for i in range(7)]
    assert second == int(np.argmin(np.where(np.arange(7) == first, np.inf, left)))


def test_deciding_soonest_takes_fewer_observations_than_the_widest():
    """Arms that look alike and one that tells them apart: the widest rule has no reason to observe it."""
    arms = np.array([[1.0, 0.0], [np.cos(0.1), np.sin(0.1)], [0.0, 1.0]])
    theta = np.array([0.9, 0.3])
    counts = {}
    for rule in ("soonest", "widest"):
        total = 0
        for k in range(3):
            rng = np.random.default_rng([4, k])
            seq = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(2, 1.0), 0.1)
            policy = ls.Elimination(seq, arms, rule=rule)
            played(policy, rng, 300, arms @ theta, 0.3)
            total += seq.n_observations
        counts[rule] = total
    assert counts["soonest"] < 0.8 * counts["widest"]


@pytest.mark.parametrize(
    "until",
    ["worst", 3, {"best": -1}, {"gain": 0}, {"gain": np.nan}, {"above": np.inf}, {"best": 0, "gain": 1}, {},
     {"within": 1}, {"best": 0.1, "within": 0.1}, {"above": "high"}, dict],
)  # fmt: skip
def test_aims_that_are_none_are_refused(until):
    with pytest.raises(InvalidArgumentError):
        ls.UCB(fresh(), ARMS, until=until)


def test_aims_need_arms_that_stay():
    with pytest.raises(InvalidArgumentError, match="stay"):
        ls.UCB(fresh(), until="best")
    with pytest.raises(InvalidArgumentError, match="until"):
        ls.Elimination(fresh(), ARMS, epsilon=0.1, until="best")
