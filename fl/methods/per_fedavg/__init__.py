"""Per-FedAvg. Fallah et al., "Personalized Federated Learning with Theoretical Guarantees", NeurIPS 2020."""

from fl.methods.per_fedavg.per_fedavg import PerFedAvg

__all__ = ["PerFedAvg"]
