"""FedSpa. Huang et al., "Achieving Personalized Federated Learning with Sparse Local Models", 2022."""

from fl.methods.fedspa.fedspa import FedSpa

__all__ = ["FedSpa"]
