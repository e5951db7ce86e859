"""YAML files as plain data that knows where each part was written, and how they are laid over."""
