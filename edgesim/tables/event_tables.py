"""The tables of runs as data frames, by name: docs/tables.md has their columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class EventTables:
    """Tables of one run, or of several below each other, read when they are first asked for."""

    def _event_table(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row a round."""
        return self._event_table("rounds")

    @cached_property
    def device_rounds(self) -> pd.DataFrame:
        """One row for each device that was selected in a round."""
        return self._event_table("device_rounds")

    @cached_property
    def spans(self) -> pd.DataFrame:
        """One row an activity of a device."""
        return self._event_table("spans")

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row for each device with test data in an evaluated round."""
        return self._event_table("scores")

    @cached_property
    def measures(self) -> pd.DataFrame:
        """One row for each further number of an evaluated round: of the method, or held out."""
        return self._event_table("measures")

    @cached_property
    def upload_forecasts(self) -> pd.DataFrame:
        """One row for each device with a grant in a round whose plan counts with fading."""
        return self._event_table("upload_forecasts")

    @cached_property
    def device_states(self) -> pd.DataFrame:
        """One row for each device whose state changes as it works, at the end of a round."""
        return self._event_table("device_states")

    @cached_property
    def backhaul(self) -> pd.DataFrame:
        """One row for each transfer between an edge and the cloud."""
        return self._event_table("backhaul")

    @cached_property
    def presence(self) -> pd.DataFrame:
        """One row for each interval in which a device that comes and goes was there."""
        return self._event_table("presence")
