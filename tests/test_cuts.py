"""Sets cut with half-spaces: outer bounds, equal to CVXPY's for one, never wider than the set, valid at no cost."""

import cvxpy as cp
import numpy as np
import pytest

import likeset as ls

THETA = np.array([0.5, 0.1, -0.3])


def filled(family, n=40, bound=2.0, seed=0, voices=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), voices=voices)
    sequence.update(X, family.sample(X @ THETA, rng))
    return sequence


def cvxpy_upper(sequence, x, G, least):
    ledger, bound = sequence.ledger, sequence.space.bound
    theta = cp.Variable(3)
    z, y = ledger.x.rows @ theta, ledger.y.rows
    if isinstance(sequence.family, ls.Gaussian):
        sigma = sequence.family.sigma
        loss = cp.square(y - z) / (2 * sigma**2) + np.log(sigma * np.sqrt(2 * np.pi))
    else:
        a, s, h = sequence.family.statistics(y)
        curve = cp.exp(z) if int(sequence.family.curve) == 1 else cp.logistic(z)
        loss = cp.multiply(a, curve) - cp.multiply(s, z) - h
    constraints = [cp.sum(loss) + ledger.log_q.rows.sum() <= np.log(20), cp.norm(theta) <= bound, G @ theta >= least]
    problem = cp.Problem(cp.Maximize(x @ theta), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Bernoulli()], ids=repr)
def test_agrees_with_cvxpy(family):
    sequence = filled(family)
    s = sequence.set
    Q = np.random.default_rng(1).normal(size=(4, 3))
    one, least = np.array([[0.0, 1.0, 0.0]]), np.array([0.05])
    cut = s.given(one, at_least=least)
    for x, upper, lower in zip(Q, cut.upper(Q), cut.lower(Q), strict=True):
        assert upper == pytest.approx(cvxpy_upper(sequence, x, one, least), abs=1e-5)
        assert lower == pytest.approx(-cvxpy_upper(sequence, -x, one, least), abs=1e-5)
    assert (cut.upper(Q) <= s.upper(Q)).all() and (cut.lower(Q) >= s.lower(Q)).all()
    assert (cut.upper(Q) - cut.lower(Q) < 0.999 * (s.upper(Q) - s.lower(Q))).any()
    # a box: several half-spaces, never inside CVXPY's answer and close to it
    box = s.given(np.eye(3), at_least=[0.0, 0.0, -1.0], at_most=[1.0, 0.3, 0.0])
    G, b = np.vstack([np.eye(3), -np.eye(3)]), np.array([0.0, 0.0, -1.0, -1.0, -0.3, 0.0])
    for x, upper in zip(Q, box.upper(Q), strict=True):
        exact = cvxpy_upper(sequence, x, G, b)
        assert exact - 1e-5 <= upper <= exact + 0.05 * (1 + abs(exact))


def test_members_of_the_cut_stay_inside():
    s = filled(ls.Bernoulli(), voices="auto").set
    cut = s.given([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]], at_least=[0.2, 0.0])
    members = s.support(np.random.default_rng(2).normal(size=(400, 3))).maximisers
    inside = cut.contains(members)
    assert 10 < inside.sum() < 400
    Q = np.random.default_rng(3).normal(size=(5, 3))
    low, high = cut.interval(Q)
    values = members[inside] @ Q.T
    assert (low <= values + 1e-9).all() and (values <= high + 1e-9).all()
    assert cut.contains(THETA) is True and cut.contains(-THETA) is False


def test_a_cut_that_is_empty_says_so():
    s = filled(ls.Gaussian(0.2), n=200).set
    assert s.given([1.0, 0.0, 0.0], at_most=-0.5).is_empty
    assert not s.given([1.0, 0.0, 0.0], at_least=0.0).is_empty
    with pytest.raises(ls.EmptySetError):
        s.given([1.0, 0.0, 0.0], at_most=-0.5).interval([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.given(np.eye(3)),
        lambda s: s.given(np.eye(3), at_least=[1.0, 2.0]),
        lambda s: s.given([1.0, 0.0], at_least=0.0),
        lambda s: s.given(np.eye(3), at_least=np.nan),
        lambda s: s.given(np.eye(3), at_least=0.0).upper([1.0]),
    ],
)
def test_what_is_no_half_space_is_refused(call):
    with pytest.raises(ls.LikesetError):
        call(filled(ls.Poisson(), n=5).set)
