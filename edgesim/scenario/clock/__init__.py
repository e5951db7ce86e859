"""The section clock of a scenario."""
