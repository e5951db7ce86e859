"""FedMAP. "One Training Fits All: ... Model-Heterogeneity FL via Architecture Probing", ICLR submission."""

from fl.methods.fedmap.fedmap import FedMap

__all__ = ["FedMap"]
