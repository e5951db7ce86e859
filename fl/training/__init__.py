"""Local training: steps of an optimiser on masked weights."""
