"""Spectral efficiency of link adaptation, and shares at a price under it."""
