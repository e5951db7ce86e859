"""Small-scale fading: its distribution, and what rates follow from it."""
