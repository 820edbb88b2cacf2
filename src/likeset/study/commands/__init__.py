"""Studies on the command line: ``likeset watch`` and ``likeset study``."""
