"""Quadratic terms (Gaussian noise): an ellipsoid cut with a ball, in closed form but for one root."""
