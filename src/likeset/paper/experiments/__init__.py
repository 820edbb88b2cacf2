"""The evaluation of the paper, done again: one file per figure, resumable, seeded; ``likeset reproduce --help``."""
