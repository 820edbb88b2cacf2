"""Words and names of the report."""

GLOSSARY = {
    "regret": "What was lost so far against always playing the best arm, in the units of the reward.",
    "theta, Theta, B": "The unknown parameter, or function; those held possible: not longer than B.",
    "LR": "Likelihood-ratio set: all parameters whose likelihood is at most a factor 1/alpha below that of forecasts "
    "made before each observation (the numerator).",
    "FTRL": "The paper's numerator: the penalised maximum-likelihood estimate of the past, plugged in.",
    "w = 1; weighted": "Whether observations whose forecast was biased count for less. Weights are on both sides "
    "of the ratio, unless a control says otherwise.",
    "bound, exact, projection": "Three readings of the bias in the paper's weights: the bound of its Theorem 2, the "
    "worst case for Gaussian noise, and what lies outside the span of past covariates.",
    "LR hyper-mixture": "Our numerator: a Bayes mixture over Gaussian priors of five widths; one ratio for all data.",
    "LR, weights on one side": "A control: weights on the numerator only, which breaks the guarantee.",
    "likeset default": "What ConfidenceSequence does when nothing is asked for, but for its alarm: the hyper-mixture, "
    "and several ratios that are averaged: windows around the arms in games, patience for inference.",
    "patience": "Ratios that leave out observations which were known to be hard to forecast, averaged over how hard.",
    "R_t": "What the numerator has lost to the truth so far, in nats; the set allows R_t + log(1/alpha).",
    "nat": "The unit of log-likelihood with natural logarithms; a factor of e is one nat.",
    "AY 2011": "Abbasi-Yadkori, Pal, Szepesvari 2011: the ellipsoid of ridge regression. Drawn as published, not cut "
    "with Theta; widths of bands are compared after cutting all of them at |f| <= B.",
    "AY 2011, cut with Theta": "The same without parameters longer than B: as valid, and smaller.",
    "AY 2011 as if Gaussian": "A control: the same ellipsoid under Laplace noise, for which it was not proved.",
    "NR 2021": "Neiswanger, Ramdas 2021: the ratio of the Gaussian marginal likelihood to the likelihood.",
    "sub-exponential": "Proposition 3 of the paper: ridge regression for noise known by its tails.",
    "heuristic": "Ridge regression with radius² = 2 log(1/alpha): no coverage.",
    "Laplace approx., MK 2021": "The two heuristics of the paper for counts: no coverage.",
    "AMM, CMM, DMM": "Analytic, convex and dual martingale mixtures (Flynn et al. 2023; Flynn, Reeb 2024).",
    "SLM 2025": "Sequential likelihood mixing: a posterior predictive as numerator (Kirschner et al. 2025).",
    "delta": "The type II error in Theorem 3: with probability 1 - delta no parameter beyond its radius is left.",
    "WWR 2023": "AY 2011 with a penalty that grows with time (after Whitehouse, Wu, Ramdas 2023).",
    "self-normalised": "Theorem 1 of AY 2011 as it stands, not turned into an ellipsoid.",
    "unified GLM, regret GLM, Bregman": "Newer sets for generalised linear models (Lee, Yun, Jun 2024; Clerico et al. "
    "2025; Chowdhury et al. 2022).",
    "coverage; anytime": "The truth is in the set with probability 1 - alpha; at all rounds at once.",
    "Elimination; certificate": "A policy that plays for proof: arms that every plausible parameter calls worse than "
    "another are ruled out, and the last one left is best with probability 1 - alpha.",
    "choice by belief": "A policy that plays what the predictor believes best, never what the certified set has ruled "
    "out (ls.Guarded).",
    "proved, assumed, printed": "Status of a bound: with a proof; under an assumption that is not proved here; as the "
    "paper prints it, where that differs from what its proof shows.",
    "not refuted": "No more misses than allowed, in runs too few to notice a bad set.",
    "undecided": "The interval of the ratio contains the limit, or there are too few repeats.",
}
"""In the order of reading."""
