"""Factorisations and sums: one matrix at a time, or many problems side by side (lanes)."""
