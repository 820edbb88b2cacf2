"""Hypotheses about contrasts of means: borders in the plane of two means, certified evidence, agreement, validity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset._solver.borders import Border, division
from likeset.answers.margins import border_of
from likeset.curves import Curve
from likeset.families.canonical import canonical_form

ARMS = np.eye(3)
FAMILIES = [
    ls.Bernoulli(), ls.Binomial(4), ls.Poisson(), ls.Weibull(1.5), ls.Exponential(), ls.Gamma(2.0),
    ls.NegativeBinomial(0.5),
]  # fmt: skip
OF = {
    "difference": lambda one, other: one - other,
    "ratio": lambda one, other: one / other,
    "odds": lambda one, other: one / (1.0 - one) / (other / (1.0 - other)),
}
KINDS = [
    (family, of)
    for family in FAMILIES
    for of in ("difference", "ratio", *(["odds"] if isinstance(family, ls.Bernoulli) else []))
]
LIMITS = {"difference": (-0.13, 0.0, 0.07), "ratio": (0.6, 1.0, 1.3), "odds": (0.5, 1.0, 1.7)}


def observed(family, n=90, theta=(-0.5, 0.3, 0.0), simultaneous=True, bound=3.0, seed=0):
    rng = np.random.default_rng(seed)
    voices = ls.Contrasts(ARMS[1:], simultaneous, minus=ARMS[0], others=ls.Patience(3, tail=0.0))
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), 0.1, voices=voices)
    index = rng.integers(3, size=n)
    sequence.update(ARMS[index], family.sample(np.array(theta)[index], rng))
    return sequence.set


def pair_of(s):
    return s._questions.pair(s._others, s.space, ARMS[1], ARMS[0], np.ones(2))


def predictors(family, m):
    """z at means m of the family's curve."""
    form = canonical_form(family)
    u = np.log(m) if form.curve is Curve.EXPONENTIAL else np.log(m / (1.0 - m))
    return form.sign * (u - form.shift)


# -- borders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "of"), KINDS, ids=str)
def test_a_border_is_where_the_contrast_has_its_limit(family, of):
    """Means of the family itself, at points of the border; to which side it is larger; tangents meet in its corners."""
    for limit in LIMITS[of]:
        border = border_of(family, canonical_form(family), of, limit)
        if isinstance(family, ls.Weibull) and family.shape == 1.5 and of == "difference":
            assert border is None  # e^(-z/p): no Moebius function of e^z
            return
        z = np.linspace(-1.0, 1.5, 40)
        t = pair_of(observed(family)).means(canonical_form(family).sign * z + canonical_form(family).shift)
        points = border.at(t)
        inside = (points[:, 0] > 0.0) & (points[:, 0] < (1.0 if hasattr(family, "trials") else np.inf))
        points = points[inside & (border.c * t + border.d > 0.0)]
        assert len(points) > 10
        found = OF[of](*(family.mean(predictors(family, m)) for m in points.T))
        np.testing.assert_allclose(found, limit, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(border.where(points[:, 0]), points[:, 1], rtol=1e-9)
        order = np.argsort(points[:, 1])
        first, last = points[order[:-1]], points[order[1:]]
        corner = border.corners(first[:, 1], last[:, 1])
        for end in (first, last):
            slope = (border.a * border.d - border.b * border.c) / (border.c * end[:, 1] + border.d) ** 2
            np.testing.assert_allclose(
                corner[:, 0] - end[:, 0], slope * (corner[:, 1] - end[:, 1]), atol=1e-9 * np.abs(end).max()
            )
        for m in points[::7]:
            assert border.side(m * [1.01, 1.0]) == 1 and border.side(m * [0.99, 1.0]) == -1


def test_where_a_border_runs_through_a_box():
    """Against a fine grid, for lines and curves with a pole on either side, also where it misses the box."""
    rng, seen = np.random.default_rng(1), set()
    for _ in range(300):
        B = [[1.0, rng.normal()], [0.0, 1.0]] if rng.random() < 0.5 else [[np.exp(rng.normal()), 0.0], [0.0, 1.0]]
        G = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]], [[2.0, 0.0], [-1.0, 1.0]]][rng.integers(3)]
        (a, b), (c, d) = np.linalg.solve(G, np.array(B) @ G)
        border = Border(a, b, c, d)
        low, high = np.sort(rng.uniform(0.01, 0.99, size=(2, 2)), axis=0)
        t = np.linspace(low[1], high[1], 2001)
        t = t[c * t + d > 1e-9]
        m = border.at(t)[:, 0]
        on = t[(m >= low[0]) & (m <= high[0])]
        start, end = border.within(low, high)
        seen.add((len(on) > 0, np.sign(round(c, 9))))
        assert (start <= end) or not len(on)
        if len(on):
            step = (high[1] - low[1]) / 2000
            assert on[0] - step <= start <= on[0] + 1e-9 and on[-1] - 1e-9 <= end <= on[-1] + step
    assert len(seen) == 6


@pytest.mark.parametrize(("family", "of"), KINDS, ids=str)
def test_the_least_evidence_on_a_border_is_certified(family, of):
    """Against a fine grid on the border and a coarse one of the plane, on either side."""
    pair, form = pair_of(observed(family)), canonical_form(family)
    z = np.linspace(float(pair.low.max()), float(pair.high.min()), 2001)
    plane = np.stack(np.meshgrid(z[::50], z[::50], indexing="ij"), axis=-1).reshape(-1, 2)
    everywhere = pair.values(plane)
    for limit in LIMITS[of]:
        border = border_of(family, form, of, limit)
        if border is None:
            return
        points = border.at(pair.means(z))
        inside = (points[:, 0] >= pair.means(pair.low)[0]) & (points[:, 0] <= pair.means(pair.high)[0])
        least = pair.heights(points[inside & (border.c * points[:, 1] + border.d > 0)])[0].min()
        found = division(pair, border)
        assert least - 1e-3 * (1 + abs(least)) <= found.least <= found.attained <= least + 1e-6
        sides = np.array([border.side(m) for m in pair.means(plane)])
        for side in (-1, 1):
            low, high = found.against(side)
            assert low <= everywhere[sides == side].min() + 1e-9 and low <= high
        assert found.apart in (0, found.likely)


# -- evidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "of"), KINDS[:3] + KINDS[-4:], ids=str)
@pytest.mark.parametrize("simultaneous", [True, False])
def test_evidence_says_what_the_contrast_says(family, of, simultaneous):
    """Just beyond an end it exceeds 1/alpha, a little inside it does not; all at once, in any order of the arms."""
    s = observed(family, simultaneous=simultaneous)
    found = s.contrast(ARMS[[1]], ARMS[[0]], of=of)
    low, high = found.lower[0], found.upper[0]
    if border_of(family, canonical_form(family), of, high) is None:
        with pytest.raises(ls.InvalidArgumentError, match="of"):
            s.evidence(ARMS[1], minus=ARMS[0], of=of, above=high)
        return

    def moved(end, share):
        """An end, so much of the width further up."""
        return end + share * (high - low) if of == "difference" else end * (high / low) ** share

    above = s.evidence(ARMS[1], minus=ARMS[0], of=of, above=[moved(high, 1e-9), high, moved(high, -0.01)])
    below = s.evidence(ARMS[1], minus=ARMS[0], of=of, below=[moved(low, -1e-9), low, moved(low, 0.01)])
    for one in (above, below):
        assert one.e_value[0] > 10.0 >= one.e_value[1] >= one.e_value[2] > 7.0
    equal = s.evidence(ARMS[1], minus=ARMS[0], of=of, equal=[moved(low, p) for p in (-0.01, 0.5, 1.01)])
    assert (equal.e_value[[0, 2]] > 10.0).all() and equal.e_value[1] < 10.0
    turned = -moved(low, 0.01) if of == "difference" else 1.0 / moved(low, 0.01)
    assert 10.0 >= s.evidence(ARMS[0], minus=ARMS[1], of=of, above=turned).e_value[0] > 7.0


def test_predictors_and_means_are_one_question():
    """z - z' = c is an odds ratio of proportions, and a ratio of counts and of lifetimes; any multiple of x - x'."""
    for family, of, slope in (
        (ls.Bernoulli(), "odds", 1.0),
        (ls.Gamma(2.0), "ratio", 1.0),
        (ls.Weibull(1.5), "ratio", -1 / 1.5),
    ):
        s = observed(family)
        for c in (-0.3, 0.0, 0.4):
            one = s.evidence(ARMS[1] - ARMS[0], below=c).log_e_value
            side = "below" if slope > 0 else "above"
            other = s.evidence(ARMS[1], minus=ARMS[0], of=of, **{side: np.exp(slope * c)}).log_e_value
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
            turned = s.evidence(-2.0 * (ARMS[1] - ARMS[0]), above=-2.0 * c).log_e_value
            np.testing.assert_allclose(turned, one, rtol=1e-9, atol=1e-9)


def test_arms_that_were_not_announced_and_noise_around_z():
    """There the contrast must be a function of z - z'; then evidence is that of the row x - x'."""
    s = observed(ls.Poisson())
    one = s.evidence(ARMS[1], minus=ARMS[2], of="ratio", above=1.5).log_e_value
    np.testing.assert_allclose(one, s.evidence(ARMS[1] - ARMS[2], above=np.log(1.5)).log_e_value)
    with pytest.raises(ls.InvalidArgumentError, match="announce the pair"):
        s.evidence(ARMS[1], minus=ARMS[2], of="difference", above=0.5)
    rng = np.random.default_rng(0)
    noise = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 3.0), voices=ls.Contrasts([[1.0, -1.0]]))
    noise.update(np.tile(np.eye(2), (50, 1)), rng.normal(size=100))
    one = noise.set.evidence([1.0, 0.0], minus=[0.0, 1.0], of="difference", above=[0.2, 0.5])
    np.testing.assert_allclose(one.log_e_value, noise.set.evidence([1.0, -1.0], above=[0.2, 0.5]).log_e_value)


def test_lifetimes_in_seconds_say_what_they_say_in_days():
    """What is lost to rounding must not grow with the unit: sums of t^p are 10^15 times as large in seconds."""
    rng, found = np.random.default_rng(5), []
    days = np.concatenate([30.0 * rng.weibull(3.0, 100), 40.0 * rng.weibull(3.0, 100)])
    rows, order = np.repeat(np.eye(2), 100, axis=0), rng.permutation(200)
    for unit in (1.0, 24.0, 86400.0, 86400e3):
        voices = ls.Contrasts([[1.0, 0.0]], minus=[[0.0, 1.0]], others=ls.Patience(2, tail=0.0))
        sequence = ls.ConfidenceSequence(ls.Weibull(3.0), ls.Linear(2), voices=voices, alarm=False)
        sequence.update(rows[order], unit * days[order])
        said = sequence.set.evidence([1.0, 0.0], minus=[0.0, 1.0], of="ratio", above=1.0)
        ratio = sequence.set.contrast([1.0, 0.0], [0.0, 1.0], "ratio")
        assert said.gap[0] < 1e-4
        found.append((said.log_e_value[0], np.log(float(ratio.upper[0]) / float(ratio.lower[0]))))
    np.testing.assert_allclose(found[1:], [found[0]] * 3, rtol=0.1)


def test_what_no_means_can_be_is_impossible():
    s = observed(ls.Bernoulli())
    assert s.evidence(ARMS[1], minus=ARMS[0], of="difference", above=1.5).log_e_value[0] == np.inf
    assert s.evidence(ARMS[1], minus=ARMS[0], of="difference", below=1.5).log_e_value[0] <= 0.0


def test_a_margin_that_is_exactly_met_is_rarely_excluded():
    """Non-inferiority under peeking and a bandit's allocation: the variant is worse by the margin itself, so that
    "worse by the margin or more" is true. False-alarm probability 1e-6. A margin met with room is certified."""
    runs, wrong, right = 40, 0, 0
    border = border_of(ls.Bernoulli(), canonical_form(ls.Bernoulli()), "difference", -0.1)
    for number in range(runs):
        rng = np.random.default_rng([51, number])
        voices = ls.Contrasts(ARMS[[1]], simultaneous=False, minus=ARMS[0], others=None)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 4.0), 0.1, voices=voices, alarm=False)
        rates, wins, tries, alarm = np.array([0.5, 0.4]), np.ones(2), 2 * np.ones(2), False
        for _ in range(12):
            arm = int(np.argmax(wins / tries + rng.normal(size=2) / np.sqrt(tries)))
            y = rng.binomial(60, rates[arm])
            sequence.update(ARMS[[arm]], [y], trials=[60])
            wins[arm], tries[arm] = wins[arm] + y, tries[arm] + 60
            alarm |= division(pair_of(sequence.set), border).against(-1)[0] > np.log(10.0)
        wrong += alarm
        if number < 10:
            room = sequence.set.evidence(ARMS[1], minus=ARMS[0], of="difference", below=-0.4).e_value[0]
            right += bool(room > 10.0)
    assert wrong <= binom.ppf(1 - 1e-6, runs, 0.1) and right >= 5


def test_bad_input():
    s = observed(ls.Poisson())
    for wrong, match in (
        ({"minus": ARMS[0], "above": 1.0}, "of"),
        ({"of": "ratio", "above": 1.0}, "minus"),
        ({"minus": ARMS[0], "of": "ratio", "above": 0.0}, "positive"),
        ({"minus": ARMS[0], "of": "odds", "above": 1.0}, "proportions"),
        ({"minus": ARMS[0], "of": "more", "above": 1.0}, "of"),
        ({"minus": ARMS[0], "of": "ratio"}, "hypothesis"),
        ({"minus": ARMS[:2], "of": "ratio", "above": [1.0, 2.0, 3.0]}, "above"),
    ):
        with pytest.raises(ls.InvalidArgumentError, match=match):
            s.evidence(ARMS[1], **wrong)
    with pytest.raises(ls.InvalidArgumentError, match="of"):
        s.evidence(minus=ARMS[0], of="ratio", theta=np.zeros(3))
