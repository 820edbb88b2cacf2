"""What holds of every family with all voices, found in the package's lists: a set that agrees with itself.

Designs are hostile on purpose: covariates that grow a thousandfold, repeat, vanish, and depend on what was seen.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import likeset as ls
from likeset import checks
from likeset.families.nuisance_family import NuisanceFamily
from likeset.voices import VOICES

ALPHA, ROWS = 0.1, 18
LEVEL = -np.log(ALPHA)
ARMS = np.eye(2)
THETA = np.array([0.5, -0.4])

UNKNOWN = [
    ls.Gaussian(sigma=ls.Unknown()), ls.Laplace(scale=ls.Unknown()), ls.Weibull(shape=ls.Unknown(0.5, 3.0)),
    ls.LogWeibull(shape=ls.Unknown(0.5, 3.0)),
]  # fmt: skip
KNOWN = [family for family in checks.built_in_families() if family.convex]
EXAMPLES = {
    "Windows": [lambda: ls.Windows(ARMS), lambda: ls.Windows(ARMS, joint_share=0.5)],
    "MaskedWindows": [lambda: ls.Windows.from_masks(ARMS, np.eye(2))],
    "OpeningWindows": [ls.OpeningWindows],
    "Patience": [ls.Patience],
    "Beside": [lambda: ls.Patience().beside(ls.OpeningWindows())],
    "Within": [lambda: ls.Patience(voices=3, ratio=4.0).within(ls.Windows(ARMS))],
    "Contrasts": [
        lambda: ls.Contrasts(ARMS), lambda: ls.Contrasts(ARMS, simultaneous=False),
        lambda: ls.Contrasts(ARMS[:1], minus=ARMS[1:], others=None),
    ],
    "Duels": [lambda: ls.Duels(ARMS), lambda: ls.Duels(ARMS, largest=False, others=None)],
}  # fmt: skip
NAMES = tuple(type(family).__name__ for family in KNOWN)
KINDS = [(name, i) for name, makers in EXAMPLES.items() for i in range(len(makers))]


def test_every_kind_of_voices_is_here():
    assert set(EXAMPLES) == {kind.__name__ for kind in VOICES}


def cases(quick, quick_defaults):
    """Families with kinds of voices, and with the default ones; those that are not quick are for the long run."""
    kinds = [("auto", lambda: "auto"), *((f"{name}{i}", EXAMPLES[name][i]) for name, i in KINDS)]
    found = []
    for family, (name, voices) in itertools.product([*KNOWN, *UNKNOWN], kinds):
        known = not isinstance(family, NuisanceFamily)
        soon = known and type(family).__name__ in (quick_defaults if name == "auto" else quick)
        marks = () if soon else pytest.mark.slow
        found.append(pytest.param(family, voices, marks=marks, id=f"{family!r}-{name}"))
    return found


def sequence_of(family, voices, bound):
    try:
        return ls.ConfidenceSequence(family, ls.Linear(2, bound), ALPHA, voices=voices())
    except ls.InvalidArgumentError as error:  # the only way out: a typed refusal that names the voices
        assert error.argument in ("voices", "windows", "contrasts")
        pytest.skip("these voices cannot be had for this family")


def drawn(family):
    """Covariates that repeat, vanish and grow, and outcomes of the family; lifetimes are censored at times."""
    rng = np.random.default_rng(3)
    x = np.where(np.arange(ROWS)[:, None] % 3 == 0, ARMS[rng.integers(2, size=ROWS)], rng.normal(size=(ROWS, 2)))
    x = x * np.geomspace(0.01, 4.0, ROWS)[:, None]
    x[::7] = 0.0
    y = checks.one_law(family, None)[0].sample(x @ THETA, rng)
    if np.ndim(y) == 2:
        y[::5, 1] = 0.0
    return x, y


def members_of(s, rng):
    """Parameters all around, and which of them the set holds."""
    around = THETA + rng.normal(size=(160, 2)) * np.repeat([1e-3, 0.05, 0.5, 3.0], 40)[:, None]
    lengths = np.linalg.norm(around, axis=1, keepdims=True)
    around = np.where(lengths > s.space.bound, around * (0.999 * s.space.bound / lengths), around)
    return around, s.contains(around)


@pytest.mark.parametrize(("family", "voices"), cases(("Gaussian", "Poisson", "Exponential"), NAMES))
@pytest.mark.parametrize("bound", [2.0, np.inf], ids=["bounded", "all"])
def test_a_set_agrees_with_itself(family, voices, bound, tmp_path, monkeypatch):
    sequence, (x, y) = sequence_of(family, voices, bound), drawn(family)
    sequence.update(x[:9], y[:9])
    whole, untouched = copy.deepcopy(sequence), sequence.set

    # A batch that fails in the middle leaves nothing behind, and rows told one by one are the same as all at once.
    observe, told = sequence.forecaster.observe, []

    def torn(phi, outcome):
        observe(phi, outcome)
        told.append(outcome)
        if len(told) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sequence._running.forecaster, "observe", torn)
        with pytest.raises(KeyboardInterrupt):
            sequence.update(x[9:], y[9:])
    sequence._running.forecaster.__dict__.pop("observe", None)
    assert sequence.n_observations == 9
    assert np.array_equal(sequence.set.log_ratio(ARMS), untouched.log_ratio(ARMS))
    for one, outcome in zip(x[9:], y[9:], strict=True):
        sequence.update(one, outcome[None])
    whole.update(x[9:], y[9:])
    whole.save(tmp_path / "file")
    s = whole.set
    around, members = members_of(s, np.random.default_rng(4))
    ratios = s.log_ratio(around)
    for other in (sequence.set, ls.load(tmp_path / "file").set):
        assert np.array_equal(other.log_ratio(around), ratios)

    # Membership is what the ratio says, and evidence never says more.
    assert not np.isnan(ratios).any()
    near = np.abs(ratios - LEVEL) < 1e-6 * (1.0 + LEVEL)
    assert (members == (ratios <= LEVEL))[~near].all()
    assert (s.evidence(theta=around).log_e_value <= ratios + 1e-9 * (1.0 + np.abs(ratios))).all()
    if s.is_empty:
        assert not members.any()
        return

    # Bounds hold the members. Sets of their own are smaller, and asked about other members.
    own = [s, s] if s._asked(ARMS) is None else [s._of_its_own(k) for k in range(2)]
    low, high = s.interval(ARMS)
    assert (low <= high).all()
    for k in range(2):
        found = around[own[k].contains(around)][:, k]
        assert ((low[k] <= found + 1e-12) & (found <= high[k] + 1e-12)).all()
    assert (around[members] @ [1.0, -1.0] <= s.upper_difference([1.0, 0.0], [0.0, 1.0]) + 1e-9).all()

    # A hypothesis is refuted exactly where bounds exclude it, and no parameter it allows has less evidence against it.
    ends = [(low[0] - 0.1, low[0] + 0.1)] if np.isfinite(low[0]) else []
    for excluded, allowed in ends:
        found = s.evidence([[1.0, 0.0]], below=[excluded, allowed]).log_e_value
        assert found[0] > LEVEL >= found[1]
        least = own[0].log_ratio(around)[around[:, 0] <= allowed].min(initial=np.inf)
        assert found[1] <= least + 1e-6 * (1.0 + np.abs(least))


@pytest.mark.parametrize(("family", "voices"), cases(("Poisson", "Bernoulli"), ("Gaussian",)))
def test_no_ratio_grows_on_average(family, voices):
    """One step at a new covariate, by enumeration or quadrature: near the truth, at the end of Theta, far from both."""
    sequence, (x, y) = sequence_of(family, voices, 2.0), drawn(family)
    sequence.update(x, y)
    for nuisance in (0.6, 1.4) if isinstance(family, NuisanceFamily) else (None,):
        checks.check_growth(sequence, [0.3, 0.5], [THETA, 2.0 * THETA / np.linalg.norm(THETA), [-1.2, 1.0]], nuisance)
