"""Sequences on disk: files, and the journal of durable ones."""

from likeset.persistence.files import load, save

__all__ = ["load", "save"]
