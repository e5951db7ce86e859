"""Clocks of the server: when devices start, and when a new version of the model is made."""
