"""Measurements, side by side in one run: ``python -m tests.benchmarks``. Not part of the ordinary suite."""
