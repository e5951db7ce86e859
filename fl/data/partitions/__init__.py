"""Which samples each device has: drawn by label, or as given by clients or a file."""
