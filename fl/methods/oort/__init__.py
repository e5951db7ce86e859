"""Oort. Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021."""

from fl.methods.oort.oort import Oort

__all__ = ["Oort"]
