"""A method of one's own: FedAvg that leaves each device's classifier at home (FedPer). Run it with

edgesim run examples/own_method.yaml --allow-code
"""

from dataclasses import dataclass

from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class FedPer(FedAvg):
    """Only the features travel; the fully connected part stays personal and is trained along."""

    def personal(self):
        return self.task.layout.role("classifier")
