"""A method whose devices are chosen by a rule with a memory; the memory is part of its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fl.contracts import Array, Outcome, Report, State, Streams, Update, View
from fl.learned_selection.learning_rule import Costs, Ended, LearningRule, Memory

MEMORY = "selection"  # among the notes of a state


@dataclass(eq=False)
class ChoosingMethod:
    """A method with all its own answers but for who takes part (`fl.contracts.MethodHooks`).

    Args:
        method: whose states have notes.
        rule: chooses.
        participants: devices that it may choose at a time; None: all that are idle.
        streams: random streams of the run.
        costs: (method, state, view) -> what taking part is expected to cost.
        trained: are there losses?
    """

    _method: Any
    _rule: LearningRule
    _participants: int | None
    _streams: Streams
    _costs: Callable[[Any, State, View], Costs]
    _trained: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def select(self, state: State, view: View) -> Array:
        """Devices int [S] by the rule, in rising order."""
        count = view.places(self._participants)
        stream = self._streams.stream("select", round=view.occasion)
        memory, costs = self._memory(state, view), self._seen_costs(state, view)
        return np.sort(self._rule.choose(memory, view, costs, count, stream))

    def aggregate(self, state: State, view: View, updates: Sequence[Update]) -> State:
        """As the method does; the view is kept for `observe`, which follows."""
        new = self._method.aggregate(state, view, updates)
        return remembering(new, {"view": view, "memory": self._memory(state, view)})

    def observe(self, state: State, report: Report) -> State:
        """As the method does; the rule learns from the jobs that have ended."""
        seen = state.notes[MEMORY]
        new = self._method.observe(state, report)
        costs = self._seen_costs(state, seen["view"])
        ended = [self._ended(each) for each in report.outcomes]
        return remembering(new, self._rule.learn(seen["memory"], seen["view"], costs, ended))

    def _memory(self, state: State, view: View) -> Memory:
        found = state.notes.get(MEMORY)
        return self._rule.start(len(view.samples)) if found is None else found

    def _seen_costs(self, state: State, view: View) -> Costs:
        if not self._rule.needs_costs:
            return Costs(*np.zeros((3, len(view.samples))))
        return self._costs(self._method, state, view)

    def _ended(self, outcome: Outcome) -> Ended:
        loss = accuracy = math.nan
        if self._trained and self._rule.needs_training and outcome.received:
            assert outcome.update is not None  # it has arrived
            result = outcome.update.result()
            loss, accuracy = result.loss, result.accuracy
        about = outcome.grant.device, outcome.received, outcome.finish_s, outcome.energy_j
        return Ended(*about, loss, accuracy)


def remembering(state: State, memory: Any) -> State:
    """The state with another memory of the rule."""
    return replace(state, notes={**state.notes, MEMORY: memory})
