"""The selection rules with a memory, by name; a new one is a row."""

from __future__ import annotations

from fl.learned_selection.age_of_update import AgeOfUpdate
from fl.learned_selection.energy_queues import EnergyQueues
from fl.learned_selection.fedcs import FedCS
from fl.learned_selection.learning_rule import LearningRule
from fl.learned_selection.power_of_choice import PowerOfChoice
from fl.learned_selection.proportional_fair import ProportionalFair
from fl.learned_selection.tifl import TiFL
from fl.learned_selection.upper_confidence import UpperConfidence

LEARNING_RULES: dict[str, type[LearningRule]] = {
    "power-of-choice": PowerOfChoice,
    "fedcs": FedCS,
    "tifl": TiFL,
    "proportional-fair": ProportionalFair,
    "age": AgeOfUpdate,
    "ucb": UpperConfidence,
    "energy-queues": EnergyQueues,
}
