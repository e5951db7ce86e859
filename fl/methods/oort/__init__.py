"""Oort: participants are selected by what their data and their speed are worth."""

from fl.methods.oort.oort import Oort

__all__ = ["Oort"]
