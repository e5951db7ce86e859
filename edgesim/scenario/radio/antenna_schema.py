"""The section antenna of a path loss model of TR 38.901: a sector's pattern."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, Section, key, refuse

OF_A_COLUMN = {"downtilt": "downtilt_deg", "elements": "elements"}


class AntennaSection(Section):
    kind: Annotated[str, Word(("element", "column"))] = key(
        "element: one of 65 degrees and 8 dBi (3GPP TR 38.901, Table 7.3-1); column: several above "
        "each other, half a wavelength apart, tilted downwards",
        "column",
    )
    azimuth_deg: Annotated[float, Quantity("deg", -360.0, 360.0)] = key(
        "direction of the boresight, counterclockwise from the x axis",
        "30 deg",
        30.0,
        f"{OURS}: the first of three sectors at 30, 150 and 270 degrees",
    )
    downtilt_deg: Annotated[float, Quantity("deg", 0.0, 180.0)] = key(
        "zenith angle of the beam of a column: 90 is the horizon",
        "102 deg",
        102.0,
        "3GPP TR 38.901, Table 7.8-1",
    )
    elements: Annotated[int, WholeNumber(1, 64)] = key(
        "elements M of a column", 10, 10, "3GPP TR 38.901, Table 7.8-1"
    )

    @model_validator(mode="after")
    def _is_a_column(self) -> AntennaSection:
        for name, field in OF_A_COLUMN.items():
            if (
                self.kind == "element"
                and getattr(self, field) != type(self).model_fields[field].default
            ):
                problem = f", which reads no {name}; remove it, or write kind: column"
                raise refuse(self.kind, problem, "kind")
        return self
