"""Late answers: when the order of arrival depends on y the guarantee is lost; each of the legal ways keeps it.

Units enter one after the other, their answers become known later, and after every row that is booked we look whether
the truth is still in the set. A run is a miss if it ever is not. For valid bookkeeping the number of misses in N runs
is at most Binomial(N, alpha), so it exceeds ``allowed(N)`` with probability below 1e-6. The controls miss the truth in
about half of all runs; with a probability of only 0.4 per run, 100 runs would stay within ``allowed(100)`` with
probability below 1e-5. Seeds are fixed.
"""

import heapq
import itertools

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls

ALPHA = 0.05
SHAPE = 2.0
SPACE = ls.Linear(dim=2, bound=1.5)
TREATMENTS = np.array([[1.0, 0.0], [0.6, 0.8], [1.0, 0.5]])


def allowed(runs):
    return int(binom.ppf(1 - 1e-6, runs, ALPHA))


def misses(family, rows_of, runs, seed):
    """Runs in which the rows (x, y), in the order in which they are booked, ever make the set lose the truth."""
    count = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        theta = rng.normal(size=2)
        theta *= SPACE.bound * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        seq = ls.ConfidenceSequence(family, SPACE, ALPHA)
        for x, y in rows_of(rng, theta):
            seq.update(x, [y])
            if seq.set.log_ratio(theta) > np.log(1 / ALPHA):
                count += 1
                break
    return count


# -- survival times --------------------------------------------------------------------------------------------------


def patients(rng, theta, n=40):
    """Entries over one unit of time, in order; treatments at random; lifetimes of about one unit."""
    entry = np.sort(rng.uniform(0, 1, size=n))
    X = TREATMENTS[rng.integers(len(TREATMENTS), size=n)]
    return entry, X, ls.Weibull(SHAPE).sample(X @ theta, rng)[:, 0]


def deaths_as_they_occur(rng, theta):
    """Wrong: who dies soon is booked soon."""
    entry, X, life = patients(rng, theta)
    for i in np.argsort(entry + life):
        yield X[i], (life[i], 1)


def at_the_end_of_a_window(rng, theta):
    """Every patient is followed for a time fixed at entry, and booked when it is over, dead or alive."""
    entry, X, life = patients(rng, theta)
    window = rng.uniform(0.3, 1.0, size=len(life))
    for i in np.argsort(entry + window):
        yield X[i], (min(life[i], window[i]), life[i] <= window[i])


def on_one_date(rng, theta):
    """All at one date fixed in advance, in order of entry, censored at their age on that date."""
    entry, X, life = patients(rng, theta)
    age = 1.2 - entry
    for i in range(len(life)):
        yield X[i], (min(life[i], age[i]), life[i] <= age[i])


def piece_by_piece(rng, theta):
    """At dates fixed in advance, one row for every patient alive before, in order of entry.

    T^p is memoryless given z, so what a patient lives through from age a to age b is a Weibull observation of the same
    shape and z, of length (b^p - a^p)^(1/p).
    """
    entry, X, life = patients(rng, theta)
    for since, until in itertools.pairwise(np.linspace(0, 2, 5)):
        for i in range(len(life)):
            a, b = max(since - entry[i], 0.0), min(until - entry[i], life[i])
            if b > a:
                yield X[i], ((b**SHAPE - a**SHAPE) ** (1 / SHAPE), life[i] <= until - entry[i])


def test_deaths_booked_as_they_occur_lose_the_truth():
    assert misses(ls.Weibull(SHAPE), deaths_as_they_occur, 100, seed=1) > 50


@pytest.mark.parametrize("rows_of", [at_the_end_of_a_window, on_one_date, piece_by_piece])
def test_legal_bookkeeping_of_lifetimes_covers(rows_of):
    runs = 60
    assert misses(ls.Weibull(SHAPE), rows_of, runs, seed=2) <= allowed(runs)


@pytest.mark.slow
@pytest.mark.parametrize("rows_of", [at_the_end_of_a_window, on_one_date, piece_by_piece])
def test_legal_bookkeeping_of_lifetimes_covers_in_many_runs(rows_of):
    runs = 1000
    assert misses(ls.Weibull(SHAPE), rows_of, runs, seed=3) <= allowed(runs)


# -- conversions -----------------------------------------------------------------------------------------------------


def visitors(delay):
    """Three visitors a day; a policy chooses from the answers so far what they see; answers come ``delay`` days later.

    ``delay(rng, converted)`` is drawn when the visitor comes.
    """

    def rows_of(rng, theta, visitors=90):
        on_the_way = []
        seen = np.zeros(len(TREATMENTS))
        for visitor in range(visitors):
            day = visitor // 3
            arm = int(np.argmax(seen + rng.gumbel(size=len(seen))))  # adaptive: conversions attract more visitors
            converted = rng.uniform() < 1 / (1 + np.exp(-TREATMENTS[arm] @ theta))
            heapq.heappush(on_the_way, (day + delay(rng, converted), visitor, arm, int(converted)))
            while on_the_way and on_the_way[0][0] <= day:
                *_, arm, converted = heapq.heappop(on_the_way)
                seen[arm] += 0.2 * converted
                yield TREATMENTS[arm], converted

    return rows_of


conversions_at_once = visitors(lambda rng, converted: 0 if converted else 14)
after_two_weeks = visitors(lambda rng, converted: 14)
at_random = visitors(lambda rng, converted: int(rng.integers(0, 30)))


def test_conversions_at_once_and_failures_later_lose_the_truth():
    runs = 100
    assert misses(ls.Bernoulli(), conversions_at_once, runs, seed=4) > allowed(runs)


@pytest.mark.parametrize("rows_of", [after_two_weeks, at_random], ids=["after two weeks", "at random"])
def test_delays_that_do_not_depend_on_y_cover(rows_of):
    runs = 60
    assert misses(ls.Bernoulli(), rows_of, runs, seed=5) <= allowed(runs)


@pytest.mark.slow
@pytest.mark.parametrize("rows_of", [after_two_weeks, at_random], ids=["after two weeks", "at random"])
def test_delays_that_do_not_depend_on_y_cover_in_many_runs(rows_of):
    runs = 1000
    assert misses(ls.Bernoulli(), rows_of, runs, seed=6) <= allowed(runs)


# -- order and scale -------------------------------------------------------------------------------------------------


def sorted_by_outcome(rng, theta, n=60):
    """Wrong: the table was sorted by y before it was fed."""
    X = TREATMENTS[rng.integers(len(TREATMENTS), size=n)]
    y = ls.Bernoulli().sample(X @ theta, rng)
    for i in np.argsort(y, kind="stable"):
        yield X[i], int(y[i])


def test_rows_sorted_by_outcome_lose_the_truth():
    runs = 100
    assert misses(ls.Bernoulli(), sorted_by_outcome, runs, seed=7) > allowed(runs)
