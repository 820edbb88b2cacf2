"""An update happens or does not: interrupts at every line, errors, threads, and what a batch costs."""

import copy
import pickle
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls

GRID = np.linspace(0.0, 1.0, 12)


class Average:
    """A user's own forecaster, with two attributes that change one after the other."""

    def __init__(self, family):
        self.family, self.total, self.count, self.widths = family, 0.0, 0, []

    def forecast(self, phi):
        return ls.PlugIn(self.family, self.total / (1.0 + self.count))

    def observe(self, phi, y):
        self.total += float(y)
        self.widths.append(len(phi.coordinates))
        self.count += 1


class Halving:
    """A user's own weighting."""

    def __init__(self):
        self.seen = 0

    def weight(self, phi):
        return 1.0 / (1.0 + self.seen)

    def observe(self, phi, y):
        self.seen += 1


def arms(n=10, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def linear(family, **pieces):
    return ls.ConfidenceSequence(family, ls.Linear(3, 3.0), **pieces)


def functions(family, **pieces):
    return ls.ConfidenceSequence(family, ls.RKHS(RBF(0.3), 2.0, GRID), **pieces)


OWN_FAMILY = ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2 + 0.5 * np.log(2 * np.pi), support="real", convex=True)

CASES = {
    "gaussian": (lambda: linear(ls.Gaussian(0.5)), "real"),
    "gaussian, windows": (lambda: functions(ls.Gaussian(0.5)), "function"),
    "own weighting": (lambda: functions(ls.Gaussian(0.5), windows=None, weighting=Halving()), "function"),
    "poisson": (lambda: linear(ls.Poisson(), weighting=ls.BiasWeighting()), "count"),
    "poisson, ftrl": (lambda: linear(ls.Poisson(), predictor=ls.FTRL()), "count"),
    "poisson, vaw": (lambda: linear(ls.Poisson(), predictor=ls.VAW(), weighting=ls.BiasWeighting("exact")), "count"),
    "laplace": (lambda: linear(ls.Laplace(0.5)), "real"),
    "laplace, ftrl": (lambda: linear(ls.Laplace(0.5), predictor=ls.FTRL()), "real"),
    "laplace, windows": (lambda: functions(ls.Laplace(0.5)), "function"),
    "aggregate": (lambda: linear(ls.Binomial(5), predictor=ls.Aggregate(ls.FTRL(0.5), ls.Mixture())), "count"),
    "own family": (lambda: linear(OWN_FAMILY), "real"),
    "own forecaster": (lambda: linear(ls.Gaussian(0.5), predictor=Average(ls.Gaussian(0.5))), "real"),
    "own in aggregate": (
        lambda: linear(ls.Gaussian(0.5), predictor=ls.Aggregate(Average(ls.Gaussian(0.5)), ls.Mixture())),
        "real",
    ),
}  # fmt: skip


def rows(kind, n, seed):
    rng = np.random.default_rng(seed)
    x = GRID[rng.integers(len(GRID), size=n)] if kind == "function" else arms()[rng.integers(10, size=n)]
    return x, rng.integers(0, 5, size=n).astype(float) if kind == "count" else rng.normal(size=n).round(1)


def begun(case):
    make, kind = CASES[case]
    sequence = make()
    sequence.update(*rows(kind, 7, seed=1))
    return sequence


def fingerprint(sequence):
    """Everything that decides what the sequence will say, as bytes."""
    running = sequence._running
    state = {"ledger": running.ledger.state(), "basis": running.basis.state()}
    state["windows"] = {} if running.membership is None else running.membership.state()
    for role in ("forecaster", "weigher"):
        state[role] = _plain(getattr(running, role))
    state["set"] = {"gains": sequence.set._evidence.gains, "n": np.array(sequence.n_observations)}
    return pickle.dumps({k: {n: _bytes(v) for n, v in group.items()} for k, group in state.items()})


def _plain(piece):
    members = getattr(piece, "members", ())
    if any(isinstance(m, Average) for m in members):
        return {"shares": piece.log_shares} | {
            f"{i}{k}": v for i, m in enumerate(members) for k, v in _plain(m).items()
        }
    return piece.state() if hasattr(piece, "state") else {k: v for k, v in vars(piece).items() if k != "family"}


def _bytes(value):
    if not isinstance(value, np.ndarray):
        return value
    value = np.trim_zeros(value, "b") if value.ndim == 1 else value  # room for more covariates is no difference
    return value.shape, value.tobytes()


class Injected:
    """Raises KeyboardInterrupt at the given numbers of executed lines (or instructions) of the library."""

    def __init__(self, at, instructions=False):
        self.at, self.count, self.instructions = set(at), 0, instructions

    def __call__(self, frame, event, argument):
        if "/likeset/" not in frame.f_code.co_filename or "<" in frame.f_code.co_filename:
            return None
        frame.f_trace = self.step  # Python 3.13 heeds the next line only where there is a tracer already
        frame.f_trace_opcodes = self.instructions
        return self.step

    def step(self, frame, event, argument):
        if event == ("opcode" if self.instructions else "line"):
            self.count += 1
            if self.count in self.at:
                raise KeyboardInterrupt
        return self.step


def interrupted(sequence, batch, at, instructions=False):
    """Update under injection; how many steps were counted, and whether the interrupt came through."""
    tracer, before = Injected(at, instructions), sys.gettrace()
    sys._getframe().f_trace_opcodes = instructions  # Python 3.12 wants to know before tracing begins
    sys.settrace(tracer)
    try:
        sequence.update(*batch)
    except KeyboardInterrupt:
        return tracer.count, True
    finally:
        sys.settrace(before)
    return tracer.count, False


def check_interrupts(case, n, share, seed, twice=False, instructions=False):
    """Interrupt an update of n rows at a random share of its steps; each time, all or nothing, bit for bit."""
    kind, rng = CASES[case][1], np.random.default_rng(seed)
    batch, following = rows(kind, n, seed=2), rows(kind, 2, seed=3)
    start = begun(case)
    before, done = copy.deepcopy(start), copy.deepcopy(start)
    total, _ = interrupted(done, batch, at=(), instructions=instructions)
    old, new = fingerprint(before), fingerprint(done)
    assert old != new and total > 50
    ends = {}
    for sequence, name in [(before, old), (done, new)]:
        sequence.update(*following)
        ends[name] = fingerprint(sequence)
    outcomes = []
    for k in np.flatnonzero(rng.random(total) < share) + 1:
        sequence = copy.deepcopy(start)
        at = (int(k), int(k + rng.integers(1, 40))) if twice else (int(k),)
        _, stopped = interrupted(sequence, batch, at, instructions)
        found = fingerprint(sequence)
        assert stopped and found in (old, new), f"interrupt {at} of {total}: a torn state"
        outcomes.append(found == old)
        sequence.update(*following)
        assert fingerprint(sequence) == ends[found], f"interrupt {at} of {total}: it goes on differently"
    return outcomes


@pytest.mark.parametrize("case", CASES)
def test_an_interrupt_leaves_the_old_state_or_the_new_one(case):
    share = 0.02 if case == "own family" else 0.08  # a slow one
    outcomes = check_interrupts(case, 1, share, seed=0) + check_interrupts(case, 2, 0.5 * share, seed=1)
    assert any(outcomes)


@pytest.mark.parametrize("case", CASES)
def test_an_interrupt_of_the_roll_back_is_made_good_by_the_next_call(case):
    assert any(check_interrupts(case, 2, 0.01 if case == "own family" else 0.04, seed=2, twice=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_interrupts_everywhere(case):
    """Thousands: every line, a share of all instructions, and a second interrupt during the roll-back."""
    check_interrupts(case, 1, 1.0, seed=0)
    check_interrupts(case, 3, 0.3, seed=0, twice=True)
    check_interrupts(case, 2, 0.1, seed=0, instructions=True)
    check_interrupts(case, 2, 0.1, seed=1, instructions=True, twice=True)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_real_interrupts_of_a_running_stream():
    """Signals at random times into single updates: the record is always that of the updates that happened."""
    rng = np.random.default_rng(0)
    sequence, twin = linear(ls.Poisson()), linear(ls.Poisson())
    X, Y = rows("count", 300, seed=4)
    handler, hits = signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    try:
        for k, (x, y) in enumerate(zip(X, Y, strict=True)):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 5e-4)))
                sequence.update(x, y)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:  # and not the SystemError that numba makes of it
                hits += 1
            assert sequence.n_observations in (k, k + 1)
            if sequence.n_observations == k:
                sequence.update(x, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    for x, y in zip(X, Y, strict=True):
        twin.update(x, y)
    assert hits > 10
    assert fingerprint(sequence) == fingerprint(twin)


def test_an_interrupt_while_windows_are_chosen():
    def fresh():
        return ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(3, 3.0))

    done = fresh()
    done.expect(arms())
    assert done.windows is not None
    k, stopped = 0, True
    while stopped:
        sequence, k = fresh(), k + 1
        tracer = Injected({k})
        sys.settrace(tracer)
        try:
            sequence.expect(arms())
            stopped = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert (sequence.windows is None) == (sequence._running.membership is None)
    assert k > 20


def test_a_sequence_cannot_be_asked_in_the_middle_of_its_own_update():
    class Curious(Average):
        question = staticmethod(lambda: None)

        def observe(self, phi, y):
            self.question()
            super().observe(phi, y)

    for question in (
        lambda sequence: sequence.update([1.0, 0.0, 0.0], 0.0),
        lambda sequence: sequence.save("nowhere"),
        lambda sequence: sequence.set,
        copy.deepcopy,
    ):
        Curious.question = staticmethod(lambda: None)
        sequence = linear(ls.Gaussian(0.5), predictor=Curious(ls.Gaussian(0.5)))
        sequence.update([1.0, 0.0, 0.0], 0.3)
        Curious.question = staticmethod(partial(question, sequence))
        with pytest.raises(ls.LikesetError, match="middle of its own update"):
            sequence.update([1.0, 0.0, 0.0], 0.3)
        Curious.question = staticmethod(lambda: None)
        assert sequence.n_observations == sequence.forecaster.count == 1


# -- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["poisson", "gaussian, windows", "own forecaster"])
def test_threads_may_share_a_sequence(case):
    """Eight writers and two readers: nothing acknowledged is lost, and the evidence is that of the recorded order."""
    make, kind = CASES[case]
    sequence, each = make(), 500 if case == "poisson" else 60
    sequence.update(*rows(kind, 1, seed=0))
    errors, stop = [], threading.Event()
    switch = sys.getswitchinterval()

    def write(seed):
        try:
            for x, y in zip(*rows(kind, each, seed), strict=True):
                sequence.update(x, y)
        except BaseException as error:
            errors.append(error)

    def read():
        asked = GRID if kind == "function" else arms()
        try:
            while not stop.is_set():
                snapshot = sequence.set
                if not snapshot.is_empty:  # rows are no draws from the model, and the alarm may say so
                    assert np.isfinite(snapshot.upper(asked)).all()
                assert snapshot.n_observations <= sequence.n_observations
                time.sleep(1e-3)
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(8)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in writers + readers:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert not errors
    assert sequence.n_observations == 8 * each + 1
    replayed, ledger = make(), sequence.ledger
    for x, y in zip(ledger.x.rows, ledger.y.rows, strict=True):
        replayed.update(x, y)
    assert fingerprint(replayed) == fingerprint(sequence)


@pytest.mark.parametrize(
    "case", ["poisson", "gaussian", "gaussian, windows", "laplace", "laplace, windows", "own family"]
)
def test_threads_may_ask_one_snapshot(case):
    sequence, asked = begun(case), GRID if CASES[case][1] == "function" else arms()
    expected = copy.deepcopy(sequence).set
    answers = [expected.upper(asked), expected.lower(asked), expected.centre, expected.is_empty]
    for _ in range(5):
        snapshot, found, gate = copy.deepcopy(sequence), [], threading.Barrier(4)
        snapshot._set = None
        snapshot = snapshot.set

        def ask(snapshot=snapshot, found=found, gate=gate):
            gate.wait()
            found.append([snapshot.upper(asked), snapshot.lower(asked), snapshot.centre, snapshot.is_empty])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        for answer in found:
            assert all(np.array_equal(a, b) for a, b in zip(answer, answers, strict=True))


def test_a_sequence_can_be_pickled_and_copied():
    for case in ("poisson", "gaussian, windows", "own forecaster"):
        sequence, more = begun(case), rows(CASES[case][1], 3, seed=5)
        for other in (pickle.loads(pickle.dumps(sequence)), copy.deepcopy(sequence), copy.copy(sequence)):
            assert fingerprint(other) == fingerprint(sequence)
            other.update(*more)
            assert other.n_observations == sequence.n_observations + 3


# -- cost -----------------------------------------------------------------------------------------------------------


class Counted(Average):
    """A forecaster of the user's own that counts its copies."""

    copies = 0

    def __deepcopy__(self, memo):
        Counted.copies += 1
        twin = Counted(self.family)
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin


@pytest.mark.parametrize("predictor", [ls.Fixed([0.1, 0.2, 0.3]), None, ls.FTRL(), Counted(ls.Poisson())])
def test_a_batch_copies_nothing_that_was_there(predictor):
    """Rows are appended where they are: `python -m benchmarks --only updates` has the times."""
    sequence = linear(ls.Poisson(), predictor=predictor)
    sequence.update(arms(20), np.zeros(20))
    copies, ledger, forecaster = Counted.copies, sequence.ledger, sequence.forecaster
    buffers = {name: getattr(ledger, name)._buffer for name in ("x", "y", "weights", "log_q", "covariate", "distinct")}
    sequence.update(arms(20)[:3], [0, 1, 2])
    assert sequence.ledger is ledger and sequence.forecaster is forecaster
    for name, buffer in buffers.items():
        assert getattr(ledger, name)._buffer is buffer
    assert Counted.copies == copies


def test_new_covariates_do_not_copy_the_windows():
    """A thousand new covariates into windows over 50,000: no copy of a table of 13 million entries each time."""
    space = ls.Linear(3, 3.0)
    windows = ls.Windows(arms(256), correlation=0.5)
    membership = windows.start(space).restored({"masks": np.zeros((257, 50_000))})
    grown = membership
    for x in arms(1000, seed=1):
        grown = grown.including(x)
    assert grown.masks.shape == (257, 51_000) and membership.masks.shape == (257, 50_000)
    assert np.array_equal(grown.masks[:, -1], windows.of(space, arms(1000, seed=1)[-1]))
    branch = membership.including(arms(1)[0])  # another continuation leaves the first as it was
    assert np.array_equal(branch.masks[:, -1], windows.of(space, arms(1)[0]))
    assert np.array_equal(grown.masks[:, 50_000], windows.of(space, arms(1000, seed=1)[0]))
