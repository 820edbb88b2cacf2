"""Whatever is passed to whatever is public: an answer or a typed error, in time, without a warning, nothing half done.

Public names are discovered, not listed: the names of ``likeset`` and of the modules it shows, constructors, and the
methods and properties of live objects. Each case depends on (seed, number) alone; ``Fuzzer.run(seed, number)`` repeats
one.
"""

import collections
import decimal
import fractions
import inspect
import io
import os
import signal
import sys
import time
import types
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import hostile
import likeset as ls
import live
from likeset import comparison, predictors

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits time and memory as Linux does")

SECONDS = 5.0  # of processor time, so that a call is measured and not what else the machine is doing
MEMORY = 3 * 2**30  # address space beyond what is in use
SEED = 20240711

# What the engine calls on its pieces, with arguments of its own making: protocols of pieces, and how they are saved.
PLUMBING = {
    "start",
    "restore",
    "state",
    "forecast",
    "observe",
    "weight",
    "including",
    "of",
    "whole",
    "from_settings",
    "statistics",
}
PLUMBING |= {"gram", "diagonal", "places", "norms", "correlation", "values_at"}
PLUMBING |= {"reference", "statistics_from", "check_outcome", "check_reach", "breakpoints"}
PLUMBING |= {"constant"}
PLUMBING |= {"with_entry", "entry_power", "time_after", "absorbed", "with_trials", "directions"}
# Snapshots and forecasts are made by the engine from its own objects; what they answer is tested, not their making.
MADE_BY_THE_ENGINE = {
    ls.LikelihoodSet,
    ls.AnyOfSet,
    ls.Belief,
    comparison.Ellipsoid,
    predictors.MixtureForecast,
    predictors.Blend,
}
# Checks, pictures and studies: valid calls take a second or more, so they are drawn less often, never in default sizes.
SELDOM = {"checks", "plots", "Looseness", "theory.study", "comparison.compare"}
# What a callback raises is the caller's to see; the ``name`` of methods is what their errors call an argument.
CALLBACKS = {"on_run", "on_round"}
SIZES = {"rounds", "repeats", "samples", "starts", "steps", "n_points", "points", "horizon"}


class TookTooLong(BaseException):
    pass


def public_names():
    """(label, object) of everything callable that ``likeset`` and the modules it shows offer."""
    found = {}
    for name in dir(ls):
        if name == "sklearn":
            continue  # estimators raise what scikit-learn's own checks ask for: tests/test_sklearn.py
        thing = getattr(ls, name)
        if isinstance(thing, types.ModuleType):
            names = getattr(thing, "__all__", None) or [n for n in dir(thing) if not n.startswith("_")]
            inner = {n: getattr(thing, n) for n in names}
            found |= {f"{name}.{n}": o for n, o in inner.items() if _belongs(o, thing)}
        elif not name.startswith("_"):
            found[name] = thing
    unique = {id(o): (label, o) for label, o in sorted(found.items(), key=lambda item: -len(item[0]))}
    return [(label, o) for label, o in unique.values() if callable(o) and not _is_passive(o)]


def _belongs(thing, module):
    home = getattr(thing, "__module__", None) or ""
    return home == module.__name__ or (hasattr(module, "__path__") and home.startswith(module.__name__))


def _is_passive(thing):
    """Errors, protocols and abstract classes are not called."""
    if not isinstance(thing, type):
        return False
    return (
        thing in MADE_BY_THE_ENGINE
        or issubclass(thing, BaseException)
        or getattr(thing, "_is_protocol", False)
        or inspect.isabstract(thing)
    )


def public_members(cls):
    return [
        name
        for name in dir(cls)
        if (not name.startswith("_") or name == "__call__") and name not in PLUMBING and "likeset" in cls.__module__
    ]


# -- arguments ---------------------------------------------------------------------------------------------------------


class Arguments:
    """Good values by the name of a parameter, and hostile ones."""

    def __init__(self, objects):
        self.live = objects
        self.hostile = hostile.hostile_values()

    def draw(self, signature, owner, label, rng):
        """Arguments for a call: each one good, hostile or, if it has a default, left out."""
        wanted = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        attacked = rng.random() < 0.93
        target = int(rng.integers(len(wanted))) if wanted else 0
        args, kwargs = [], {}
        for i, parameter in enumerate(wanted):
            bad = attacked and (i == target or rng.random() < 0.15)
            bad = bad and parameter.name not in CALLBACKS and not (parameter.name == "name" and owner is not None)
            choice = rng.random()
            if parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= {"predictor": self.value("predictor", owner, label, rng, bad)} if choice < 0.5 else {}
            elif parameter.kind is parameter.VAR_POSITIONAL:
                args += [
                    self.value("predictor", owner, label, rng, bad and k == 0) for k in range(int(rng.integers(3)))
                ]
            elif not bad and parameter.default is not parameter.empty and choice < 0.7 and parameter.name not in SIZES:
                continue
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                args.append(self.value(parameter.name, owner, label, rng, bad))
            else:
                kwargs[parameter.name] = self.value(parameter.name, owner, label, rng, bad)
        return args, kwargs

    def value(self, name, owner, label, rng, bad):
        if bad:
            return self.hostile[int(rng.integers(len(self.hostile)))]()
        return live.good_value(
            self.live, name, owner, label, lambda things: self.live.handed_out(things[int(rng.integers(len(things)))])
        )


# -- calls -------------------------------------------------------------------------------------------------------------


class Fuzzer:
    """Draws a call, makes it, and says what went wrong."""

    def __init__(self, folder):
        import matplotlib

        matplotlib.use("agg")
        self.live = live.LiveObjects(folder)
        self.arguments = Arguments(self.live)
        self.targets = []
        for label, thing in public_names():
            self.targets.append((label, None, thing))
        kinds = collections.defaultdict(list)
        for thing in self.live.all():
            kinds[type(thing)].append(thing)
        for cls, things in kinds.items():
            self.targets += [(f"{cls.__name__}.{name}", things, name) for name in public_members(cls)]
        share = np.array([self._share(*target) for target in self.targets])
        self.shares = share / share.sum()

    @staticmethod
    def _share(label, things, what):
        """How often a target is drawn: properties, which take no arguments, and slow studies less often."""
        if _is_slow(label):
            return 0.05
        return 1.0 if things is None or callable(getattr(type(things[0]), what, None)) else 0.1

    def case(self, seed, number):
        """(label, owner, function, args, kwargs) of one case; a property is a function of nothing."""
        rng = np.random.default_rng([seed, number])
        label, things, what = self.targets[int(rng.choice(len(self.targets), p=self.shares))]
        if things is None:
            owner, function = None, what
        else:
            owner = self.live.handed_out(things[int(rng.integers(len(things)))])
            is_plain = not callable(getattr(type(owner), what, None)) or isinstance(
                getattr(type(owner), what), property
            )
            if is_plain:
                return label, owner, lambda: getattr(owner, what), [], {}
            function = getattr(owner, what)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return label, owner, lambda: None, [], {}
        args, kwargs = self.arguments.draw(signature, owner, label, rng)
        return label, owner, function, args, kwargs

    def run(self, seed, number):
        """None, or (label, what went wrong, arguments). A slow call gets a second chance: kernels are compiled once."""
        label, problem, arguments, seconds = self._attempt(seed, number)
        if seconds > SECONDS and not _is_slow(label):
            label, problem, arguments, seconds = self._attempt(seed, number)
            problem = f"took {seconds:.1f} s, twice more than {SECONDS:g}" if seconds > SECONDS else problem
        if problem is None:
            return None
        return label, problem, arguments

    def _attempt(self, seed, number):
        label, owner, function, args, kwargs = self.case(seed, number)
        changing = [v for v in (owner, *args, *kwargs.values()) if live.can_change(v)]
        before = [live.fingerprint(v) for v in changing]
        problem, start = None, time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 12 * SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 120 * SECONDS)  # for what waits and does not work
        try:
            answer = function(*args, **kwargs)
            ends = label.endswith(("interval", "intervals", "bounding_box")) and not label.startswith("plots.")
            if ends and np.any(answer[0] > answer[1]):
                problem = "crossed ends"
        except ls.LikesetError as error:
            problem = _fault_of_message(error)
            if [live.fingerprint(v) for v in changing] != before:
                problem = f"changed state, then {type(error).__name__}"
        except TookTooLong:
            problem = "took too long"
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:150]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        return label, problem, _shown(args, kwargs), time.process_time() - start


def _is_slow(label):
    return label in SELDOM or label.split(".")[0] in SELDOM


def _fault_of_message(error):
    if len(str(error)) > 5000:
        return f"{type(error).__name__} with a message of {len(str(error))} characters"
    return None


def _shown(args, kwargs):
    from likeset.errors import _brief

    try:
        return ", ".join([*(map(_brief, args)), *(f"{k}={_brief(v)}" for k, v in kwargs.items())])
    except Exception as error:
        return f"arguments that cannot be shown ({type(error).__name__})"


def _expired(number, frame):
    raise TookTooLong


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    return Fuzzer(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def guarded(tmp_path, monkeypatch):
    """A time limit per call, a limit of memory, an empty folder to write in, and warnings as errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    old = [(number, signal.signal(number, _expired)) for number in (signal.SIGALRM, signal.SIGPROF)]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    # Tests that interrupt elsewhere in this process may have left NumPy's own silence behind.
    with warnings.catch_warnings(), np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
        warnings.simplefilter("error")
        # Journals that tests of kills in this process left open on purpose are collected at any time.
        warnings.filterwarnings("ignore", "unclosed database", ResourceWarning)
        yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    for number, handler in old:
        signal.signal(number, handler)


def failures(fuzzer, seed, count):
    found = collections.defaultdict(list)
    for number in range(count):
        fault = fuzzer.run(seed, number)
        if fault is not None:
            label, problem, arguments = fault
            found[label].append(f"case ({seed}, {number}): {label}({arguments}): {problem}")
    return found


def report(found, count):
    total = sum(map(len, found.values()))
    lines = [
        f"{len(cases):4d}  {label}\n      {cases[0]}"
        for label, cases in sorted(found.items(), key=lambda i: -len(i[1]))
    ]
    return f"{total} of {count} calls ended badly:\n" + "\n".join(lines)


def test_only_typed_errors(fuzzer, guarded):
    found = failures(fuzzer, SEED, 10_000)
    assert not found, report(found, 10_000)


def test_an_error_without_a_type_and_a_change_before_a_refusal_are_noticed(fuzzer, guarded, monkeypatch):
    """The judge itself: calls that end in another error, in a warning, or in a typed error after something changed."""
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(2, 1.5))

    def changes_then_refuses():
        sequence.update([1.0, 0.0], 0.1)
        raise ls.InvalidArgumentError("x", 1, "is refused", "pass another")

    bad = {"ValueError": lambda: [].index(0), "RuntimeWarning": lambda: np.float64(1.0) / np.float64(0.0)}
    for words, call in {**bad, "changed state": changes_then_refuses}.items():
        monkeypatch.setattr(fuzzer, "case", lambda seed, number, call=call: ("it", sequence, call, [], {}))
        label, problem, _ = fuzzer.run(0, 0)
        assert label == "it" and words in problem


@pytest.mark.slow
def test_only_typed_errors_at_length(fuzzer, guarded):
    found = failures(fuzzer, SEED + 1, 100_000)
    assert not found, report(found, 100_000)


def test_every_public_class_has_a_live_object(fuzzer):
    alive = {type(thing) for thing in fuzzer.live.all()}
    missing = [label for label, thing in public_names() if isinstance(thing, type) and thing not in alive]
    assert not missing


# -- causes, one by one ------------------------------------------------------------------------------------------------


SEQUENCE = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(2, 1.5))
SEQUENCE.update([[0.8, 0.1], [0.3, 0.9]], [0.2, 0.1])
ARMS = [[1.0, 0.0], [0.0, 1.0]]
CAUSES = {
    "integers of thousands of digits": lambda: ls.Gaussian(hostile.HUGE),
    "lists of such integers": lambda: SEQUENCE.update([hostile.HUGE, 1.0], 0.1),
    "a repr that raises": lambda: ls.Linear(hostile.Unprintable(), 1.0),
    "sign None": lambda: SEQUENCE.set.support(ARMS, sign=None),
    "sign NaN": lambda: SEQUENCE.set.support(ARMS, sign=float("nan")),
    "sign 0": lambda: SEQUENCE.set.support(ARMS, sign=0),
    "negative seeds": lambda: SEQUENCE.set.maximize_upper([[0.1, 1.0]] * 2, seed=-1),
    "ragged parameters": lambda: live_grid().contains([[1.0], [1.0, 2.0]]),
    "pairs nested beyond the dimensions of arrays": lambda: pairs().update([0.8, 0.1], nested(100)),
    "ragged arms": lambda: ls.UCB(SEQUENCE, ARMS).tell([1, [2, 3]], 0.1),
    "a million million points": lambda: SEQUENCE.set.boundary(10**12),
    "a million million trials": lambda: ls.Binomial(10**12),
    "a million million starts": lambda: SEQUENCE.set.maximize_upper([[0.1, 1.0]] * 2, starts=1e12),
    "densities of text": lambda: ls.Poisson().log_density("a", 0.1),
    "densities of impossible counts": lambda: ls.Binomial(3).log_density(-1.0, 0.1),
    "means of text": lambda: ls.Bernoulli().mean("a"),
    "samples without a generator": lambda: ls.Gaussian().sample([0.1], None),
    "samples of counts beyond all numbers": lambda: ls.Poisson().sample([1e3], np.random.default_rng(0)),
    "derivatives of objects": lambda: ls.Weibull().derivatives(object(), 0.1),
    "numbers for families": lambda: comparison.applicable(5, ls.Linear(2, 1.0), 0.1),
    "flags that are words": lambda: ls.UCB(SEQUENCE, ARMS, running_intersection="no"),
    "convex as a word": lambda: ls.CustomFamily(live.logistic_noise, support="real", convex="no"),
    "complex numbers": lambda: ls.Gaussian(np.complex128(1.0)),
    "complex numbers among objects": lambda: SEQUENCE.update(np.array([np.complex128(1), 2.0], dtype=object), 0.1),
    "file descriptors": lambda: trace().to_csv(3),
    "folders for pictures": lambda: ls.theory.study(2, 1).figure("."),
    "arrays of gigabytes": lambda: SEQUENCE.set.upper(np.broadcast_to(0.5, (10**9, 2))),
    "ranges of terabytes": lambda: SEQUENCE.set.contains(range(10**12)),
    "covariates whose square is zero": lambda: SEQUENCE.set.upper([[1e-320, 0.0]]),
    "digits in bytes": lambda: ls.Gaussian(memoryview(b"12345678")),
    "digits in bytes for constants": lambda: comparison.SubExponentialConstants(2, memoryview(b"1"), 0.5, 0.5),
    "covariates beside which the penalty is nothing": lambda: ls.theory.bias_bound(
        ls.Gaussian(0.3), [[1e99, 1e99]], [[0.8, 0.1]], penalty=1.0, bound=1.5
    ),
    "the same, where solving would give rubbish": lambda: ls.theory.bias_bound(
        ls.Gaussian(0.3), [[1e9, 2e9]], [[2.0, -1.0]], penalty=1.0, bound=1.5
    ),
    "the same in a stream": lambda: ls.theory.information_gain([[1e9, 2e9], [2.0, -1.0]], 1.0, 1.0),
    "the same in a log determinant": lambda: ls.theory.bregman_information_gain(ls.Gaussian(), [[1e9, 2e9]], nu=1.0),
    "a bad penalty where there is nothing to bound": lambda: ls.theory.bias_bound_as_printed(
        ls.Gaussian(0.3), ARMS, np.zeros((0, 2)), penalty=["a"], bound=1.5
    ),
    "callbacks that are none": lambda: ls.theory.study(2, 1, on_run=3),
    "ranges for predictors, which have a start": lambda: ls.ConfidenceSequence(
        ls.Gaussian(), ls.Linear(1, 1.0), predictor=range(3)
    ),
    "kernels that fail": lambda: ls.RKHS(hostile._raises, 1.0),
    "unequal numbers of rows": lambda: SEQUENCE.set.upper_difference(ARMS, [[0.1, 0.2]] * 3),
    "a space of functions without a bound": lambda: ls.RKHS(RBF(0.3), dim=2),
    "nothing where a menu has something": lambda: ls.RKHS(RBF(0.3), length_scales=None),
    "a penalty that is ragged": lambda: ls.VAW(penalty=[1, [2, 3]]),
    "names too long for a journal": lambda: ls.ConfidenceSequence.open("n" * 300, ls.Poisson(), ls.Linear(2, 1.0)),
    "names too long for a store": lambda: ls.Store("n" * 300),
    "a matrix for a norm": lambda: SEQUENCE.set.given(ARMS, at_most=0.5, norm=np.array([[0.1, 0.2]])),
    "no limits for a row": lambda: SEQUENCE.set.evidence([[0.8, 0.1]], equal=()),
    "a reward that turns beyond 8": lambda: ls.UCB(wide(), [[10.0, 0.0]], reward=turns_at_nine),
    "the same as a Reward": lambda: ls.UCB(wide(), [[10.0, 0.0]], reward=ls.Reward(turns_at_nine)),
}


def live_grid():
    return ls.ConfidenceSequence(ls.Gaussian(), ls.RKHS(RBF(0.3), 1.0, domain=[0.0, 0.5, 1.0])).set


def trace():
    environment = ls.environments.linear(dim=2, n_arms=3)
    return ls.simulate(ls.UCB(environment.sequence(), environment.arms), environment, 2, 0)


def pairs():
    return ls.ConfidenceSequence(ls.Weibull(), ls.Linear(2, 1.5))


def nested(depth):
    return [nested(depth - 1)] if depth else [1.0]


def wide():
    return ls.ConfidenceSequence(ls.Gaussian(5.0), ls.Linear(2, 2.0))


def turns_at_nine(z):
    return np.where(z < 9.0, z, 18.0 - z)


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_a_typed_error(cause, guarded):
    before = live.fingerprint(SEQUENCE)
    with pytest.raises(ls.LikesetError) as caught:
        CAUSES[cause]()
    assert live.fingerprint(SEQUENCE) == before
    assert len(str(caught.value)) < 500
    if isinstance(caught.value, ls.InvalidArgumentError):
        assert caught.value.argument and caught.value.remedy


def test_the_limit_of_a_count_is_named():
    with pytest.raises(ls.InvalidArgumentError, match=r"above 1,000,000: .*outcomes.*; pass at most 1000000"):
        ls.Binomial(10**12)


def test_messages_are_short_whatever_the_value():
    values = [make() for make in hostile.hostile_values()]
    for value in [*values, [values], {"a": values}, "a" * 10**7, [[[[[[[[1]]]]]]]], tuple(range(10**6))]:
        error = ls.InvalidArgumentError("x", value, "is hostile", "pass another one")
        limit = 300 if isinstance(value, str) else 140  # texts may be paths, whose end tells one from another
        assert len(str(error)) < limit, type(value)


class Drifting:
    """A sequence of sets whose bounds are rounded a little differently from round to round."""

    alpha, space = 0.1, ls.Linear(1, 5.0)

    def __init__(self):
        self.ends = [(1.0 + 1e-7, 2.0), (0.0, 1.0)]

    def update(self, x, y):
        self.ends.pop(0)

    @property
    def set(self):
        return self

    def interval(self, X):
        low, high = self.ends[0]
        return np.full(len(X), low), np.full(len(X), high)

    def upper(self, X):
        return self.interval(X)[1]

    def lower(self, X):
        return self.interval(X)[0]

    def contains(self, theta):
        return True


def test_the_ends_of_a_band_do_not_cross():
    """Floors and ceilings of different rounds may cross by rounding: both belong to the band then."""
    policy = ls.UCB(Drifting(), [[1.0]])
    policy.intervals()
    policy.tell(0, 0.0)
    low, high = policy.intervals()
    assert low[0] <= 1.0 < 1.0 + 1e-7 <= high[0]


def test_a_reward_that_turns_where_nobody_looked_does_not_cross():
    """Without a bound on theta nothing tells how far to look; crossed ends are refused when they occur."""
    sequence = ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(1, np.inf), alarm=False)  # outcomes without noise
    policy = ls.UCB(sequence, [[1.0]], reward=turns_at_nine)
    policy.seq.update([[1.0]] * 30, [40.0] * 30)
    with pytest.raises(ls.PieceError, match="not increasing between"):
        policy.intervals()


def test_helpers_of_families_answer_as_before():
    """Values for good input, by formula: what is checked on the way in must not change what comes out."""
    y, z = np.array([0.0, 1.0, 3.0]), np.array([-0.5, 0.0, 1.25])
    np.testing.assert_array_equal(ls.Poisson().mean(z), np.exp(z))
    np.testing.assert_array_equal(ls.Gaussian(0.5).derivatives(y, z)[0], y * 4.0 - 4.0 * z)
    np.testing.assert_array_equal(ls.Laplace(2.0).log_density(y, z), -np.abs(y - z) / 2.0 - np.log(4.0))
    assert ls.Bernoulli().log_density([1, 0], 0.0).tolist() == [-np.log(2.0)] * 2


NUMBERS = {"int": 2, "a wide int": 2**64, "Decimal": decimal.Decimal(2), "Fraction": fractions.Fraction(2)}
BOUNDS = {
    "linear_bandit_regret_bound": lambda n: ls.theory.linear_bandit_regret_bound(
        ARMS, sigma=n, penalty=n, bound=n, delta=0.1
    ),
    "linear_bandit_regret_bound_as_printed": lambda n: ls.theory.linear_bandit_regret_bound_as_printed(
        ARMS, sigma=n, penalty=n, bound=n, delta=0.1
    ),
    "noise_bound": lambda n: ls.theory.noise_bound(ls.Poisson(), ARMS, penalty=n, bound=1, delta=1 / n),
    "bregman_information_gain": lambda n: ls.theory.bregman_information_gain(ls.Gaussian(), ARMS, nu=n).value,
    "SubExponentialConstants": lambda n: comparison.SubExponentialConstants(n, 1 / n, n, n).radius(1.0, 2, 1.0, 0.1),
}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_every_type_are_computed_with_as_floats(bound, number):
    """What counts as a number when it is checked must not be a stranger when it is used."""
    n = NUMBERS[number]
    np.testing.assert_array_equal(BOUNDS[bound](n), BOUNDS[bound](float(n)))


def test_no_rows_have_no_bounds():
    none = np.zeros((0, 2))
    for bound in (ls.theory.bias_bound, ls.theory.sharper_bias_bound, ls.theory.bias_bound_as_printed):
        assert bound(ls.Gaussian(0.3), ARMS, none, penalty=1.0, bound=1.5).shape == (0,)


def test_a_parameter_may_be_a_row():
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.5))
    sequence.update(ARMS, [1, 2])
    as_row, as_vector = (ls.checks.one_step_growth(sequence, ARMS[0], theta) for theta in ([[0.1, 0.2]], [0.1, 0.2]))
    assert as_row == as_vector <= 1.0 + ls.checks.TOLERANCE


def test_coverage_that_cannot_be_measured_is_refused_before_the_first_round():
    environment = ls.environments.from_function(np.sin, np.linspace(0.0, 1.0, 7), RBF(0.5))
    policy = ls.UCB(ls.ConfidenceSequence(ls.Gaussian(), ls.RKHS(RBF(0.5), 2.0)), bounds=[0.0, 1.0])
    with pytest.raises(ls.InvalidArgumentError, match="coverage=False"):
        ls.simulate(policy, environment, 2, 0)
    assert policy.seq.n_observations == 0
