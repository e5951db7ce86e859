"""Downlinks of sectors that disturb each other."""
