"""Small live objects of every public kind, and good values by the name of a parameter, for test_fuzz.py."""

import copy

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks, comparison, environments, theory


def logistic_noise(y, z):
    u = np.abs(y - z)
    return u + 2 * np.log1p(np.exp(-u))


class LiveObjects:
    """A few small objects of every public kind; sequences and policies are handed out as copies."""

    def __init__(self, folder):
        self.folder = folder
        self.rng = np.random.default_rng(5)
        self.own = ls.CustomFamily(logistic_noise, support="real", convex=True, name="Logistic")
        self.families = [*checks.built_in_families(), ls.Weibull(2.0), ls.LogWeibull(0.7), self.own]
        self.plane = ls.Linear(dim=2, bound=1.5)
        self.grid = ls.RKHS(RBF(0.3), bound=2.0, domain=np.linspace(0.0, 1.0, 7))
        self.line = ls.RKHS(RBF(0.3), bound=2.0)
        self.spaces = [
            self.plane,
            ls.Linear(1, 2.0),
            ls.Linear(2, np.inf),
            ls.Linear(3, 1.0),
            self.grid,
            self.line,
            ls.LinearEllipsoid([[1.0, 0.2], [0.2, 0.5]], 1.5),
        ]
        self.predictors = checks.built_in_predictors()
        self.weightings = checks.built_in_weightings()
        around = ls.Windows([[1.0, 0.0], [0.0, 1.0]], joint_share=0.3)
        listed = ls.Windows.from_masks([[0.8, 0.1], [0.3, 0.9]], [[True, False]])
        patience = ls.Patience(3)
        self.windows = [around, listed, ls.Windows.covering(self.grid), patience, patience.beside(around)]
        self.windows += [patience.within(around), ls.OpeningWindows(), patience.beside(ls.OpeningWindows())]
        contrasts = [ls.Contrasts(np.eye(2), simultaneous, others=patience) for simultaneous in (True, False)]
        self.windows += [*contrasts, ls.Duels(np.eye(2))]
        self.sequences = [self._fed(f, self.plane) for f in self.families]
        self.sequences += [self._fed(ls.Gaussian(0.3), s) for s in self.spaces[1:]]
        self.sequences += [self._fed(ls.Poisson(), self.plane, predictor=p) for p in self.predictors]
        self.sequences += [self._fed(ls.Bernoulli(), self.plane, weighting=w) for w in self.weightings]
        self.sequences += [self._fed(f, self.plane, windows=w) for f in self.families[:4] for w in (around, None)]
        self.sequences.append(self._fed(ls.Poisson(), self.plane, windows=listed))
        self.sequences += [self._fed(ls.Gaussian(0.3), self.plane, windows=c) for c in contrasts]
        self.sequences += [self._fed(ls.Poisson(), self.plane, windows=c) for c in contrasts]
        self.sequences += [
            ls.ConfidenceSequence(ls.Poisson(), self.grid),
            ls.ConfidenceSequence(ls.Gaussian(), self.plane),
        ]
        self.unknown = [ls.Unknown(), ls.Unknown(0.1, 3.0)]
        self.sequences += [self._fed(ls.Gaussian(sigma=u), self.plane) for u in self.unknown]
        self.sequences += [self._fed(f(ls.Unknown(0.5, 4.0)), self.plane) for f in (ls.Laplace, ls.Weibull)]
        self.refuted = ls.ConfidenceSequence(ls.Gaussian(0.1), self.plane)
        self.refuted.update([[1.0, 0.0]] * 3, [50.0] * 3)
        self.sequences.append(self.refuted)
        rivals = [*comparison.applicable(ls.Gaussian(0.5), self.plane, 0.1).values()]
        rivals += comparison.applicable(ls.Poisson(), self.plane, 0.1).values()
        rivals += comparison.applicable(ls.Laplace(0.5), self.grid, 0.1).values()
        rivals += comparison.applicable(ls.Gaussian(ls.Unknown()), self.plane, 0.1).values()
        self.comparisons = [self._feed(c) for c in rivals]
        self.several = self._feed(ls.AnyOf((ls.Gaussian(0.3), self.plane), (ls.Laplace(0.3), self.plane), alpha=0.1))
        self.sets = [s.set for s in (*self.sequences, *self.comparisons)]
        self.environments = [
            environments.linear(dim=2, n_arms=4), environments.contexts(dim=2, n_arms=3),
            environments.from_function(np.sin, np.linspace(0.0, 1.0, 7), RBF(0.5)),
        ]  # fmt: skip
        self.policies = self._make_policies()
        policy = ls.UCB(self.environments[0].sequence(), self.environments[0].arms)
        self.traces = [ls.simulate(policy, self.environments[0], 3, 0, width_every=2)]
        x = self.rows(self.plane)
        self.small = comparison.compare(ls.Gaussian(0.5), self.plane, [0.4, -0.3], np.eye(2), rounds=3, repeats=1)
        self.log_partition = theory.LogPartition(ls.Poisson(), x, nu=1.0)
        self.curvature = theory.Curvature.of(ls.Poisson(), 1.5, x)
        self.results = [
            *self.traces, self.small, self.sequences[0].set.support([[1.0, 0.0]]),
            self.sequences[0].set.evidence([[1.0, 0.0]], below=0.1),
            self.sequences[0].set.contrast([[1.0, 0.0]], [[0.0, 1.0]]), self.several,
            self.several.set, self.policies[2].certificate,
            self.policies[0].recommend(),
            ls.Reward(np.exp), self.log_partition, self.curvature,
            theory.bregman_information_gain(ls.Gaussian(), x, nu=1.0),
            theory.vaw_regret_bound(ls.Gaussian(), x, np.ones(len(x)), [0.1, 0.2], penalty=1.0, bound=1.5, delta=0.1),
            self.grid.norm(np.ones(7)), ls.PlugIn(ls.Poisson(), 0.3), ls.Embedded(x[0], x[0], 0),
            theory.Complement(self.weightings[0]),
            theory.study(rounds=2, repeats=1), *comparison_constants(rivals),
        ]  # fmt: skip
        self.studies = [_told(study) for study in _studies()]
        self.stores = [ls.Store(None), *(study.store for study in self.studies)]
        self.results.append(ls.Told(1, 0, 1))
        self.results += [ls.Below(0.5, ls.Bernoulli()), ls.Above(0.0, ls.Gaussian(0.1)), self.sequences[0].belief]
        self.results += [ls.OnlineTests(0.1), _any_model(), comparison.BettingMean(0.1)]
        self.saved = str(folder / "saved.likeset")
        self.sequences[0].save(self.saved)

    def rows(self, space):
        if getattr(space, "domain", None) is not None:
            return space.domain[[1, 4, 1]]
        return np.array([[0.8, 0.1, 0.4], [0.3, 0.9, -0.2], [0.8, 0.1, 0.4]])[:, : space.covariate_shape[0]]

    def outcome(self, family, count):
        law = family.known(family.typical) if hasattr(family, "known") else family
        return law.sample(np.full(count, 0.2), np.random.default_rng(3))

    def all(self):
        return [
            *self.families, *self.spaces, *self.predictors, *self.weightings, *self.windows, *self.sequences,
            *self.comparisons, *self.sets, *self.environments, *self.policies, *self.results, *self.studies,
            *self.stores, *self.unknown, ls.plots.LIGHT,
        ]  # fmt: skip

    def handed_out(self, thing):
        """What a call may do as it likes to: a copy of what can change."""
        return copy.deepcopy(thing) if can_change(thing) else thing

    def _fed(self, family, space, **options):
        return self._feed(ls.ConfidenceSequence(family, space, 0.1, **options))

    def _feed(self, sequence):
        x = self.rows(sequence.space)
        sequence.update(x, self.outcome(sequence.family, len(x)))
        return sequence

    def _make_policies(self):
        def fresh(space, **options):
            return ls.ConfidenceSequence(ls.Gaussian(0.3), space, 0.1, **options)

        arms = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
        certain = ls.Elimination(fresh(self.plane), np.eye(2))
        while not certain.stopped:
            certain.tell(certain.ask(), [1.0, -1.0][certain.ask()])
        policies = [
            ls.UCB(fresh(self.plane), arms), ls.UCB(fresh(self.line), bounds=[[0.0, 1.0]]), certain,
            ls.UCB(fresh(self.plane)), ls.UCB(self._fed(ls.Poisson(), self.grid), reward="mean", rng=1),
            ls.Elimination(fresh(self.plane), arms), ls.LowerBound(fresh(self.plane), arms),
            ls.UCB(fresh(self.plane), arms, running_intersection=False, reward="decreasing"),
            ls.UCB(self.comparisons[0], arms), ls.Guarded(fresh(self.plane), arms), ls.Guarded(fresh(self.plane)),
            ls.Guarded(fresh(self.line), bounds=[[0.0, 1.0]], until={"gain": 0.1}),
        ]  # fmt: skip
        policies[0].tell(policies[0].ask(), 0.3)
        return policies


def comparison_constants(rivals):
    return [c.constants for c in rivals if hasattr(c, "constants")][:1]


def _studies():
    levels = {"variant": ["A", "B"]}
    return [
        ls.Study("levels", factors=levels, outcome={"y": ls.Bernoulli()}, control="A", key="id", store=None),
        ls.Study("formula", formula="~ dose + C(variant)", factors=levels, outcome={"y": ls.Poisson()}, store=None),
        ls.Study("empty", factors={"dose": (0, 1)}, outcome={"y": ls.Gaussian(0.5)}, store=None),
    ]


def _told(study):
    if study.name != "empty":
        study.tell(study_rows())
    return study


def study_rows():
    return [{"id": i, "variant": "AB"[i % 2], "dose": 0.5 * i, "y": i % 3 % 2} for i in range(4)]


def _any_model():
    model = ls.ModelSequence(lambda y, x, theta: -0.5 * (y - theta[:, 0] * x) ** 2 - 0.919, np.array([[0.0], [1.0]]))
    model.update(1.0, 0.4)
    return model


def can_change(thing):
    kinds = (ls.Study, ls.Store, ls.ConfidenceSequence, ls.AnyOf, comparison.Comparison, ls.bandits.Policy)
    kinds += (ls.OnlineTests, ls.ModelSequence, comparison.BettingMean)
    return isinstance(thing, kinds)


def fingerprint(thing):
    """Everything of a sequence, comparison set or policy that an error must leave alone."""
    if isinstance(thing, (ls.OnlineTests, ls.ModelSequence, comparison.BettingMean)):
        return repr(thing), getattr(thing, "log_numerator", 0.0)
    if isinstance(thing, ls.Study):
        return thing.fingerprint, thing.n
    if isinstance(thing, ls.Store):
        return tuple(study["rows"] for study in thing.studies())
    if isinstance(thing, ls.AnyOf):
        return tuple(part for member in thing._sequences for part in fingerprint(member))
    if hasattr(thing, "ask"):
        return (
            *fingerprint(thing.seq), getattr(thing, "certificate", None) is None,
            np.array(getattr(thing, "active", 0)).tobytes(),
            b"" if thing.arms.current is None else thing.arms.current.tobytes(),
        )  # fmt: skip
    ledger = thing.ledger if isinstance(thing, ls.ConfidenceSequence) else thing._stream.ledger
    record = tuple(array.tobytes() for _, array in sorted(ledger.state().items()))
    space = thing.space
    probe = np.full(space.covariate_shape if getattr(space, "domain", ()) is not None else (0,), 0.01)
    if getattr(space, "domain", None) is not None:
        probe = np.full(len(space.domain), 0.01)
    ratio = thing.set.log_ratio(probe) if len(probe) and hasattr(thing.set, "log_ratio") else 0.0
    return (thing.n_observations, repr(getattr(thing, "windows", None)), *record, ratio)


def good_value(live, name, owner, label, pick):
    """A value that a parameter of this name takes, fitting the object whose method is called.

    ``pick`` chooses one of a list. Names that are not known get a plain number: a new parameter needs no entry here.
    """
    policy = owner if hasattr(owner, "ask") and hasattr(owner, "seq") else None
    sequence = policy.seq if policy else owner
    space = owner if isinstance(owner, (ls.Linear, ls.RKHS)) else getattr(sequence, "space", None) or live.plane
    family = owner if hasattr(owner, "curvature_bounds") else getattr(sequence, "family", ls.Gaussian(0.3))
    x = live.rows(space)
    domain = getattr(space, "domain", None)
    theta = np.full(len(x[0]) if domain is None else len(domain), 0.1)
    if policy and name in ("arm", "x"):
        return 0 if getattr(policy, "box", None) is None else [0.5]
    if label.startswith("theory.") and name == "family":
        return pick([ls.Gaussian(0.3), ls.Poisson(), ls.Bernoulli(), ls.Binomial(3)])
    if label == "load" and name == "path":
        return live.saved
    of_studies = {
        "rows": study_rows(), "factors": {"variant": ["A", "B"]}, "outcome": {"y": ls.Poisson()}, "control": "A",
        "name": pick(["levels", "formula", "new"]), "store": None, "goal": "minimise", "key": "id", "formula": "~ dose",
        "like": None, "event": None, "entry": None, "exposure": None, "offset": None, "units": "kg", "trials": None,
        "bound": None, "read_only": False, "path": str(live.folder / "store.db"), "margin": 0.1,
    }  # fmt: skip
    if label.startswith(("Study", "Store", "study.")) and name in of_studies:
        return of_studies[name]
    if label == "PlugIn" and name == "z":
        return 0.2
    arrays = {
        "x": x[:1], "X": x, "Y": x, "arms": x[:2], "queries": x[:1], "x_past": x, "covariates": x[:2],
        "A": x[:2],
        "centres": x[:2], "near": np.tile(theta, (len(x), 1)), "theta": theta, "thetas": [theta], "truth": theta,
        "values": theta, "base": theta, "target": [0.1, 0.2], "coordinates": x[0], "z": np.array([0.1]),
        "z_values": [0.2], "lower": np.zeros(2), "upper": np.ones(2), "scores": np.ones(2), "t": [1.0, 2.0],
        "bounds": [[0.2, 1.0]] * len(x[0]), "domain": np.linspace(0.0, 1.0, 5), "masks": [[True, False]],
        "log_shares": np.zeros(1), "weights": None, "gain": [0.5, 0.6], "radius": [1.0, 2.0], "regret": [2.0, 2.5],
    }  # fmt: skip
    plain = {
        "bound": 1.5, "alpha": 0.1, "delta": 0.1, "share": 0.5, "k": 0.5, "arm": 0, "index": 0, "seed": 3, "dim": 2,
        "n_arms": 3, "rounds": 2, "repeats": 1, "samples": 16, "n_points": 8, "starts": 1, "steps": 2, "trials": 3,
        "points": 5, "horizon": 5, "dimension": 2, "degrees": 1, "max_windows": 4, "name": "x", "noise": "gaussian",
        "design": "random", "support": "real", "on_empty": "explore", "coverage": True, "increasing": True,
        "axes": None, "sign": 1.0, "level": None, "covariate_weights": None, "weighted": False, "width_every": 0,
        "simultaneous": True, "others": None, "minus": None, "contrasts": None, "of": "difference", "alarm": False,
    }  # fmt: skip
    made = {
        "y": lambda: live.outcome(family, 1), "rng": lambda: np.random.default_rng(1),
        "path": lambda: str(live.folder / "written"), "family": lambda: pick(live.families),
        "space": lambda: pick(live.spaces), "predictor": lambda: pick(live.predictors),
        "weighting": lambda: pick(live.weightings), "windows": lambda: pick([None, "auto", *live.windows[:2]]),
        "seq": lambda: pick(live.sequences), "sequence": lambda: pick(live.sequences[:4]),
        "policy": lambda: pick(live.policies), "environment": lambda: pick(live.environments),
        "reward": lambda: pick(["increasing", "decreasing", "mean", np.exp]), "kernel": lambda: RBF(0.4),
        "ledger": lambda: live.sequences[0].ledger, "negative_log_density": lambda: logistic_noise, "f": lambda: np.sin,
        "function": lambda: np.exp, "sets": lambda: None if "compare" in label else [live.sequences[0].set],
        "s": lambda: pick(live.sets), "Z": lambda: live.log_partition, "curvature": lambda: live.curvature,
        "other": lambda: live.weightings[0], "piece": lambda: live.families[0],
        "components": lambda: [ls.PlugIn(ls.Poisson(), 0.1)],
    }  # fmt: skip
    if name in made:
        return made[name]()
    known = arrays | plain
    return known[name] if name in known else pick([0.5, 1.0, 2])
