"""Families: the law of y given z = x'theta, one file each."""

from likeset.families.base import Family
from likeset.families.binomial import Bernoulli, Binomial
from likeset.families.custom import CustomFamily
from likeset.families.gamma import Gamma
from likeset.families.gaussian import Gaussian
from likeset.families.laplace import Laplace
from likeset.families.log_normal import LogNormal
from likeset.families.logistic import Logistic
from likeset.families.negative_binomial import Geometric, NegativeBinomial
from likeset.families.poisson import Poisson
from likeset.families.student_t import StudentT
from likeset.families.unknown import Unknown
from likeset.families.weibull import Exponential, LogWeibull, Weibull

FAMILIES = (
    Gaussian, Laplace, Poisson, Bernoulli, Binomial, Weibull, LogWeibull, Exponential,
    Logistic, NegativeBinomial, Gamma, LogNormal, Geometric, StudentT,
)  # fmt: skip
"""Every built-in family that is fully described by its settings; found here by saving and by the checks."""

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Binomial",
    "CustomFamily",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "Geometric",
    "Laplace",
    "LogNormal",
    "LogWeibull",
    "Logistic",
    "NegativeBinomial",
    "Poisson",
    "StudentT",
    "Unknown",
    "Weibull",
]
