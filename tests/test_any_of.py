"""Several models at once: a union at one alpha, a shared numerator, refuted models named, all or nothing."""

import copy
import pickle

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF

import likeset as ls

PLANE = ls.Linear(2, 2.0)
THETA = np.array([0.5, -0.4])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def two(**options):
    return ls.AnyOf((ls.Poisson(), PLANE), (ls.Geometric(), PLANE), **options)


def test_one_model_is_the_sequence_itself():
    x, rng = rows(50), np.random.default_rng(1)
    y = rng.poisson(np.exp(x @ THETA))
    one, plain = ls.AnyOf((ls.Poisson(), PLANE)), ls.ConfidenceSequence(ls.Poisson(), PLANE)
    one.update(x, y)
    plain.update(x, y)
    assert np.array_equal(one.set.upper(np.eye(2)), plain.set.upper(np.eye(2)))
    assert one.set.log_ratio(THETA) == plain.set.log_ratio(THETA)


def test_answers_are_the_union_of_the_models():
    x, rng = rows(40), np.random.default_rng(2)
    seq = two(voices=None)
    seq.update(x, rng.poisson(np.exp(x @ THETA)))
    s, Q = seq.set, np.random.default_rng(3).normal(size=(5, 2))
    assert not s.is_empty and s.refuted == () and len(s.left) == 2
    assert np.array_equal(s.upper(Q), np.max([m.upper(Q) for m in s.sets], axis=0))
    assert np.array_equal(s.lower(Q), np.min([m.lower(Q) for m in s.sets], axis=0))
    grid = np.random.default_rng(4).normal(size=(300, 2))
    assert np.array_equal(s.contains(grid), s.sets[0].contains(grid) | s.sets[1].contains(grid))
    low, high = s.interval(Q, alpha=0.001)
    assert (low < s.lower(Q)).all() and (high > s.upper(Q)).all()
    contrast = s.contrast(Q[:1], Q[1:2], "ratio")
    assert contrast.upper[0] == max(m.contrast(Q[:1], Q[1:2], "ratio").upper[0] for m in s.sets)
    for c in (s.lower(Q) - 0.1, s.lower(Q) + 0.1):
        assert np.array_equal(s.evidence(Q, below=c).e_value > 20, s.lower(Q) > c)


def test_the_numerator_is_the_bayes_mixture_of_the_forecasters():
    """The same log q in every model: log of the mean of the models' own products of forecasts."""
    x, rng = rows(30), np.random.default_rng(5)
    y = rng.poisson(np.exp(x @ THETA))
    seq = two(voices=None)
    seq.update(x, y)
    alone = []
    for family in (ls.Poisson(), ls.Geometric()):
        plain = ls.ConfidenceSequence(family, PLANE, voices=None)
        plain.update(x, y)
        alone.append(plain.ledger.log_q.rows.sum())
    shared = [m.ledger.log_q.rows.sum() for m in seq._sequences]
    assert shared[0] == pytest.approx(shared[1], abs=1e-9)
    assert shared[0] == pytest.approx(np.logaddexp(*alone) - np.log(2), abs=1e-9)
    assert seq.shares == pytest.approx(np.exp(alone - np.logaddexp(*alone)), rel=1e-6)


@pytest.mark.parametrize("truth", [ls.Poisson(), ls.Geometric()], ids=repr)
def test_one_step_growth_is_at_most_one_in_every_model(truth):
    """E[R after / R before] over all outcomes, under theta, for the ratio of each model."""
    x, rng = rows(25), np.random.default_rng(6)
    seq = two(voices=None)
    seq.update(x, truth.sample(x @ THETA, rng))
    new = np.array([[0.7, 0.9]])
    counts = np.arange(80.0)
    before = [m.set.log_ratio(THETA) for m in seq._sequences]
    growth = np.zeros(2)
    for y in counts:
        after = copy.deepcopy(seq)
        after.update(new, [y])
        for k, member in enumerate(after._sequences):
            weight = np.exp(member.family.log_density(np.array([y]), new @ THETA)[0])
            growth[k] += weight * np.exp(member.set.log_ratio(THETA) - before[k])
    assert (growth <= 1 + 1e-8).all() and (growth > 0.98).all()


def test_wrong_models_are_refuted_and_named_where_their_own_forecaster_is_blind():
    """sigma told at half its value: alone it is never refuted, beside the right one it is."""
    x, rng = rows(150), np.random.default_rng(7)
    y = x @ THETA + 1.0 * rng.normal(size=150)
    seq = ls.AnyOf((ls.Gaussian(0.5), PLANE), (ls.Gaussian(1.0), PLANE))
    seq.update(x, y)
    assert seq.set.refuted == ("Gaussian(sigma=0.5) on Linear(dim=2, bound=2)",)
    assert seq.set.left == ("Gaussian(sigma=1) on Linear(dim=2, bound=2)",)
    alone = ls.ConfidenceSequence(ls.Gaussian(0.5), PLANE, alarm=False)
    alone.update(x, y)
    assert not alone.set.is_empty
    assert np.array_equal(seq.set.upper(np.eye(2)), seq.set.sets[1].upper(np.eye(2)))
    # ... and if none is right, the union is empty
    none = ls.AnyOf((ls.Gaussian(0.1), PLANE), (ls.Gaussian(0.2), PLANE))
    none.update(np.eye(2)[[0] * 20], np.linspace(40, 60, 20))
    assert none.set.is_empty and (none.set.evidence(np.eye(2), below=0.0).e_value > 20).all()
    with pytest.raises(ls.EmptySetError):
        none.set.upper(np.eye(2))


def test_length_scales_and_bounds():
    rng = np.random.default_rng(8)
    grid = np.linspace(0, 1, 12)
    models = [(ls.Gaussian(0.2), ls.RKHS(RBF(length), 3.0, domain=grid)) for length in (0.1, 0.4)]
    seq = ls.AnyOf(*models)
    x = rng.choice(grid, size=60)
    seq.update(x[:, None], np.sin(4 * x) + 0.2 * rng.normal(size=60))
    low, high = seq.set.interval(grid)
    assert (low <= np.sin(4 * grid)).all() and (np.sin(4 * grid) <= high).all()


def test_coverage_whichever_model_is_right():
    """100 adaptive runs each, four looks; false-alarm probability 1e-6. Trusting the wrong model alone fails it."""
    rng, runs = np.random.default_rng(9), 100
    for truth in (0.4, 1.0):
        misses = naive = 0
        for _ in range(runs):
            seq = ls.AnyOf(*((ls.Gaussian(s), PLANE) for s in (0.4, 1.0)), alpha=0.1, voices=None)
            alone = ls.ConfidenceSequence(ls.Gaussian(0.4), PLANE, 0.1, voices=None)
            missed = fooled = False
            for _ in range(4):
                x = rng.normal(size=(15, 2))
                if seq.n_observations:
                    x[:, 0] += np.sign(seq.set.upper([1.0, 0.0])[0]) if not seq.set.is_empty else 0.0
                y = x @ THETA + truth * rng.normal(size=15)
                seq.update(x, y)
                alone.update(x, y)
                missed |= not seq.set.contains(THETA)
                fooled |= not alone.set.contains(THETA)
            misses, naive = misses + missed, naive + fooled
        most = binom.ppf(1 - 1e-6, runs, 0.1)
        assert misses <= most
    assert naive > most


def test_all_or_nothing():
    seq = two()
    x = rows(5)
    seq.update(x, [1, 0, 2, 1, 0])
    before, shares = seq.set.upper(np.eye(2)), seq.shares
    with pytest.raises(ls.LikesetError):
        seq.update(x, [1, 0, 2, 1, -3])

    class Interrupt(BaseException):
        pass

    taken, last = [], seq._sequences[-1]
    original = type(last)._take

    def failing(self, step, y, log_q):
        taken.append(1)
        if len(taken) == 4:
            raise Interrupt
        original(self, step, y, log_q)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(last), "_take", failing)
        with pytest.raises(Interrupt):
            seq.update(x, [1, 0, 2, 1, 0])
    assert seq.n_observations == 5 and [m.n_observations for m in seq._sequences] == [5, 5]
    assert np.array_equal(seq.set.upper(np.eye(2)), before) and np.array_equal(seq.shares, shares)
    for other in (copy.deepcopy(seq), pickle.loads(pickle.dumps(seq))):
        other.update(x, [1, 0, 2, 1, 0])
        assert other.n_observations == 10 and seq.n_observations == 5


def test_sequences_are_copied_and_must_be_new():
    plain = ls.ConfidenceSequence(ls.Poisson(), PLANE)
    seq = ls.AnyOf(plain, (ls.Geometric(), PLANE))
    seq.update([1.0, 0.0], 2)
    assert plain.n_observations == 0 and seq.n_observations == 1
    plain.update([1.0, 0.0], 2)
    with pytest.raises(ls.InvalidArgumentError, match="observations"):
        ls.AnyOf(plain)


def test_arms_are_announced_to_every_model():
    seq = two()
    seq.expect(np.eye(2), purpose="optimism")
    for member in seq._sequences:
        plain = ls.ConfidenceSequence(member.family, member.space)
        plain.expect(np.eye(2), purpose="optimism")
        assert repr(member.voices) == repr(plain.voices)
    seq.update([1.0, 0.0], 2)
    with pytest.raises(ls.InvalidArgumentError):
        seq.expect(np.eye(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ls.AnyOf(),
        lambda: ls.AnyOf(ls.Poisson(), PLANE),
        lambda: ls.AnyOf((ls.Poisson(), PLANE), (ls.Gaussian(), PLANE)),
        lambda: ls.AnyOf((ls.Poisson(), PLANE), (ls.Poisson(), ls.Linear(3, 1.0))),
        lambda: ls.AnyOf((ls.Weibull(2.0), PLANE), (ls.Gaussian(), PLANE)),
        lambda: ls.AnyOf(ls.ConfidenceSequence(ls.Poisson(), PLANE, 0.1)),
        lambda: ls.AnyOf((ls.Poisson(), PLANE), alpha=2.0),
        lambda: ls.AnyOf((ls.Poisson, PLANE)),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(make):
    with pytest.raises(ls.LikesetError):
        make()


@pytest.mark.parametrize("families", [(ls.Poisson(), ls.Geometric()), (ls.Gaussian(0.5), ls.Gaussian(ls.Unknown()))])
def test_saved_models_continue_bit_for_bit(tmp_path, families):
    x, rng = rows(40), np.random.default_rng(20)
    y = rng.poisson(np.exp(x @ THETA))
    whole, half = (ls.AnyOf(*((f, PLANE) for f in families)) for _ in range(2))
    whole.update(x, y)
    half.update(x[:25], y[:25])
    half.save(tmp_path / "models")
    again = ls.load(tmp_path / "models")
    assert repr(again) == repr(half) and np.array_equal(again.shares, half.shares)
    again.update(x[25:], y[25:])
    assert np.array_equal(again.set.upper(np.eye(2)), whole.set.upper(np.eye(2)))
    assert np.array_equal(again.shares, whole.shares) and again.set.refuted == whole.set.refuted


def test_files_of_models_are_not_trusted(tmp_path):
    import zipfile

    seq = two()
    seq.update(rows(5), [1, 0, 2, 1, 0])
    seq.save(tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as good:
        parts = {name: good.read(name) for name in good.namelist()}

    def written(changed):
        with zipfile.ZipFile(tmp_path / "bad", "w") as bad:
            for name, content in (parts | changed).items():
                if content is not None:
                    bad.writestr(name, content)
        return tmp_path / "bad"

    header = parts["header.json"]
    for changed in (
        {"1/ledger/y.npy": None},
        {"log_shares.npy": None},
        {"log_shares.npy": parts["0/ledger/log_q.npy"]},
        {"header.json": header.replace(b'"version": 4', b'"version": 99', 1)},
        {"header.json": header.replace(b'"models": [', b'"models": [7, ', 1)},
        {"1/ledger/x.npy": parts["0/ledger/x.npy"][:-8] + b"\0" * 8},
    ):
        with pytest.raises(ls.LikesetError):
            ls.load(written(changed))
    assert ls.load(written({})).n_observations == 5


def test_models_with_a_family_of_ones_own_are_not_saved(tmp_path):
    from tests.secant_family import Secant

    seq = ls.AnyOf((Secant(), PLANE), (ls.Gaussian(1.0), PLANE))
    with pytest.raises(ls.InvalidArgumentError, match="models"):
        seq.save(tmp_path / "models")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("policy", [ls.UCB, ls.Elimination, ls.Guarded])
def test_policies_take_several_models(policy):
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    rng = np.random.default_rng(21)
    seq = ls.AnyOf((ls.Gaussian(0.1), PLANE), (ls.Gaussian(0.3), PLANE))
    chosen = policy(seq, arms)
    for _ in range(40):
        if chosen.stopped:
            break
        arm = chosen.ask()
        chosen.tell(arm, arms[arm] @ [1.0, 0.2] + 0.3 * rng.normal())
    assert seq.set.refuted == ("Gaussian(sigma=0.1) on Linear(dim=2, bound=2)",)
    low, high = seq.set.interval(arms)
    assert (low <= arms @ [1.0, 0.2]).all() and (arms @ [1.0, 0.2] <= high).all()
    assert chosen.recommend().arm in (0, 2)


def test_the_belief_is_the_models_by_their_shares():
    seq = ls.AnyOf((ls.Gaussian(0.3), PLANE), (ls.Laplace(0.3), PLANE))
    rng = np.random.default_rng(22)
    x = rows(30)
    seq.update(x, x @ THETA + 0.3 * rng.normal(size=30))
    mean, _ = seq.belief.moments(np.eye(2))
    parts = np.array([m.belief.moments(np.eye(2))[0] for m in seq._sequences])
    assert np.allclose(mean, seq.shares @ parts)
    assert seq.belief.covariance(np.eye(2)).shape == (len(seq.belief.shares), 2, 2)
    assert seq.belief.noise_precision(np.eye(2)).shape == (len(seq.belief.shares), 2)
    later = seq.belief.supposing(np.eye(2)[:1])
    assert later.moments(np.eye(2)[:1])[1][0] < seq.belief.moments(np.eye(2)[:1])[1][0]
    assert seq.belief.draw(np.eye(2), np.random.default_rng(0)).shape == (2,)
    assert seq.belief.optimistic(np.eye(2), 1.0, 2.0).shape == (2,)
