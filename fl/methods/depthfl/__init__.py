"""DepthFL: devices train the first blocks of a model, each with a classifier."""

from fl.methods.depthfl.depthfl import DepthFL

__all__ = ["DepthFL"]
