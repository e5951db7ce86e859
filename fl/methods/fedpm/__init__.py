"""FedPM. Isik, Pase, Gunduz, Weissman, Zorzi, "Sparse Random Networks for Communication-Efficient FL", ICLR 2023."""

from fl.methods.fedpm.fedpm import FedPM

__all__ = ["FedPM"]
