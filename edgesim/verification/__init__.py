"""Verification of finished runs: their bytes, and what follows from what they recorded."""
