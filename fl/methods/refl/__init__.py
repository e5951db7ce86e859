"""REFL. Abdelmoniem et al., "REFL: Resource-Efficient Federated Learning", EuroSys 2023."""

from fl.methods.refl.refl import REFL

__all__ = ["REFL"]
