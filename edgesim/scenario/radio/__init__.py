"""Sections and readers of the radio part of a scenario."""
