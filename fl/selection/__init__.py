"""Selection rules: which of the devices that are there take part in a round, under any method."""
