"""Layers as plain data: their tensors, how often each is used, and how they are applied."""
