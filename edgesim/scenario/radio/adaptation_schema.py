"""The section adaptation of a scenario: which rate follows from a signal-to-noise ratio."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, Word
from edgesim.scenario.section import OURS, Section, key, refuse


class AdaptationSection(Section):
    rate: Annotated[str, Word(("shannon", "truncated", "mcs"))] = key(
        "shannon: log2(1 + g); truncated: 0.4 of it from -10 to 22 dB (3GPP TR 36.942, A.2); mcs: "
        "the modulation and coding schemes of NR, and what mixtures of two neighbours achieve",
        "mcs",
    )
    table: Annotated[str, Word(("64qam", "256qam"))] = key(
        "the schemes of rate: mcs, Tables 5.1.3.1-1 and 5.1.3.1-2 of 3GPP TS 38.214",
        "256qam",
        "64qam",
        "3GPP TS 38.214, Table 5.1.3.1-1",
        written=False,
    )
    implementation_loss_db: Annotated[float, Quantity("dB", 0.0, 60.0, above=False)] = key(
        "by how much a receiver needs more than the theory says",
        "2 dB",
        0.0,
        f"{OURS}: none; system simulators have 2 to 5 dB",
        written=False,
    )

    @model_validator(mode="after")
    def _reads_its_table(self) -> AdaptationSection:
        if self.rate != "mcs" and "table" in self.model_fields_set:
            raise refuse(self.rate, ", which reads no table; remove it or write rate: mcs", "rate")
        return self
