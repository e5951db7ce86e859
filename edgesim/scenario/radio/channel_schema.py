"""The section channel of a scenario: path loss and shadowing; its fading is a section below it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from edgesim.scenario.fields import Quantity, Word
from edgesim.scenario.per_device_values import Draw, per_device
from edgesim.scenario.radio.antenna_schema import AntennaSection
from edgesim.scenario.radio.fading_schema import TABLE, FadingSection, QuantityOrTable
from edgesim.scenario.radio.own_loss_schema import CodePathLoss, TracePathLoss
from edgesim.scenario.section import (
    OURS,
    PER_SECTION,
    Section,
    ValueRefusedError,
    WordOrSection,
    key,
    refuse,
)

TR38901 = ("uma", "umi", "rma", "inh")
HIGH_LOSS = 0.5


class ConstantPathLoss(Section):
    model: Literal["constant"] = key("constant: the same loss whatever the distance", "constant")
    loss_db: Annotated[Draw, per_device("dB", 0.0, 1000.0, above=False)] = key(
        "path loss; a list has one value for every device of the cell", "100 dB"
    )


class LogDistancePathLoss(Section):
    model: Literal["log-distance"] = key(
        "log-distance: loss = reference_loss + 10 exponent log10(d / d0)", "log-distance"
    )
    reference_loss_db: Annotated[float, Quantity("dB", -200.0, 1000.0)] = key(
        "path loss at the reference distance", "38.5 dB"
    )
    reference_distance_m: Annotated[float, Quantity("m")] = key(
        "distance d0 of the reference loss",
        "1 m",
        1.0,
        "3GPP TR 38.901, Table 7.4.1-1: losses are referred to 1 m",
    )
    exponent: Annotated[float, Quantity(high=10.0)] = key(
        "path loss exponent; 2 in free space", 3.0
    )


class WallsSection(Section):
    indoor: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "share of the devices that are in buildings; of rma the others are then in cars",
        0.8,
        0.0,
        f"{OURS}: all outdoor; 3GPP TR 38.901, Tables 7.2-1 and 7.2-3, has 0.8, and 0.5 for rma",
    )
    high_loss: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "share of the buildings with high-loss walls (coated glass); rma has none",
        0.5,
        HIGH_LOSS,
        f"{OURS}: Table 7.4.3-2 leaves it open",
    )
    heights: Annotated[str, Word(("device", "floors"))] = key(
        "height of indoor devices. device: that of the class; floors: on any floor of a building "
        "of 4 to 8, 3 m each (3GPP TR 36.873, Table 6-1)",
        "floors",
        "device",
        f"{OURS}: the height that the class says",
        written=False,
    )

    @model_validator(mode="after")
    def _has_buildings(self) -> WallsSection:
        if self.heights == "floors" and not self.indoor:
            problem = ", but nobody is in a building; write indoor: 0.8, or remove it"
            raise refuse(self.heights, problem, "heights")
        # a sweep over indoor may well go through 0
        if {"indoor", "high_loss"} & self.model_fields_set == {"high_loss"}:
            problem = ", but nobody is in a building without indoor; write indoor: 0.8 beside it"
            raise refuse(self.high_loss, problem, "high_loss")
        return self


class Tr38901PathLoss(Section):
    model: Literal["uma", "umi", "rma", "inh"] = key(
        "uma, umi, rma, inh: urban macro, urban micro, rural macro, indoor office of "
        "3GPP TR 38.901, with line of sight by position",
        "uma",
    )
    height_m: Annotated[float | None, Quantity("m", high=1000.0)] = key(
        "height h_BS of the base station",
        "25 m",
        None,
        "not set: 25, 10, 35 and 3 m, 3GPP TR 38.901, Tables 7.2-1 to 7.2-3",
    )
    los: Annotated[str, Word(("field", "always", "never"))] = key(
        "line of sight. field: drawn by position, with the probability of Table 7.4.2-1; always: "
        "everywhere; never: nowhere",
        "always",
        "field",
        "3GPP TR 38.901, Table 7.4.2-1",
    )
    antenna_gain_db: Annotated[float, Quantity("dB", -100.0, 100.0)] = key(
        "gain of the base station's antenna towards every device",
        "8 dB",
        0.0,
        f"{OURS}: isotropic; one element of 3GPP TR 38.901, Table 7.3-1, has at most 8 dB",
    )
    antenna: AntennaSection | None = key(
        "pattern of the base station's antenna, instead of antenna_gain",
        "{kind: column, azimuth: 30 deg}",
        None,
        f"{OURS}: none; antenna_gain is the same in every direction",
    )
    walls: WallsSection = key(
        "who is behind walls", "{indoor: 0.8}", WallsSection(indoor=0.0), PER_SECTION
    )

    @model_validator(mode="after")
    def _has_walls(self) -> Tr38901PathLoss:
        if self.antenna is not None and self.antenna_gain_db:
            problem = "stands beside antenna, whose pattern gives the gain; remove one of the two"
            raise ValueRefusedError(problem, keys=["antenna_gain"])
        if self.model == "rma" and self.walls.heights == "floors":
            problem = ", whose houses are not 4 to 8 floors high; remove walls.heights"
            raise refuse(self.model, problem, "model")
        if self.model == "rma" and self.walls.high_loss not in (0.0, HIGH_LOSS):
            problem = ", whose buildings have low-loss walls only; remove walls.high_loss"
            raise refuse(self.model, problem, "model")
        if self.model == "inh" and "walls" in self.model_fields_set and self.walls.indoor > 0.0:
            problem = ", which reads no walls; remove them, or write another model"
            raise refuse(self.model, problem, "model")
        return self


PathLoss = ConstantPathLoss | LogDistancePathLoss | Tr38901PathLoss | CodePathLoss | TracePathLoss


class ChannelSection(Section):
    path_loss: Annotated[PathLoss, Field(discriminator="model")] = key(
        "large-scale loss between device and base station", "{model: constant, loss: 100 dB}"
    )
    shadowing_db: Annotated[
        float | str, QuantityOrTable("dB", above=False, none=True, absent=0.0)
    ] = key(
        "standard deviation of log-normal shadowing, drawn once per device and site; with "
        "path_loss models of 3GPP TR 38.901 by position, and by default table, that of Table "
        "7.4.1-1",
        "8 dB",
        0.0,
        "Liu, eq. (9): the gain is given",
    )
    inter_site: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "correlation of the shadowing of a device towards different sites of network.layout, by "
        "a field that all share: S = sqrt(c) S_common + sqrt(1 - c) S_site",
        0.5,
        0.0,
        "3GPP TR 38.901, clause 7.5, step 4; older studies (TR 36.942) have 0.5",
        written=False,
    )
    refresh_s: Annotated[float | None, Quantity("s", 1e-3, above=False)] = key(
        "how often path loss, shadowing and K factor of devices that move are taken anew",
        "100 ms",
        None,
        f"{OURS}: when the fastest may have gone a tenth of the shadowing's decorrelation "
        "distance, or 1 m with log-distance and code",
    )
    fading: Annotated[
        FadingSection, WordOrSection("none", "kind", "{kind: rayleigh, coherence: 5 ms}")
    ] = key(
        "none, or small-scale fading",
        "none",
        FadingSection(kind="none"),
        "Liu, eq. (9): constant within a round",
    )

    @model_validator(mode="before")
    @classmethod
    def _shadowing_of_the_model(cls, given: Any) -> Any:
        """A model of TR 38.901 has a table of its own."""
        loss = given.get("path_loss") if isinstance(given, dict) else None
        if isinstance(loss, dict) and loss.get("model") in TR38901 and "shadowing" not in given:
            return {**given, "shadowing": TABLE}
        return given

    @model_validator(mode="after")
    def _table_of_a_model(self) -> ChannelSection:
        if self.path_loss.model not in TR38901:
            needs = f"is table, which path_loss model {self.path_loss.model} does not have"
            fading = (("k", self.fading.k_db), ("delay_spread", self.fading.delay_spread_s))
            for name, value in (("shadowing", self.shadowing_db), *fading):
                if value == TABLE:
                    path = (name,) if name == "shadowing" else ("fading", name)
                    unit = "s" if name == "delay_spread" else "dB"
                    raise ValueRefusedError(f"{needs}; write a value in {unit}", keys=path)
        return self
