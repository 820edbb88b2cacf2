"""Voices: which observations speak in which of the ratios that are averaged."""

from likeset.voices.base import Membership, Voices
from likeset.voices.windows import MaskedWindows, Windows

VOICES = (Windows, MaskedWindows)
"""Every kind of voices; found here by saving."""

__all__ = ["VOICES", "MaskedWindows", "Membership", "Voices", "Windows"]
