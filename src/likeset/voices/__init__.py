"""Voices: which observations speak in which of the ratios that are averaged."""

from likeset.voices.base import Membership, Voices
from likeset.voices.contrasts import Contrasts
from likeset.voices.duels import Duels
from likeset.voices.opening import OpeningWindows
from likeset.voices.patience import Beside, Patience, Within
from likeset.voices.windows import MaskedWindows, Windows

VOICES = (Windows, MaskedWindows, OpeningWindows, Patience, Beside, Within, Contrasts, Duels)
"""Every kind of voices; found here by saving."""

__all__ = [
    "VOICES",
    "Beside",
    "Contrasts",
    "Duels",
    "MaskedWindows",
    "Membership",
    "OpeningWindows",
    "Patience",
    "Voices",
    "Windows",
    "Within",
]
