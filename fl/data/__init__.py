"""Data sets, and how they are divided among the devices."""
