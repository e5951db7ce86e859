"""Sweeps: every combination of some keys, in parallel, each combination once."""
