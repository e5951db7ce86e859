"""Allocations in whole resource blocks."""
