"""Errors of the learning part: each is one sentence that tells the user what to change."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known: the nearest one, if there is any.

    Capitals do not count: MLP is mlp.
    """
    in_small_letters = {each.lower(): each for each in known}
    near = get_close_matches(str(name).lower(), in_small_letters, n=1)
    return f'; did you mean "{in_small_letters[near[0]]}"?' if near else ""


class LearningError(ValueError):
    """Base of the errors that a model, a data set, a method or its parameters can cause."""


class DataError(LearningError):
    """Data that are missing, damaged or cannot be divided among the devices as asked."""


class ModelError(LearningError):
    """A model that does not exist or does not fit the data."""


class ClassifierError(ModelError):
    """The parts of a model that are named as its classifier are none."""


class LearningKeyError(LearningError):
    """The value of one key is not allowed.

    Args:
        key: the key in question.
        problem: the rest of the sentence that begins with the key.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(key, problem)  # its arguments: SimPy and pickle make copies of errors
        self.key = key
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.key} {self.problem}"


class MethodError(LearningKeyError):
    """A method, or a parameter of it, that is not allowed; the key "name" is the method itself."""


class InputsError(LearningKeyError, DataError):
    """The samples cannot have the scale that the key ``inputs`` asks for."""


class ObjectiveError(LearningKeyError):
    """What the user's ``loss`` or ``metric``, which is the key, gives is not allowed."""
