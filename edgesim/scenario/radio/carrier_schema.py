"""The section carrier of a scenario: frequency and resource grid."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.radio.numerology import (
    RESOURCE_BLOCKS,
    SYMBOLS,
    air_shares,
    is_pattern,
    occupied_hz,
    resource_blocks,
    resource_share,
)
from edgesim.scenario.section import OURS, Section, key, refuse

OF_THE_GRID = ("scs", "overhead_up", "overhead_down", "tdd", "special", "tdd_clock", "layers")


class CarrierSection(Section):
    frequency_hz: Annotated[float, Quantity("Hz")] = key("carrier frequency f_c", "3.5 GHz")
    bandwidth_hz: Annotated[float | None, Quantity("Hz")] = key(
        "channel bandwidth of an NR carrier, whose resource blocks give network.bandwidth: "
        "W = 12 N_RB scs",
        "20 MHz",
        None,
        "not set: network.bandwidth is used to the last hertz, Liu, eq. (9)",
    )
    scs_hz: Annotated[float, Quantity("Hz")] = key(
        "subcarrier spacing: 15, 30 or 60 kHz; read with carrier.bandwidth",
        "15 kHz",
        30e3,
        "3GPP TS 38.101-1, Table 5.3.2-1: common in band n78",
        written=False,
    )
    overhead_up: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "share of the uplink's resource elements for reference signals and control",
        0.08,
        0.08,
        "3GPP TS 38.306, clause 4.1.2, FR1",
        written=False,
    )
    overhead_down: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "the same of the downlink",
        0.14,
        0.14,
        "3GPP TS 38.306, clause 4.1.2, FR1",
        written=False,
    )
    tdd: Annotated[str | None, Word(looks="slots such as DDDSU")] = key(
        "slots of a TDD pattern: D down, U up, S special; the rate is the mean over the pattern",
        "DDDSU",
        None,
        "not set: both directions have a band of their own",
    )
    special: Annotated[
        str, Word(pattern=r"\d{1,2}:\d{1,2}:\d{1,2}", looks="symbols such as 10:2:2")
    ] = key(
        "symbols of a special slot: down, guard, up; 14 together",
        "10:2:2",
        "10:2:2",
        f"{OURS}: a common split of DDDSU",
        written=False,
    )

    tdd_clock: Annotated[str, Word(("fluid", "slots"))] = key(
        "fluid: the rate is the mean over the pattern; slots: bits travel in the slots of their "
        "direction only, and plans leave time for the longest gap",
        "slots",
        "fluid",
        f"{OURS}: a mean; an upload ends up to one pattern later",
        written=False,
    )
    layers: Annotated[int, WholeNumber(1, 8)] = key(
        "streams that are sent at once over the same resource blocks, each with the rate of one",
        2,
        1,
        f"{OURS}: one antenna; 3GPP TS 38.306, clause 4.1.2, has up to 4 up and 8 down",
        written=False,
    )
    noise_figure_db: Annotated[float | None, Quantity("dB", 0.0, 40.0, above=False)] = key(
        "of the base station: network.noise is then -174 dBm/Hz plus this",
        "5 dB",
        None,
        "not set: network.noise says it; ITU-R M.2412 has 5 dB",
        written=False,
    )

    @model_validator(mode="after")
    def _is_a_grid(self) -> CarrierSection:
        if self.bandwidth_hz is None:
            for name in OF_THE_GRID:
                field = "scs_hz" if name == "scs" else name
                if field in self.model_fields_set and getattr(self, field) is not None:
                    problem = " is read with carrier.bandwidth only; remove it, or give one"
                    raise refuse(getattr(self, field), problem, name)
            return self
        widths = RESOURCE_BLOCKS.get(round(self.scs_hz / 1e3), {})
        if not widths or self.scs_hz % 1e3:
            raise refuse(f"{self.scs_hz / 1e3:g} kHz", "; allowed is 15, 30 or 60 kHz", "scs")
        if self.blocks is None:
            given = f"{self.bandwidth_hz / 1e6:g} MHz at {self.scs_hz / 1e3:g} kHz"
            allowed = ", ".join(map(str, widths))
            raise refuse(given, f"; TS 38.101-1 has channels of {allowed} MHz", "bandwidth")
        for name in ("overhead_up", "overhead_down"):
            if getattr(self, name) >= 1.0:
                raise refuse(getattr(self, name), " leaves nothing; write less than 1", name)
        if sum(self.special_symbols) != SYMBOLS:
            problem = f"; a slot has {SYMBOLS} symbols, these are {sum(self.special_symbols)}"
            raise refuse(self.special, problem, "special")
        if self.tdd is None and "special" in self.model_fields_set:
            raise refuse(self.special, " is read with tdd only; remove it, or give one", "special")
        if self.tdd is None and self.tdd_clock == "slots":
            raise refuse("slots", " is read with tdd only; remove it, or give one", "tdd_clock")
        if self.tdd is not None and not is_pattern(self.tdd):
            raise refuse(self.tdd, "; write slots such as DDDSU: D, at most one S, then U", "tdd")
        if self.tdd is not None and "S" not in self.tdd and "special" in self.model_fields_set:
            problem = f" is read with a special slot only, and tdd is {self.tdd}; remove it"
            raise refuse(self.special, problem, "special")
        return self

    @property
    def blocks(self) -> int | None:
        """N_RB; None without a channel bandwidth, or where there is no such channel."""
        if self.bandwidth_hz is None:
            return None
        return resource_blocks(self.bandwidth_hz, self.scs_hz)

    @property
    def occupied_hz(self) -> float | None:
        """W, Hz; None without a channel bandwidth."""
        return None if self.blocks is None else occupied_hz(self.blocks, self.scs_hz)

    @property
    def special_symbols(self) -> tuple[int, int, int]:
        """Symbols of the special slot for downlink, guard and uplink."""
        down, guard, up = map(int, self.special.split(":"))
        return down, guard, up

    @property
    def air_shares(self) -> tuple[float, float]:
        """Parts of the time in which bits travel (up, down); 1 without a TDD pattern."""
        return air_shares(self.tdd, self.special_symbols) if self.tdd else (1.0, 1.0)

    @property
    def resource_shares(self) -> tuple[float, float]:
        """Parts of W log2(1 + SINR) that carry data (up, down); 1 without a resource grid."""
        if self.bandwidth_hz is None:
            return 1.0, 1.0
        up, down = self.air_shares
        return (
            self.layers * resource_share(self.overhead_up, up),
            self.layers * resource_share(self.overhead_down, down),
        )
