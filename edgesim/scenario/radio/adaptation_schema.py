"""The section adaptation of a scenario: which rate follows from a signal-to-noise ratio."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Boolean, Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, PER_SECTION, Section, key, refuse


class HarqSection(Section):
    most: Annotated[int, WholeNumber(1, 16)] = key(
        "transmissions of a block at most",
        2,
        4,
        f"{OURS}: as in LTE, 3GPP TS 36.321, and common in NR",
        written=False,
    )
    combining: Annotated[str, Word(("chase", "none"))] = key(
        "chase: the energy of all transmissions of a block is combined; none: each stands alone",
        "none",
        "chase",
        "Chase, IEEE Transactions on Communications 1985",
        written=False,
    )
    round_trip_s: Annotated[float, Quantity("s", high=10.0, above=False)] = key(
        "from a transmission to its repetition, after the last block of an upload; other blocks "
        "hide it; read with errors: drawn",
        "8 ms",
        4e-3,
        f"{OURS}: 8 slots of 0.5 ms",
        written=False,
    )

    status_delay_s: Annotated[float, Quantity("s", high=10.0, above=False)] = key(
        "until the last block of an upload, lost after all transmissions, is asked for again by "
        "the layer above; read with errors: drawn",
        "40 ms",
        20e-3,
        f"{OURS}: as a status report of radio link control takes",
        written=False,
    )


class CsiSection(Section):
    delay_s: Annotated[float, Quantity("s", high=10.0, above=False)] = key(
        "age of the channel estimate when a block is sent",
        "10 ms",
        2e-3,
        f"{OURS}: 4 slots of 0.5 ms",
    )
    pilots: Annotated[float, Quantity(low=1.0, high=1e6, above=False)] = key(
        "pilots from which the channel is estimated, each at the ratio of the upload",
        16,
        4.0,
        f"{OURS}: four",
    )


class AdaptationSection(Section):
    rate: Annotated[str, Word(("shannon", "truncated", "mcs"))] = key(
        "shannon: log2(1 + g); truncated: 0.4 of it from -10 to 22 dB in the uplink, 0.6 of it "
        "from -10 to 30 dB in the downlink (3GPP TR 36.942, A.1 and A.2, with the ranges of NR "
        "studies: at most 2.93 and 5.98 bit/s/Hz; its own are 2.0 and 4.4); mcs: the modulation "
        "and coding schemes of NR, and what mixtures of two neighbours achieve",
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
    split: Annotated[bool, Boolean()] = key(
        "true: uploads use two neighbouring schemes of rate: mcs side by side in a share, as plans "
        "count with; false: one at a time, which is 6 % less on average (8 % with 256qam)",
        "false",
        True,
        f"{OURS}: what is planned is achieved",
        written=False,
    )
    errors: Annotated[str, Word(("none", "expected", "drawn"))] = key(
        "block errors of rate: mcs. none: every block arrives at its least ratio; expected: the "
        "goodput of repeated blocks; drawn: planned with the expected one, and drawn per upload",
        "expected",
        "none",
        f"{OURS}: the rate alone",
        written=False,
    )
    harq: HarqSection = key(
        "how lost blocks are repeated", "{most: 4}", HarqSection(), PER_SECTION, written=False
    )

    csi: CsiSection | None = key(
        "an estimate of the fading, by which schemes are chosen and rate: now plans; with errors",
        "{delay: 2 ms, pilots: 4}",
        None,
        f"{OURS}: the fading is known",
    )

    @model_validator(mode="after")
    def _reads_its_table(self) -> AdaptationSection:
        if self.rate != "mcs" and "table" in self.model_fields_set:
            raise refuse(self.rate, ", which reads no table; remove it or write rate: mcs", "rate")
        if self.rate != "mcs" and "split" in self.model_fields_set:
            problem = ", which has no schemes; remove split, or write rate: mcs"
            raise refuse(self.rate, problem, "rate")
        if self.rate != "mcs" and self.errors != "none":
            raise refuse(
                self.rate, ", which has no blocks; write rate: mcs, or errors: none", "rate"
            )
        if self.errors == "none" and "harq" in self.model_fields_set:
            problem = ", which repeats no blocks; remove harq, or write errors: expected"
            raise refuse(self.errors, problem, "errors")
        for name in ("round_trip", "status_delay"):
            if self.errors == "expected" and f"{name}_s" in self.harq.model_fields_set:
                problem = f", which reads no harq.{name}; remove it, or write errors: drawn"
                raise refuse(self.errors, problem, "errors")
        if self.errors == "none" and self.csi is not None:
            problem = ", which loses no blocks; remove csi, or write errors: expected"
            raise refuse(self.errors, problem, "errors")
        if self.csi is not None and "split" in self.model_fields_set:
            problem = " stands beside csi, by which one scheme at a time is chosen; remove split"
            raise refuse(str(self.split).lower(), problem, "split")
        return self
