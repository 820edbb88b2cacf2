"""Sets that have answered questions: pickled, copied, interrupted in the middle of an answer and asked again."""

import copy
import pickle
import signal
import threading
import timeit

import numpy as np
import pytest

import likeset as ls
from likeset import checks

ARMS = np.eye(3)
ASKED = np.array([[0.3, -0.8, 0.5], [1.0, 1.0, 0.0]])
CASES = {
    "pairs of arms": (ls.Bernoulli(), 8.0, ls.Contrasts(ARMS[1:], minus=ARMS[:1])),
    "pairs of Gamma laws": (ls.Gamma(2.0), np.inf, ls.Contrasts(ARMS[1:], minus=ARMS[:1])),
    "pairs of over-dispersed counts": (ls.NegativeBinomial(0.5), 8.0, ls.Contrasts(ARMS[1:], minus=ARMS[:1])),
    "windows that open, no bound": (ls.Gaussian(0.5), np.inf, ls.Patience().beside(ls.OpeningWindows())),
    "duels, no bound": (ls.Poisson(), np.inf, ls.Duels(ARMS)),
    "tilts": (ls.Poisson(), 4.0, ls.Contrasts(ARMS)),
    "directions, no bound": (ls.Gaussian(0.5), np.inf, ls.Contrasts(ARMS, simultaneous=False)),
    "patience, scale unknown": (ls.Gaussian(ls.Unknown()), 4.0, ls.Patience()),
    "shape unknown": (ls.Weibull(shape=ls.Unknown(0.5, 3.0)), 4.0, "auto"),
}


def observed(case):
    family, bound, voices = CASES[case]
    rng = np.random.default_rng(3)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), 0.1, voices=voices)
    x = ARMS[np.arange(60) % 3]
    sequence.update(x, checks.one_law(family, None)[0].sample(x @ [0.3, 0.8, -0.5], rng))
    return sequence


def answers(s):
    return [
        *s.interval(ASKED), *s.interval(ARMS), s.upper_difference(ARMS[0], ARMS[1]), s.interval(ASKED, alpha=0.3)[0],
        s.evidence(ARMS, below=0.0).log_e_value, s.log_ratio(ASKED), np.array([s.is_empty]),
    ]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_has_answered_can_be_pickled_and_copied(case):
    sequence = observed(case)
    expected = answers(sequence.set)
    twins = [pickle.loads(pickle.dumps(sequence)).set, copy.deepcopy(sequence).set]
    for s in (*twins, pickle.loads(pickle.dumps(sequence.set)), copy.deepcopy(sequence.set)):
        for found, answer in zip(answers(s), expected, strict=True):
            assert np.array_equal(found, answer)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
# What arrives while garbage is collected is lost to a callback of hypothesis.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", ["pairs of arms", "directions, no bound"])
def test_interrupts_of_answers_are_interrupts(case):
    """At random times: a KeyboardInterrupt each, whatever compiled code makes of it, and the next answer is right."""
    rng, sequence = np.random.default_rng(0), observed(case)
    s, handler, hits = sequence.set, signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    expected = s.interval(ASKED)
    takes = min(timeit.repeat(lambda: s.interval(ASKED), number=1, repeat=20))
    try:
        for _ in range(150):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(0.02, 0.9)) * takes)
                s.interval(ASKED)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                hits += 1
            assert np.array_equal(s.interval(ASKED), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    assert hits > 20
