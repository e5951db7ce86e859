"""Sections and checks of a network of several cells."""
