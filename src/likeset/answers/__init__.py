"""Answers of a confidence set, one question per file: plain functions of a set, which it calls for its methods."""
