"""Figures of the clocks: jobs and versions over time, staleness, who took part how often."""
