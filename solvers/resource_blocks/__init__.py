"""Allocations in whole resource blocks and with discrete pruning levels."""
