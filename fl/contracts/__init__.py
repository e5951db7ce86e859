"""The seam between time and learning: the records and protocols that both sides exchange.

Symbols follow Liu et al.: ``k`` device, ``g`` round, ``K`` devices in the cell, ``S`` devices
selected in a round, ``P`` coordinates of the flat model ``w``, ``rho`` the *pruned* share of the
prunable weights, ``b`` the band share. All units are SI: seconds, hertz, bit, bit/s, watt, joule.
``Tensor`` stands for a torch tensor; these modules pass tensors on and do not import torch.
"""

from __future__ import annotations

from fl.contracts.basic_types import Array, State, Streams, Tensor
from fl.contracts.method_hooks import (
    METRIC,
    STALENESS,
    VALIDATION_MEASURES,
    AtWork,
    MethodHooks,
    Observer,
    Outcome,
    Report,
    Scores,
)
from fl.contracts.round_plan import Demand, Grant, RoundPlan, Stage, UploadForecast, View, Work
from fl.contracts.training_job import (
    Adam,
    Job,
    JobTrainer,
    Payload,
    Phase,
    Sent,
    Sgd,
    Trained,
    Update,
    value_of,
)

__all__ = [
    "METRIC",
    "STALENESS",
    "VALIDATION_MEASURES",
    "Adam",
    "Array",
    "AtWork",
    "Demand",
    "Grant",
    "Job",
    "JobTrainer",
    "MethodHooks",
    "Observer",
    "Outcome",
    "Payload",
    "Phase",
    "Report",
    "RoundPlan",
    "Scores",
    "Sent",
    "Sgd",
    "Stage",
    "State",
    "Streams",
    "Tensor",
    "Trained",
    "Update",
    "UploadForecast",
    "View",
    "Work",
    "value_of",
]
