"""Figures of networks of several sectors."""
