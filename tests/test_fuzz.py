"""Whatever is passed to whatever is public: an answer or a typed error, in time, without a warning, and nothing half done.

Public names are discovered, not listed: the names of ``likeset`` and of the modules it shows, constructors, and the methods and
properties of live objects. Each case depends on (seed, number) alone; ``run_case(seed, number)`` repeats one.
"""

import collections
import inspect
import io
import os
import resource
import signal
import types
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import comparison, predictors
from tests import hostile

SECONDS = 5.0
MEMORY = 3 * 2**30  # address space beyond what is in use
SEED = 20240711

# What the engine calls on its pieces, with arguments of its own making: the protocols of pieces, and the way they are saved.
PLUMBING = {
    "start",
    "restore",
    "state",
    "forecast",
    "observe",
    "weight",
    "including",
    "of",
    "from_settings",
    "statistics",
}
PLUMBING |= {"gram", "diagonal", "places", "norms", "correlation"}
# Snapshots and forecasts are made by the engine from its own objects; what they answer is tested, not how they are made.
MADE_BY_THE_ENGINE = {ls.LikelihoodSet, comparison.Ellipsoid, predictors.MixtureForecast, predictors.Blend}
# Checks, pictures and studies: valid calls take a second or more, so they are drawn less often, and never with default sizes.
SELDOM = {"checks", "plots", "theory.study", "comparison.compare"}
SIZES = {"rounds", "repeats", "samples", "starts", "steps", "n_points", "points", "horizon"}


class TookTooLong(BaseException):
    pass


def public_names():
    """(label, object) of everything callable that ``likeset`` and the modules it shows offer."""
    found = {}
    for name in dir(ls):
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


# -- arguments --------------------------------------------------------------------------------------------------------------


class Arguments:
    """Good values by the name of a parameter, and hostile ones."""

    def __init__(self, live):
        self.live = live
        self.hostile = hostile.hostile_values()

    def one_of(self, rng, things):
        return self.live.handed_out(things[int(rng.integers(len(things)))])

    def good(self, name, owner, rng):
        live = self.live
        space = getattr(owner, "space", getattr(getattr(owner, "seq", None), "space", None))
        space = owner if isinstance(owner, (ls.Linear, ls.RKHS)) else space or live.plane
        family = getattr(owner, "family", owner if hasattr(owner, "log_density") else ls.Gaussian(0.3))
        family = getattr(getattr(owner, "seq", None), "family", family)
        x = live.rows(space)
        if hasattr(owner, "ask") and name in ("x", "arm"):
            return 0 if getattr(owner, "box", None) is None else [0.5]
        domain = getattr(space, "domain", None)
        theta = np.full(len(x[0]) if domain is None else len(domain), 0.1)
        makers = {
            "x": lambda: x[:1], "X": lambda: x, "Y": lambda: x, "arms": lambda: x[:2], "queries": lambda: x[:1], "x_past": lambda: x,
            "covariates": lambda: x[:2], "centres": lambda: x[:2], "points": lambda: 5, "thetas": lambda: [theta],
            "y": lambda: live.outcome(family, 1), "theta": lambda: theta, "truth": lambda: theta, "values": lambda: theta, "near": lambda: x,
            "arm": lambda: 0, "index": lambda: 0, "z": lambda: np.array([0.1]), "z_values": lambda: [0.2], "rng": lambda: np.random.default_rng(1),
            "seed": lambda: 3, "path": lambda: str(live.folder / "written"), "family": lambda: self.one_of(rng, live.families),
            "space": lambda: self.one_of(rng, live.spaces), "predictor": lambda: self.one_of(rng, live.predictors),
            "weighting": lambda: self.one_of(rng, live.weightings), "windows": lambda: self.one_of(rng, [None, "auto", *live.windows[:2]]),
            "seq": lambda: self.one_of(rng, live.sequences), "sequence": lambda: self.one_of(rng, live.sequences[:4]),
            "policy": lambda: self.one_of(rng, live.policies), "environment": lambda: self.one_of(rng, live.environments),
            "reward": lambda: self.one_of(rng, ["increasing", "decreasing", "mean", np.exp]), "bounds": lambda: [[0.0, 1.0]] * len(x[0]),
            "bound": lambda: 1.5, "alpha": lambda: 0.1, "delta": lambda: 0.1, "share": lambda: 0.5, "weights": lambda: None, "ledger": lambda: live.sequences[0].ledger,
            "kernel": lambda: RBF(0.4), "domain": lambda: np.linspace(0.0, 1.0, 5), "dim": lambda: 2, "n_arms": lambda: 3, "rounds": lambda: 2,
            "repeats": lambda: 1, "samples": lambda: 16, "n_points": lambda: 8, "starts": lambda: 1, "steps": lambda: 2, "trials": lambda: 3,
            "horizon": lambda: 5, "dimension": lambda: 2, "degrees": lambda: 1, "count": lambda: 3, "max_windows": lambda: 4, "name": lambda: "x",
            "noise": lambda: "gaussian", "design": lambda: "random", "support": lambda: "real", "negative_log_density": lambda: hostile.logistic_noise,
            "f": lambda: np.sin, "function": lambda: np.exp, "sets": lambda: self.one_of(rng, [None, [self.one_of(rng, live.sets)]]), "s": lambda: self.one_of(rng, live.sets),
            "Z": lambda: live.results[5], "curvature": lambda: live.results[6], "other": lambda: self.one_of(rng, live.weightings), "gain": lambda: 1.0, "regret": lambda: 2.0,
            "radius": lambda: 1.0, "t": lambda: [1.0, 2.0], "masks": lambda: [[True, False]], "coverage": lambda: True, "target": lambda: [0.1, 0.2],
            "base": lambda: theta, "piece": lambda: live.families[0], "components": lambda: [ls.PlugIn(ls.Poisson(), 0.1)], "log_shares": lambda: np.zeros(1),
            "coordinates": lambda: x[0], "lower": lambda: np.zeros(2), "upper": lambda: np.ones(2), "scores": lambda: np.ones(2), "axes": lambda: _axes(),
            "options": lambda: {}, "predictors": lambda: [], "on_empty": lambda: "explore",
        }  # fmt: skip
        return makers[name]() if name in makers else self.one_of(rng, [0.5, 1.0, 2, None])

    def draw(self, signature, owner, rng):
        """Arguments for a call: each one good, hostile or, if it has a default, left out."""
        wanted = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        attacked = rng.random() < 0.93
        target = int(rng.integers(len(wanted))) if wanted else 0
        args, kwargs = [], {}
        for i, parameter in enumerate(wanted):
            bad = attacked and (i == target or rng.random() < 0.15)
            choice = rng.random()
            if parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= {"predictor": self.value("predictor", owner, rng, bad)} if choice < 0.5 else {}
            elif parameter.kind is parameter.VAR_POSITIONAL:
                args += [self.value("predictor", owner, rng, bad and k == 0) for k in range(int(rng.integers(3)))]
            elif not bad and parameter.default is not parameter.empty and choice < 0.7 and parameter.name not in SIZES:
                continue
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                args.append(self.value(parameter.name, owner, rng, bad))
            else:
                kwargs[parameter.name] = self.value(parameter.name, owner, rng, bad)
        return args, kwargs

    def value(self, name, owner, rng, bad):
        if bad:
            return self.hostile[int(rng.integers(len(self.hostile)))]()
        return self.good(name, owner, rng)


def _axes():
    import matplotlib.pyplot as plt

    plt.close("all")
    return plt.gca()


# -- calls ------------------------------------------------------------------------------------------------------------------


class Fuzzer:
    """Draws a call, makes it, and says what went wrong."""

    def __init__(self, folder):
        import matplotlib

        matplotlib.use("agg")
        self.live = hostile.LiveObjects(folder)
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
        if label in SELDOM or label.split(".")[0] in SELDOM:
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
        args, kwargs = self.arguments.draw(signature, owner, rng)
        return label, owner, function, args, kwargs

    def run(self, seed, number):
        """None, or (label, what went wrong, arguments)."""
        label, owner, function, args, kwargs = self.case(seed, number)
        changing = [v for v in (owner, *args, *kwargs.values()) if hostile.can_change(v)]
        before = [hostile.fingerprint(v) for v in changing]
        problem = None
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            answer = function(*args, **kwargs)
            if label.endswith(("interval", "intervals", "bounding_box")) and (answer[0] > answer[1]).any():
                problem = "crossed ends"
        except ls.LikesetError as error:
            problem = _fault_of_message(error)
            if [hostile.fingerprint(v) for v in changing] != before:
                problem = f"changed state, then {type(error).__name__}"
        except TookTooLong:
            problem = f"took longer than {SECONDS:g} s"
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:150]}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None if problem is None else (label, problem, _shown(args, kwargs))


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
    old = signal.signal(signal.SIGALRM, _expired)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.signal(signal.SIGALRM, old)


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


@pytest.mark.slow
def test_only_typed_errors_at_length(fuzzer, guarded):
    found = failures(fuzzer, SEED + 1, 100_000)
    assert not found, report(found, 100_000)


def test_every_public_class_has_a_live_object(fuzzer):
    alive = {type(thing) for thing in fuzzer.live.all()}
    missing = [label for label, thing in public_names() if isinstance(thing, type) and thing not in alive]
    assert not missing
