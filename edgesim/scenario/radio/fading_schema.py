"""The section fading of a channel."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, Word
from edgesim.scenario.section import OURS, Section, ValueRefusedError, key, refuse

TABLE = "table"
TR_7_5_6 = "3GPP TR 38.901, Table 7.5-6"


class QuantityOrTable(Quantity):
    """A `Quantity`, or the word table."""

    def read(self, given: object) -> Any:
        return TABLE if given == TABLE else super().read(given)

    def write(self, value: Any) -> Any:
        return TABLE if value == TABLE else super().write(value)

    @property
    def allowed(self) -> str:
        return f"{super().allowed}, or table"

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"const": TABLE}, super().json_schema()]}


class FadingSection(Section):
    kind: Annotated[str, Word(("none", "rayleigh", "rician"))] = key(
        "small-scale fading: none; without a direct path; with one, by its K factor", "rayleigh"
    )
    coherence_s: Annotated[float | None, Quantity("s")] = key(
        "length of a coherence block", "5 ms", None, "not set: this or speed, with fading only"
    )
    speed_m_per_s: Annotated[float | None, Quantity("m/s", high=1000.0)] = key(
        "speed of the devices, for the coherence time 9 / (16 pi f_D) (Rappaport, Wireless "
        "Communications, 2002, eq. (5.40.b)) with the Doppler shift f_D = v f / c; needs "
        "network.carrier",
        "3 km/h",
        None,
        "not set: this or coherence, with fading only",
    )
    process: Annotated[str, Word(("block", "clarke"))] = key(
        "block: redrawn for every coherence block; clarke: a sum of 16 waves that turns "
        "continuously, held for steps of 0.05 / f_D; needs speed",
        "clarke",
        "block",
        "block fading",
        written=False,
    )
    links: Annotated[str, Word(("own", "all"))] = key(
        "own: interference arrives with mean gains; all: over blocks of its own for every device "
        "and sector (network.layout), with Rayleigh fading or the K factors of these links",
        "all",
        "own",
        f"{OURS}: interference is a sum of many",
        written=False,
    )
    delay_spread_s: Annotated[
        float | str | None, QuantityOrTable("s", 1e-12, 1e-3, above=False)
    ] = key(
        "tau of frequency-selective fading: the waves of process: clarke arrive with exponential "
        "delays, so that parts of the band fade apart; table: of every device by its place and "
        f"line of sight at the start, {TR_7_5_6}, which has medians of 20 to 267 ns",
        "97 ns",
        None,
        "not set: the band fades as a whole, which is pessimistic for wide ones",
        written=False,
    )
    k_db: Annotated[float | str | None, QuantityOrTable("dB", -60.0, 60.0)] = key(
        "K factor of kind rician; table: by position and line of sight, with path_loss models of "
        "3GPP TR 38.901",
        "9 dB",
        None,
        f"not set: needed with kind rician only; table: {TR_7_5_6}",
    )

    @model_validator(mode="after")
    def _fits_the_kind(self) -> FadingSection:
        given = [n for n in ("coherence", "speed", "k", "delay_spread") if self._given(n)]
        given += ["links"] if self.links != "own" else []
        if self.kind == "none" and (given or self.process != "block"):
            problem = (
                f", which reads no {(*given, 'process')[0]}; remove it or write kind: rayleigh"
            )
            raise refuse(self.kind, problem, "kind")
        if self.kind == "none":
            return self
        if not self._given("coherence") and not self._given("speed"):
            problem = f" without coherence; write {{kind: {self.kind}, coherence: 5 ms}}"
            raise refuse(self.kind, problem, "kind")
        if self._given("coherence") and self._given("speed"):
            raise ValueRefusedError("stands beside coherence; keep one of the two", keys=["speed"])
        if self.process == "clarke" and not self._given("speed"):
            problem = ", which needs a speed; write for instance speed: 3 km/h"
            raise refuse(self.process, problem, "process")
        if self.process != "block" and self.links == "all":
            problem = ", whose waves the links to other sectors do not have; write process: block"
            raise refuse(self.process, problem, "process")
        if self.process != "clarke" and self.delay_spread_s is not None:
            problem = ", which reads no delay_spread; remove it, or write process: clarke"
            raise refuse(self.process, problem, "process")
        if self.kind == "rician" and not self._given("k"):
            raise refuse(self.kind, " without k; write for instance k: 9 dB", "kind")
        if self.kind == "rayleigh" and self._given("k"):
            raise refuse(self.kind, ", which reads no k; remove it or write kind: rician", "kind")
        return self

    def _given(self, name: str) -> bool:
        field = {"coherence": "coherence_s", "speed": "speed_m_per_s", "k": "k_db"}.get(
            name, f"{name}_s"
        )
        return getattr(self, field) is not None
