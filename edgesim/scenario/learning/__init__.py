"""Keys about data, model and method."""
