"""likeset: anytime-valid likelihood-ratio confidence sets.

>>> import likeset as ls
>>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=1, bound=3.0), alpha=0.05)
>>> seq.update([[1.0]] * 5, [1, 1, 0, 1, 1])
>>> seq.set.contains([0.5])
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from likeset.bandits import UCB, Certificate, Elimination, LowerBound, Reward, Trace, environments, simulate
from likeset.errors import (
    EmptySetError,
    FileFormatError,
    InvalidArgumentError,
    LikesetError,
    NotConvexError,
    ObservationError,
    PieceError,
    ShapeError,
)
from likeset.families import (
    Bernoulli,
    Binomial,
    CustomFamily,
    Exponential,
    Gaussian,
    Laplace,
    LogWeibull,
    Poisson,
    Weibull,
)
from likeset.persistence import load
from likeset.predictors import FTRL, VAW, Aggregate, Fixed, Mixture, PlugIn
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet, Support
from likeset.spaces import RKHS, Embedded, Linear
from likeset.weights import BiasWeighting, Unweighted
from likeset.windows import Windows

if TYPE_CHECKING:
    from likeset import comparison, theory

__version__ = "0.1.0"

__all__ = [
    "FTRL",
    "RKHS",
    "UCB",
    "VAW",
    "Aggregate",
    "Bernoulli",
    "BiasWeighting",
    "Binomial",
    "Certificate",
    "ConfidenceSequence",
    "CustomFamily",
    "Elimination",
    "Embedded",
    "EmptySetError",
    "Exponential",
    "FileFormatError",
    "Fixed",
    "Gaussian",
    "InvalidArgumentError",
    "Laplace",
    "LikelihoodSet",
    "LikesetError",
    "Linear",
    "LogWeibull",
    "LowerBound",
    "Mixture",
    "NotConvexError",
    "ObservationError",
    "PieceError",
    "PlugIn",
    "Poisson",
    "Reward",
    "ShapeError",
    "Support",
    "Trace",
    "Unweighted",
    "Weibull",
    "Windows",
    "comparison",
    "environments",
    "load",
    "simulate",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Load the larger, less used rooms when they are first entered: importing likeset stays quick."""
    if name in ("comparison", "theory"):
        return importlib.import_module(f"likeset.{name}")
    raise AttributeError(f"module 'likeset' has no attribute {name!r}")
