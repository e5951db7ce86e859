"""FedMP: structured pruning whose ratio a bandit chooses for every device."""

from fl.methods.fedmp.fedmp import FedMP

__all__ = ["FedMP"]
