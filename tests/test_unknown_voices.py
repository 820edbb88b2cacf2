"""Windows, patience and contrasts where a scale or a shape is unknown: exact bounds, guarantees, widths, files."""

import copy

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks
from likeset.voices import automatic
from likeset.voices.base import Membership

ALPHA = 0.1
ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-0.6, 0.8]])
THETA = np.array([0.5, -0.4])
CONTRASTS = np.array([[1.0, 0.0], [1.0, -1.0]])
FAMILIES = {
    "gaussian": ls.Gaussian(ls.Unknown()), "laplace": ls.Laplace(ls.Unknown()), "weibull": ls.Weibull(ls.Unknown()),
    "log-weibull": ls.LogWeibull(ls.Unknown()),
}  # fmt: skip


def outcomes(family, z, value, rng):
    y = family.known(value).sample(z, rng)
    return np.column_stack([np.minimum(y[:, 0], 2.0), y[:, 0] <= 2.0]) if np.ndim(y) == 2 else y


def observed(family, voices, n=40, seed=0, bound=1.5, value=0.4, design=None, **more):
    rng = np.random.default_rng(seed)
    x = ARMS[rng.integers(len(ARMS), size=n)] if design is None else design(rng, n)
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, bound), ALPHA, voices=voices, **more)
    sequence.update(x, outcomes(family, x @ THETA, value, rng))
    return sequence


# -- exact ----------------------------------------------------------------------------------------------------------


def joint_program(sequence):
    """The set in (eta, s) = (theta, 1) / scale^k as CVXPY has it: constraints, eta and s."""
    e = sequence.set._evidence
    eta, s, table = cp.Variable(e.groups.coordinates.shape[1]), cp.Variable(pos=True), e.by_scale.table
    log_q, counts = e.by_scale.log_q, e.by_scale.counts
    rows, unit = e.groups.rows[e.groups.owners], e.terms.unit
    exponents = []
    for k, share in enumerate(table.log_shares):
        part = share + log_q[k]
        if counts[k]:
            part = part - counts[k] * cp.log(s)
        for g in table.members[table.starts[k] : table.starts[k + 1]]:
            if e.terms.power == 2:  # sums about the reference: a (z - o)^2 / 2 - b (z - o) + rest, times s
                u = rows[g] @ eta - unit.origins[g] * s
                part = part + 0.5 * unit.a[g] * cp.quad_over_lin(u, s) - unit.s[g] * u + e.terms.rest[g] * s
            else:
                for i in range(unit.starts[g], unit.starts[g + 1]):
                    part = part + unit.weights[i] * cp.abs(rows[g] @ eta - unit.points[i] * s)
        if k == 0 and e.own > -np.inf and e.own_gain is not None:
            g = e.own_gain
            part = part + cp.log_sum_exp(g.constants - cp.multiply(g.powers, cp.log(g.offsets + g.slopes * s)))
        exponents.append(part)
    limits = [cp.log_sum_exp(cp.hstack(exponents)) <= e.threshold]
    if e.bound < np.inf:
        limits.append(cp.norm(eta) <= e.bound * s)
    return limits, eta, s


VOICES = {
    "patience": ls.Patience(3, tail=0.0), "windows": ls.Windows(ARMS[::2], correlation=0.7, joint_share=0.3),
    "windows without a joint one": ls.Windows(ARMS[::2], correlation=0.7),
    "contrasts": ls.Contrasts(CONTRASTS, others=ls.Patience(2, tail=0.0)),
    "contrasts beside a joint one": ls.Contrasts(CONTRASTS, others=None),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(
    ("family", "voices", "bound"),
    [
        ("gaussian", "patience", 0.75), ("gaussian", "windows", np.inf), ("gaussian", "contrasts", 0.75),
        ("gaussian", "windows without a joint one", 0.75), ("gaussian", "contrasts beside a joint one", np.inf),
        ("laplace", "patience", 0.75), ("laplace", "windows", np.inf),
    ],
)  # fmt: skip
def test_bounds_are_those_of_cvxpys_joint_program(family, voices, bound):
    sequence = observed(FAMILIES[family], VOICES[voices], bound=bound)
    limits, eta, s = joint_program(sequence)
    found = sequence.set.support([[1.0, -1.0], [-0.6, -0.3]])
    for x, upper in zip(([1.0, -1.0], [-0.6, -0.3]), found.upper, strict=True):
        # max x'eta/s is quasi-linear: upper is right if min (upper s - x'eta) is zero.
        a = sequence.set._basis.coordinates(np.array([x]))[0][0]
        gaps = []
        for level in (upper, upper - 2e-6):
            problem = cp.Problem(cp.Minimize(level * s - a @ eta), limits)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
            gaps.append(problem.value)
        assert gaps[0] > -1e-7 and gaps[1] < 0.0, gaps
    assert (found.gap <= 1e-6).all()
    assert sequence.set.contains(found.maximisers * (1 - 1e-9)).all()
    centre = sequence.set.centre
    assert not sequence.set.contains(centre + 1.001 * (found.maximisers - centre)).any()
    for sign, end in ((-1, 0), (1, 1)):  # the scale itself: s = scale^-k
        problem = cp.Problem(cp.Minimize(sign * s), limits)
        problem.solve(solver=cp.CLARABEL)
        want = (sign * problem.value) ** (-1 / sequence.set._evidence.terms.power)
        found = sequence.set.nuisance_interval()[end]
        # The kernel for Laplace noise does not certify every set that is a little empty: outward, and not tight.
        assert -1e-6 <= (found - want) * (1 if end else -1) <= (1e-5 if family == "gaussian" else 0.3) * want


@pytest.mark.parametrize("bound", [0.75, 2.0])
def test_bounds_with_an_unknown_shape_are_those_of_cvxpys_joint_program(bound):
    sequence = observed(FAMILIES["weibull"], ls.Patience(3, tail=0.0), n=60, bound=bound, value=1.5)
    e = sequence.set._evidence
    log_t, event, owners = e.terms.log_times, e.terms.events, e.terms.owners
    X, voices = e.groups.coordinates[e.groups.owners][owners], e.voices
    theta, p = cp.Variable(2), cp.Variable()
    exponents = []
    for k, share in enumerate(voices.log_shares):
        held = voices.members[voices.starts[k] : voices.starts[k + 1]]
        heard = np.isin(owners, held)
        part = share + float(e.gains[held].sum())
        if heard.any():
            z, d = X[heard] @ theta, float(event[heard].sum())
            part = part + cp.sum(cp.exp(p * log_t[heard] + z)) - event[heard] @ z - d * cp.log(p)
            part = part - float(event[heard] @ log_t[heard]) * (p - 1)
        exponents.append(part)
    limits = [cp.log_sum_exp(cp.hstack(exponents)) <= e.threshold, cp.norm(theta) <= bound]
    limits += [p >= sequence.family.lo, p <= sequence.family.hi]
    for x in ([1.0, 0.0], [0.3, -1.0]):
        problem = cp.Problem(cp.Maximize(sequence.set._basis.coordinates(np.array([x]))[0][0] @ theta), limits)
        problem.solve(solver=cp.CLARABEL)
        answer = sequence.set.support([x])
        assert problem.value - 1e-7 <= answer.upper[0] <= problem.value + 1e-6
        assert sequence.set.contains(answer.maximisers[0] * (1 - 1e-9))
    grid = [sequence.set.log_ratio(THETA, shape) for shape in np.geomspace(0.5, 4.0, 300)]
    assert min(grid) - 1e-3 <= sequence.set.log_ratio(THETA) <= min(grid) + 1e-9


@pytest.mark.parametrize("voices", [ls.Patience(3, tail=0.0), ls.Contrasts(CONTRASTS)], ids=repr)
def test_log_ratio_is_the_average_of_the_voices_and_the_least_over_scales(voices):
    sequence = observed(FAMILIES["gaussian"], voices)
    s, e = sequence.set, sequence.set._evidence
    joint = observed(FAMILIES["gaussian"], None).set
    rows, sigma, theta = sequence.ledger, 0.37, np.array([0.2, -0.1])
    log_p = ls.Gaussian(sigma).log_density(rows.y.rows, rows.x.rows @ theta)
    others = ls.Patience() if isinstance(voices, ls.Contrasts) else voices
    parts = [np.log(others.shares[0]) + joint.log_ratio(theta, sigma)]  # hears all: a numerator for this sigma
    for k in range(1, len(others.shares)):
        heard = rows.classes.rows >= k
        parts.append(np.log(others.shares[k]) + (rows.log_q.rows - log_p)[heard].sum())
    want = np.logaddexp.reduce(parts)
    if isinstance(voices, ls.Contrasts):
        m = sequence._running.directions.measured()
        S = m.targets - (rows.distinct.rows @ theta) @ m.loads
        total = m.squares[:, None] + m.lambdas
        shares = np.log(0.7 / 2 * np.array([0.3, 0.35, 0.25, 0.1]))
        tilted = shares + S[:, None] ** 2 / (2 * sigma**2 * total) + 0.5 * np.log(m.lambdas / total)
        want = np.logaddexp(np.log(0.3) + want, np.logaddexp.reduce(tilted.ravel()))
    assert s.log_ratio(theta, sigma) == pytest.approx(want, abs=1e-9)
    grid = np.array([s.log_ratio(theta, at) for at in np.geomspace(0.1, 3.0, 500)])
    assert grid.min() - 1e-3 <= s.log_ratio(theta) <= grid.min() + 1e-12
    assert s.log_ratio_by_covariate(theta).shape == (1, len(e.groups.covariates))


def test_sets_with_weights_are_those_of_one_voice():
    plain = dict(predictor=ls.Aggregate(ls.Mixture()))  # a numerator that knows no scale, in both
    sets = [
        observed(FAMILIES["gaussian"], voices, **plain).set for voices in (None, ls.Patience(), VOICES["contrasts"])
    ]
    weights = [1.0, 0.5, 0.0, 1.0]
    uppers = [s.support(CONTRASTS, covariate_weights=weights, level=2.0).upper for s in sets]
    np.testing.assert_allclose(uppers[1:], [uppers[0]] * 2, rtol=1e-6)


def test_units_of_measurement_do_not_matter():
    widths = []
    for unit in (1.0, 1e-6, 1e6):
        rng = np.random.default_rng(3)
        x = rng.normal(size=(60, 2))
        y = x @ THETA + 0.3 * rng.normal(size=60)
        for voices in (ls.Patience(), ls.Contrasts(CONTRASTS, simultaneous=False)):
            sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2), ALPHA, voices=voices)
            sequence.update(x, unit * y)
            widths.append(np.diff(sequence.set.interval(CONTRASTS), axis=0)[0] / unit)
    np.testing.assert_allclose(widths, widths[:2] * 3, rtol=1e-4)  # forecasts blend over scales from 1e-9 to 1e9


# -- guarantees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "n"), [(name, n) for name in FAMILIES for n in (1, 12)][:-2])
def test_one_step_growth(name, n):
    """From any state, at any (theta, nuisance), at a covariate that was seen or not."""
    family = FAMILIES[name] if "weibull" not in name else ls.Weibull(ls.Unknown(0.4, 4.0))
    sequence = observed(family, ls.Patience(4, tail=0.0), n=n, value=0.6)
    x, theta, value = ([0.6, 0.8], [0.9, 0.3], 1.3) if n == 1 else ([0.5, -1.0], THETA, 0.5)
    # the quadrature does not know where Laplace forecasts have their kinks
    most = 1.002 if name == "laplace" else 1.0 + 1e-4
    assert checks.one_step_growth(sequence, x, theta, nuisance=value) <= most


@pytest.mark.parametrize("voices", [v for k, v in VOICES.items() if k in ("windows", "contrasts")], ids=repr)
def test_one_step_growth_of_other_voices(voices):
    sequence = observed(FAMILIES["gaussian"], voices, n=15)
    if isinstance(voices, ls.Contrasts):
        assert (sequence._running.directions.units > 0).all()
    for x, sigma in (([0.6, 0.8], 0.3), ([5.0, -1.0], 2.0)):
        checks.check_growth(sequence, x, [THETA, [0.9, 0.3]], nuisance=sigma)


def test_a_voice_that_changes_its_numerator_is_no_martingale(monkeypatch):
    """Negative control: the numerator made for every sigma belongs to voices that hear all by definition only."""
    windows = ls.Windows.from_masks(ARMS[:2], np.eye(2))
    sequence = observed(FAMILIES["gaussian"], windows, n=3, design=lambda rng, n: np.tile(ARMS[0], (n, 1)))
    checks.check_growth(copy.deepcopy(sequence), ARMS[1], [THETA], nuisance=4.0)

    def today(self):
        whole = self.masks.all(axis=1)
        share = float(np.exp(self.log_shares[whole]).sum())
        parts = Membership(self.voices, self.space, self.log_shares[~whole], self.masks[~whole])
        return parts.table, np.log(share) if share else -np.inf

    monkeypatch.setattr(Membership, "whole_and_part", property(today))
    with pytest.raises(checks.ContractError):
        checks.check_growth(copy.deepcopy(sequence), ARMS[1], [THETA], nuisance=4.0)


def misses(name, voices, runs, steps):
    """Runs in which (theta, nuisance) was ever lost; x by the widest belief or the largest mean."""
    family, missed = FAMILIES[name], 0
    for number in range(runs):
        rng = np.random.default_rng([41, number])
        theta = rng.normal(size=2)
        theta *= 1.4 / np.linalg.norm(theta)
        value = float(np.exp(rng.uniform(-0.5, 0.7) if "weibull" in name else rng.uniform(-2.0, 0.5)))
        sequence = ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA, voices=voices)
        for step in range(steps):
            means, deviations = (None, None) if step < 4 else sequence.belief.moments(ARMS)
            x = ARMS[step if step < 4 else int(np.argmax(deviations if step % 2 else np.abs(means)))]
            sequence.update(x, outcomes(family, np.atleast_1d(x @ theta), value, rng))
            if not sequence.set.contains(theta, value):
                missed += 1
                break
    return missed


WITH_PATIENCE = ls.Contrasts(CONTRASTS, others=ls.Patience(3, tail=0.0))


@pytest.mark.parametrize(
    ("name", "voices"), [*((name, ls.Patience(4, tail=0.0)) for name in FAMILIES), ("gaussian", WITH_PATIENCE)]
)
def test_adaptive_anytime_coverage(name, voices):
    """False-alarm probability 1e-6."""
    runs, steps = (25, 24) if name == "gaussian" else (12, 12)
    assert misses(name, voices, runs, steps) <= binom.ppf(1 - 1e-6, runs, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "voices"), [*((name, ls.Patience()) for name in FAMILIES), ("gaussian", ls.Contrasts(CONTRASTS))]
)
def test_adaptive_anytime_coverage_of_many_runs(name, voices):
    assert misses(name, voices, 200, 100) <= binom.ppf(1 - 1e-6, 200, ALPHA)


def questions_missed(runs):
    """Runs in which the interval of an announced question, with a set of its own, ever lost the truth."""
    missed = np.zeros(2, dtype=int)
    for number in range(runs):
        rng = np.random.default_rng([42, number])
        voices = ls.Contrasts(CONTRASTS, simultaneous=False, others=None)
        sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2, 1.5), ALPHA, voices=voices)
        lost, truth = np.zeros(2, dtype=bool), CONTRASTS @ THETA
        low, high = -np.ones(2), np.ones(2)
        for step in range(4):
            x = rng.normal(size=(6, 2))
            if step > 1:  # towards the question that is closest to being lost
                x = 0.3 * x + CONTRASTS[int(np.argmin(np.minimum(truth - low, high - truth)))]
            sequence.update(x, x @ THETA + 0.3 * rng.normal(size=6))
            low, high = sequence.set.interval(CONTRASTS)
            lost |= (truth < low) | (truth > high)
        missed += lost
    return missed


def test_coverage_of_announced_questions_that_have_sets_of_their_own():
    assert (questions_missed(8) <= binom.ppf(1 - 1e-6, 8, ALPHA)).all()


@pytest.mark.slow
def test_coverage_of_announced_questions_in_many_runs():
    assert (questions_missed(200) <= binom.ppf(1 - 1e-6, 200, ALPHA)).all()


# -- widths ---------------------------------------------------------------------------------------------------------


def test_coefficients_of_the_diabetes_data():
    """Mean width relative to fixed-sample OLS, neither sigma nor a bound known: 2.3; with a known sigma 2.1."""
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    X = np.column_stack([np.ones(len(X)), X])
    ols = 2 * 1.96 * 0.7 * np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    order = np.random.default_rng(0).permutation(len(X))
    voices = ls.Contrasts(np.eye(11), simultaneous=False)
    sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(11), 0.05, voices=voices)
    sequence.update(X[order], y[order])
    low, high = sequence.set.interval(np.eye(11))
    assert ((high - low) / ols).mean() < 2.4


def test_what_not_knowing_sigma_costs():
    """Widths for a mean: 10 sigmas from five rows; 1.6, 1.28 and 1.22 times those with a known sigma at 12, 50, 100."""
    rows, widths = (5, 12, 50, 100), []
    for run in range(8):
        rng = np.random.default_rng([7, run])
        y = 0.5 + rng.normal(size=100)
        pair = []
        for sigma in (ls.Unknown(), 1.0):
            sequence = ls.ConfidenceSequence(ls.Gaussian(sigma), ls.Linear(1), 0.05)
            for first, last in zip((0, *rows), rows, strict=False):
                sequence.update(np.ones((last - first, 1)), y[first:last])
                pair.append(np.diff(np.ravel(sequence.set.interval([1.0])))[0])
        widths.append(np.reshape(pair, (2, len(rows))))
    unknown, known = np.mean(widths, axis=0)
    assert 8.0 < unknown[0] < 12.0
    assert (unknown / known)[1:] == pytest.approx([1.6, 1.28, 1.22], rel=0.05)


# -- hypotheses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Gaussian(0.4), ls.Gaussian(ls.Unknown())], ids=repr)
@pytest.mark.parametrize("simultaneous", [True, False])
def test_evidence_agrees_with_the_interval_both_ways(family, simultaneous):
    voices = ls.Contrasts(CONTRASTS, simultaneous, others=ls.Patience(2, tail=0.0))
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA, voices=voices)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 2))
    sequence.update(x, x @ THETA + 0.4 * rng.normal(size=60))
    s, asked = sequence.set, np.vstack([CONTRASTS[1:], [[0.3, 1.0]]])  # the last one was not announced
    low, high = s.interval(asked)
    excluded = s.evidence(asked, below=low - 1e-3), s.evidence(asked, above=high + 1e-3)
    allowed = s.evidence(asked, below=low + 1e-3), s.evidence(asked, above=high - 1e-3)
    for found in excluded:
        assert (found.e_value > 1 / ALPHA).all() and (found.p_value < ALPHA).all() and (found.gap < 1e-2).all()
    for found in allowed:
        assert (found.e_value < 1 / ALPHA).all() and (found.p_value > ALPHA).all() and (found.gap < 1e-2).all()
    # Levels are nested, and the interval at the p-value ends where the hypothesis does.
    found = excluded[0]
    for i in range(2):
        ends = s.interval(asked[i], alpha=float(found.p_value[i]))
        assert ends[0][0] == pytest.approx(low[i] - 1e-3, abs=2e-4)
    inner, outer = s.interval(asked, alpha=0.2), s.interval(asked, alpha=0.01)
    assert (outer[0] < low).all() and (low < inner[0]).all() and (inner[1] < high).all() and (high < outer[1]).all()


def test_evidence_with_an_unknown_shape_and_voices():
    s = observed(FAMILIES["weibull"], ls.Patience(2, tail=0.0), n=25, value=1.5).set
    high = s.upper([1.0, 0.0])[0]
    found = s.evidence([1.0, 0.0], above=[high + 1e-3, high - 1e-3]).e_value
    assert found[0] > 10 > found[1]


# -- everything a sequence can do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FAMILIES, "contrasts"])
def test_files_journals_copies_and_undo(name, tmp_path):
    family = FAMILIES.get(name, FAMILIES["gaussian"])
    voices = ls.Contrasts(CONTRASTS) if name == "contrasts" else ls.Patience(4).beside(ls.Windows(ARMS))
    rng = np.random.default_rng(6)
    x = ARMS[rng.integers(4, size=24)]
    y = outcomes(family, x @ THETA, 0.6, rng)
    made = dict(family=family, space=ls.Linear(2, 1.5), alpha=ALPHA, voices=voices)
    whole, half = ls.ConfidenceSequence(**made), ls.ConfidenceSequence(**made)
    whole.update(x, y)
    half.update(x[:14], y[:14])
    half.save(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(x[:14], y[:14])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    before = half.set.log_ratio(THETA)
    with pytest.raises(ls.LikesetError):
        half.update(x[14:], np.where(np.arange(10).reshape(-1, *[1] * (y.ndim - 1)) < 9, y[14:], np.nan))
    assert half.set.log_ratio(THETA) == before
    for sequence in (half, durable, ls.load(tmp_path / "half")):
        sequence.update(x[14:], y[14:])
        np.testing.assert_array_equal(sequence.ledger.classes.rows, whole.ledger.classes.rows)
        assert sequence.set.log_ratio(THETA) == whole.set.log_ratio(THETA)
        np.testing.assert_array_equal(sequence.set.upper(ARMS[:1]), whole.set.upper(ARMS[:1]))
    durable.close()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_default(name):
    """Patience for inference in linear models, where it repays its time; it is narrower for all of them."""
    family, width = FAMILIES[name], {}
    for voices in (ls.Patience(), None):
        rng = np.random.default_rng(9)
        x = ARMS[rng.integers(4, size=200)]
        sequence = ls.ConfidenceSequence(family, ls.Linear(2), ALPHA, voices=voices)
        sequence.update(x, outcomes(family, x @ THETA, 0.6, rng))
        width[repr(voices)] = float(np.diff(sequence.set.interval(np.eye(2)), axis=0).mean())
    assert width[repr(ls.Patience())] < 0.95 * width["None"]
    default = None if name == "laplace" else ls.Patience()
    for bound in (2.0, np.inf):
        sequence = ls.ConfidenceSequence(family, ls.Linear(5, bound), ALPHA)
        assert repr(sequence.voices) == repr(default)
        sequence.expect(np.eye(5), purpose="optimism")
        assert sequence.voices is None
        sequence.expect(np.eye(5), purpose="inference")
        assert repr(sequence.voices) == repr(default)
    space = ls.RKHS(RBF(0.3), 3.0, domain=np.linspace(0, 1, 5))
    assert ls.ConfidenceSequence(family, space, ALPHA).voices is None


def test_what_the_default_was_is_what_it_stays(tmp_path, monkeypatch):
    """Files, journals and studies made while "auto" meant the joint set go on with it."""
    family, space = FAMILIES["gaussian"], ls.Linear(2, 1.5)
    rng = np.random.default_rng(10)
    x = np.eye(2)[rng.integers(2, size=40)]
    y = x @ THETA + 0.4 * rng.normal(size=40)
    columns = {"v": ["ab"[int(row[1])] for row in x], "y": y.tolist()}

    def study(rows, name="earlier"):
        told = ls.Study(name, factors={"v": ["a", "b"]}, outcome={"y": ls.Weibull(ls.Unknown())}, store=tmp_path / "s")
        told.tell({"v": columns["v"][rows], "y": np.exp(y[rows]).tolist()})
        return told

    with monkeypatch.context() as earlier:
        earlier.setattr(automatic, "_in_linear_model", lambda *_: None)
        made = ls.ConfidenceSequence(family, space, ALPHA)
        assert made.voices is None
        made.update(x[:20], y[:20])
        made.save(tmp_path / "file")
        with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
            durable.update(x[:20], y[:20])
        study(slice(20))
    joint = ls.ConfidenceSequence(family, space, ALPHA, voices=None, alarm=made.alarm)
    joint.update(x, y)
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
        for later in (durable, ls.load(tmp_path / "file")):
            later.update(x[20:], y[20:])
            assert later.voices is None
            np.testing.assert_array_equal(later.set.interval(np.eye(2)), joint.set.interval(np.eye(2)))
    after = study(slice(20, 40))._fresh().sequence
    assert after.voices is None and after.n_observations == 40
    assert study(slice(20), "today")._fresh().sequence.voices is not None


def test_functions():
    space = ls.RKHS(RBF(0.3), 3.0, domain=np.linspace(0, 1, 15))
    f, rng = np.sin(4 * space.domain[:, 0]), np.random.default_rng(7)
    index = rng.integers(15, size=250)
    y = f[index] + 0.3 * rng.normal(size=250)
    width = {}
    pair = (space.domain[[3]], space.domain[[11]])
    for name, voices in (
        ("joint", None), ("windows", ls.Windows.covering(space, correlation=0.6)),
        ("contrast", ls.Contrasts(pair[0], minus=pair[1], simultaneous=False, others=None)),
    ):  # fmt: skip
        sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), space, ALPHA, voices=voices)
        sequence.update(space.domain[index], y)
        s = sequence.set
        assert s.contains(f) and s.contains(f, 0.3)
        low, high = s.interval(space.domain[::7])
        assert (low < f[::7]).all() and (f[::7] < high).all()
        difference = s.upper_difference(*pair)[0], -s.upper_difference(*pair[::-1])[0]
        assert difference[1] < f[3] - f[11] < difference[0]
        width[name] = difference[0] - difference[1], float(np.mean(high - low))
    assert width["contrast"][0] < 0.9 * width["joint"][0] and width["windows"][1] < 0.9 * width["joint"][1]


def test_little_data_says_little():
    for voices in (ls.Patience(), ls.Windows(ARMS)):
        for bound in (1.5, np.inf):
            sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2, bound), ALPHA, voices=voices)
            assert sequence.set.contains([0.3, 0.1]) and not sequence.set.is_empty
            sequence.update(ARMS[0], 3.0)
            assert not sequence.set.is_empty
            # A numerator that knows no scale tells a little of it after one row; without a range, that is next to none.
            assert (sequence.set.upper(ARMS) >= min(bound * (1 - 1e-9), 1e3)).all()
            assert sequence.set.nuisance_interval()[1] == np.inf or isinstance(voices, ls.Windows)
    # noise that cannot be told from none
    sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2, 10.0), ALPHA, voices=ls.Patience())
    sequence.update(np.tile(ARMS[0], (30, 1)), np.full(30, 3.0))
    assert sequence.set.contains([3.0, 1.0]) and sequence.set.upper(ARMS[:1])[0] >= 3.0


def test_a_range_that_excludes_the_data_is_refuted():
    for sigma in (ls.Unknown(hi=0.1), ls.Unknown(1.5, 3.0)):
        sequence = observed(ls.Gaussian(sigma), ls.Patience(3), n=1, value=sigma.hi)
        rng = np.random.default_rng(8)
        x = ARMS[rng.integers(4, size=150)]
        sequence.update(x, x @ THETA + 0.4 * rng.normal(size=150))
        assert sequence.set.is_empty
        with pytest.raises(ls.EmptySetError):
            sequence.set.upper(ARMS)
        with pytest.raises(ls.EmptySetError):
            sequence.set.nuisance_interval()


def test_evidence_against_equality_has_a_gap_that_is_true():
    """One side of the hypothesis holds the least evidence, which has no certificate of its own: the other decides."""
    rng = np.random.default_rng(1)
    sequence = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(2), ALPHA, voices=ls.Patience())
    x = np.eye(2)[rng.integers(2, size=120)]
    sequence.update(x, x @ [60.0, 40.0] + 15.0 * rng.normal(size=120))
    found, side = (sequence.set.evidence([1.0, -1.0], **{sense: 0.0}) for sense in ("equal", "below"))
    assert 5.0 < found.log_e_value[0] == side.log_e_value[0]
    assert 0.0 < found.gap[0] < 0.01 * found.log_e_value[0]
