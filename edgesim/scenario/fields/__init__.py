"""Readers of the values of keys: quantities with units, numbers, words, lists, mappings."""

from __future__ import annotations

from edgesim.scenario.fields.lists_and_mappings import (
    AnyMapping,
    NumberList,
    QuantityList,
    WordList,
    WordMapping,
)
from edgesim.scenario.fields.quantities import PLAIN, Boolean, Quantity, RoundsOrTime, WholeNumber
from edgesim.scenario.fields.words import LABEL, NAME, Sentence, Word

__all__ = [
    "LABEL",
    "NAME",
    "PLAIN",
    "AnyMapping",
    "Boolean",
    "NumberList",
    "Quantity",
    "QuantityList",
    "RoundsOrTime",
    "Sentence",
    "WholeNumber",
    "Word",
    "WordList",
    "WordMapping",
]
