"""Masks: which weights and units of a model are kept."""
