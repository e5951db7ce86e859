"""FedMAP: one vector of keep-probabilities, from which submodels of any size are cut."""

from fl.methods.fedmap.fedmap import FedMap

__all__ = ["FedMap"]
