"""Absolute values (Laplace noise): an interior-point method."""
