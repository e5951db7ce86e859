"""Figures of what schemes cost."""
