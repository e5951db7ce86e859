"""FedLPS: learnable patterns of units, and a bandit that learns how many a device keeps."""

from fl.methods.fedlps.fedlps import FedLPS

__all__ = ["FedLPS"]
