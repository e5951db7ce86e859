"""House style of figures and tables."""
