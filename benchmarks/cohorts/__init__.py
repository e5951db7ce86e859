"""Cohorts of devices that are trained, the plain loop that trains them too, and its timing."""
