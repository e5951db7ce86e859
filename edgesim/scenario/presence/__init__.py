"""The keys of a scenario on the presence of devices."""
