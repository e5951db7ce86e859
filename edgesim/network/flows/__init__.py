"""Flows of bits whose rates change together, and the one timer of their ends."""
