"""Smooth terms (Poisson, Bernoulli, Weibull, users' own): Newton steps along the boundary."""
