"""Families: the law of y given z = x'theta, one file each."""

from likeset.families.base import Family
from likeset.families.binomial import Bernoulli, Binomial
from likeset.families.custom import CustomFamily
from likeset.families.gaussian import Gaussian
from likeset.families.laplace import Laplace
from likeset.families.poisson import Poisson
from likeset.families.weibull import Exponential, LogWeibull, Weibull

FAMILIES = (Gaussian, Laplace, Poisson, Bernoulli, Binomial, Weibull, LogWeibull, Exponential)
"""Every built-in family that is fully described by its settings; found here by saving and by the checks."""

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Binomial",
    "CustomFamily",
    "Exponential",
    "Family",
    "Gaussian",
    "Laplace",
    "LogWeibull",
    "Poisson",
    "Weibull",
]
