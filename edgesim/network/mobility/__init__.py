"""Devices that move: their positions over time, and the channel and cells that they meet there."""
