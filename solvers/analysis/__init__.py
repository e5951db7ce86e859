"""Explanation and sensitivity of an allocation."""
