"""Voices: which observations speak in which of the ratios that are averaged."""
