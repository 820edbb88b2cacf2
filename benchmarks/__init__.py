"""Benchmarks of the engine: ``python -m benchmarks`` prints tables and writes one JSON file."""
