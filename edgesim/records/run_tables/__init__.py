"""The tables of a run: their columns, how they grow while it plays, and their files."""
