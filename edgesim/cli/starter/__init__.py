"""What `edgesim init` writes."""
