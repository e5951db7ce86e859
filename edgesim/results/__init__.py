"""Results read back: the folders of runs and sweeps, as tables."""
