"""Sentences and tables of a report."""
