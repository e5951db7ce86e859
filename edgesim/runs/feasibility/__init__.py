"""Whether devices can meet the threshold, said before a run starts."""
