"""Voices: which observations speak in which of the ratios that are averaged."""

from likeset.voices.base import Membership, Voices
from likeset.voices.patience import Beside, Patience, Within
from likeset.voices.windows import MaskedWindows, Windows

VOICES = (Windows, MaskedWindows, Patience, Beside, Within)
"""Every kind of voices; found here by saving."""

__all__ = ["VOICES", "Beside", "MaskedWindows", "Membership", "Patience", "Voices", "Windows", "Within"]
