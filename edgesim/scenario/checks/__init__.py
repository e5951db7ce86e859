"""Checks between the sections of a scenario."""
