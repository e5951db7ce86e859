"""Numbers of runs, of schemes over their seeds, and of their rounds."""
