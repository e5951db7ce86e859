"""FedAvg, from which most methods derive. McMahan et al., AISTATS 2017."""

from fl.method_base.averaging import FedAvg

__all__ = ["FedAvg"]
