"""Torch modules of the user's own as architectures: traced, priced, and their units found."""
