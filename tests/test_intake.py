"""What may be passed in: zero covariates, sparse rows, Beta densities; and what is refused, in words that help."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from scipy.special import betaln, expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import likeset as ls
from likeset import checks
from likeset.errors import InvalidArgumentError, PieceError

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.6, 0.8], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
ASKED = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
THETAS = np.array([[0.1, 0.2], [0.5, -0.3]])
VOICES = ("auto", None, ls.Patience(3).beside(ls.Windows([[1.0, 0.0], [0.0, 0.0]])))


def normal(y, z):
    return 0.5 * (y - z) ** 2 / 0.04 + np.log(0.2 * np.sqrt(2 * np.pi))


OWN = ls.CustomFamily(normal, support="real", convex=True)


@pytest.mark.parametrize("family", [*checks.built_in_families(), OWN], ids=repr)
@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_a_control_group_coded_zero(family, bound, tmp_path):
    """It says nothing about theta, is counted, kept in files, and its z is known: 0."""
    rng = np.random.default_rng(0)
    y = family.sample(X @ [0.4, -0.3], rng)
    for voices in VOICES if bound < np.inf else VOICES[1:2]:
        # Without the alarm, which does learn about the noise from rows of zeros.
        mixed = ls.ConfidenceSequence(family, ls.Linear(2, bound), voices=voices, alarm=False)
        without = ls.ConfidenceSequence(family, ls.Linear(2, bound), voices=voices, alarm=False)
        mixed.update(X, y)
        without.update(X[X.any(axis=1)], y[X.any(axis=1)])
        assert mixed.n_observations == 8
        assert mixed.set.log_ratio_by_covariate(THETAS)[:, 0] == pytest.approx(np.zeros(2), abs=1e-7)
        # Beliefs about Laplace noise are refitted after every row, from where they were: a little better each time.
        assert mixed.set.log_ratio(THETAS) == pytest.approx(without.set.log_ratio(THETAS), abs=1e-3)
        if family.convex:
            low, high = mixed.set.interval(ASKED)
            assert low[-1] == high[-1] == 0.0
            assert high == pytest.approx(without.set.upper(ASKED), abs=1e-3)
            answer = mixed.set.support(ASKED)
            assert answer.values[-1] == answer.upper[-1] == 0.0
            assert mixed.set.contains(answer.maximisers[-1])
        mixed.save(tmp_path / "file")
        loaded = ls.load(tmp_path / "file", **({"family": OWN} if family is OWN else {}))
        assert np.array_equal(loaded.set.log_ratio(THETAS), mixed.set.log_ratio(THETAS))


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Laplace(0.5), ls.Poisson(), ls.Gamma(2.0)], ids=repr)
def test_nothing_but_zeros(family):
    """The set stays what it was; dimensions come later."""
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, 2.0))
    y = family.sample(np.zeros(3), np.random.default_rng(1))
    sequence.update(np.zeros((3, 2)), y)
    assert sequence.set.upper(ASKED) == pytest.approx([2.0, 2.0, np.sqrt(8.0), 0.0])
    assert sequence.set.contains([1.0, 1.0])
    checks.check_growth(sequence, [0.0, 0.0], THETAS)
    sequence.update([1.0, 0.0], y[:1])
    assert sequence.set.upper(ASKED)[-1] == 0.0


class TooSure:
    """Forecasts y = 3, whatever x."""

    def forecast(self, phi):
        return ls.PlugIn(ls.Gaussian(0.5), 3.0)

    def observe(self, phi, y):
        pass


@pytest.mark.parametrize("voices", [None, ls.Windows([[1.0, 0.0]]), ls.Patience(2, tail=0.0)])
def test_zeros_are_evidence_about_the_model(voices):
    """A control group that is not at z = 0 empties the set if the forecasts saw that coming; a row is enough."""
    for others in ([], [[1.0, 0.0]]):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 2.0), 0.05, TooSure(), voices=voices)
        sequence.update([[0.0, 0.0], *others], [3.0] * (1 + len(others)))
        assert sequence.set.is_empty
        assert not sequence.set.contains([0.0, 0.0])
        with pytest.raises(ls.EmptySetError):
            sequence.set.upper([[1.0, 0.0]])


def test_arms_may_be_zero():
    arms = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    policy = ls.UCB(ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 1.0)), arms, rng=0)
    for _ in range(6):
        policy.tell(policy.ask(), 0.1)
    assert ls.Windows.covering(ls.Linear(2, 1.0), arms, cover=0.9).centres.shape == (3, 2)


def test_covariates_that_only_look_like_zero_are_refused():
    with pytest.raises(InvalidArgumentError, match="order one, or exact zeros"):
        ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(2, 1.0)).update([1e-200, 0.0], 1.0)


def test_sparse_rows():
    dense, sparse = (ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0)) for _ in range(2))
    dense.update(X, np.arange(8))
    sparse.update(scipy.sparse.csr_matrix(X[:3]), np.arange(3))
    sparse.update(scipy.sparse.csc_array(X[3:]), np.arange(3, 8))
    assert np.array_equal(sparse.set.upper(scipy.sparse.coo_array(ASKED)), dense.set.upper(ASKED))
    with pytest.raises(InvalidArgumentError):
        dense.update(scipy.sparse.csr_matrix((2**15, 2**15)), 1.0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["a", "b"], "holds text"),
        (np.array(["a", 1.0], dtype=object), "holds text"),
        ([None, 1.0], "holds None"),
        ({"a": 1.0, "b": 2.0}, "is a dict"),
        ({1.0, 2.0}, "is a set"),
        ((float(i) for i in range(2)), "is a generator"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), "holds dates"),
        ([1j, 0.0], "complex"),
    ],
)
def test_what_is_no_array_of_numbers_is_named(value, words):
    sequence = ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(2, 1.0))
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        sequence.update(value, 1.0)
    assert "has dtype" not in str(caught.value)


def beta(concentration):
    def negative_log_density(y, z):
        a, b = expit(z) * concentration, expit(-z) * concentration
        return betaln(a, b) - (a - 1) * np.log(y) - (b - 1) * np.log1p(-y)

    return negative_log_density


@pytest.mark.parametrize("concentration", [1.0, 2.0, 5.0, 50.0])
def test_beta_densities(concentration):
    """Of which up to a thousandth lies between the last number below 1 and 1."""
    family = ls.CustomFamily(beta(concentration), support="unit", name="Beta")
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0))
    sequence.update([[1.0], [-1.0]], [0.3, 1.0 - 1e-12])
    assert np.isfinite(sequence.set.log_ratio([0.3]))


@pytest.mark.parametrize("excess", [1e-4, -1e-4])
def test_beta_densities_that_are_none(excess):
    with pytest.raises(PieceError, match="integrates to"):
        ls.CustomFamily(lambda y, z: beta(2.0)(y, z) - np.log1p(excess), support="unit")


def test_mass_close_to_one_is_still_seen():
    """Half of the mass of a uniform law again, in a spike next to 1: no power law, and no density."""

    def spiked(y, z):
        return -np.log(1.0 + np.where(1.0 - y < 2.0**-35, 0.5 * 2.0**35, 0.0)) + 0.0 * z

    with pytest.raises(PieceError):
        ls.CustomFamily(spiked, support="unit")


def test_sets_of_custom_families_can_be_pickled():
    for voices in (None, "auto", ls.Windows([[1.0, 0.0], [0.0, 1.0]])):
        sequence = ls.ConfidenceSequence(OWN, ls.Linear(2, 1.0), voices=voices)
        sequence.update(np.eye(2), [0.1, 0.2])
        s = sequence.set
        for _ in range(2):  # before and after it has answered
            assert np.array_equal(pickle.loads(pickle.dumps(s)).upper(np.eye(2)), s.upper(np.eye(2)))
        assert np.array_equal(pickle.loads(pickle.dumps(sequence)).set.upper(np.eye(2)), s.upper(np.eye(2)))


@pytest.mark.parametrize("kernel", [RBF([0.1, 0.2]), ConstantKernel(2.0) * RBF([0.1, 0.2])], ids=repr)
def test_kernels_of_another_dimension(kernel):
    for where in ({}, {"domain": np.linspace(0.0, 1.0, 5)}, {"dim": 3}):
        with pytest.raises(InvalidArgumentError, match="2 length scales"):
            ls.RKHS(kernel, bound=2.0, **where)
    ls.RKHS(kernel, bound=2.0, dim=2)


def test_numbers_are_no_forecasts():
    class Number:
        def forecast(self, phi):
            return 0.3

        def observe(self, phi, y):
            pass

    for predictor in (Number(), ls.Aggregate(Number(), ls.FTRL())):
        sequence = ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(2, 1.0), predictor=predictor)
        with pytest.raises(PieceError, match="no density of y but a float"):
            sequence.update([1.0, 0.0], 1.0)
