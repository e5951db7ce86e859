"""Clocks whose jobs overlap as columns, for timing many devices without training."""
