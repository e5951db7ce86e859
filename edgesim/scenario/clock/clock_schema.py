"""The section clock of a scenario: when devices start, and when a version of the model is made."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.fields import Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, PER_SECTION, Section, key, refuse, yaml_key

DAMPED = ("buffered", "asynchronous", "window", "tt-fed")  # modes with stale updates
OVERLAPPING = (*DAMPED, "speed-tiers")  # modes in which devices go on meanwhile
READ_BY = {  # field -> the modes that read it
    "in_flight": DAMPED,
    "buffer": ("buffered",),
    "slot": ("buffered",),
    "staleness": DAMPED,
    "direction": DAMPED,
    "server_lr": ("buffered", "window", "tt-fed"),
    "mixing": ("asynchronous",),
    "max_staleness": DAMPED,
    "window_s": ("window", "tt-fed"),
    "speed_tiers": ("speed-tiers",),
    "over_commit": ("overcommit",),
    "partial": ("deadline",),
}
FEDBUFF, FEDASYNC = "Nguyen et al., AISTATS 2022", "Xie et al., arXiv 1903.03934"


class StalenessSection(Section):
    weight: Annotated[str, Word(("constant", "polynomial", "hinge"))] = key(
        "s(tau), what is left of an update that is tau versions old: 1; (1 + tau)^-exponent; 1 up "
        "to tau = start, then 1 / (slope (tau - start) + 1)",
        "hinge",
        "polynomial",
        FEDBUFF,
        written=False,
    )
    exponent: Annotated[float, Quantity(high=10.0, above=False)] = key(
        "a of the weight polynomial", 0.5, 0.5, f"{FEDBUFF}; {FEDASYNC}", written=False
    )
    slope: Annotated[float, Quantity(above=False)] = key(
        "a of the weight hinge", 10, 10.0, FEDASYNC, written=False
    )
    start: Annotated[int, WholeNumber(0)] = key(
        "b of the weight hinge: largest age that is not damped, versions",
        4,
        4,
        FEDASYNC,
        written=False,
    )

    @model_validator(mode="after")
    def _reads_its_parameters(self) -> StalenessSection:
        for name, weight in (("exponent", "polynomial"), ("slope", "hinge"), ("start", "hinge")):
            if name in self.model_fields_set and self.weight != weight:
                problem = f", which reads no {name}; remove it or write weight: {weight}"
                raise refuse(self.weight, problem, "weight")
        return self


class ClockSection(Section):
    mode: Annotated[
        str,
        Word(("synchronous", "deadline", "overcommit", *OVERLAPPING)),
    ] = key(
        "synchronous: wait for everyone; deadline: the round ends at the threshold; overcommit: "
        "more are asked than needed, and the last ones are interrupted; buffered: a version of the "
        "model is made of every so many arrivals, while others go on; asynchronous: of every "
        "arrival; window: every so many seconds; tt-fed: the same, and a device starts with every "
        "m-th version, if it needs m windows; speed-tiers: tiers of equally fast devices have "
        "rounds of their own",
        "deadline",
        "synchronous",
        "Liu, eq. (29)",
    )
    in_flight: Annotated[int | None, WholeNumber(1, 10**9)] = key(
        "M, devices at work at the same time, each with 1 / M of the band; read by buffered, "
        "asynchronous, window and tt-fed",
        20,
        None,
        "the method's participants, or all devices",
        written=False,
    )
    buffer: Annotated[int | None, WholeNumber(1, 10**9)] = key(
        "K, arrivals of which a version is made; at most in_flight; read by buffered",
        5,
        None,
        f"{OURS}: a tenth of in_flight, at least 1",
        written=False,
    )
    slot: Annotated[str, Word(("until_arrival", "until_used"))] = key(
        "how long a device has its place among those in flight: until its update has arrived, or "
        "until a version is made with it; read by buffered",
        "until_used",
        "until_arrival",
        FEDBUFF,
        written=False,
    )
    staleness: StalenessSection = key(
        "what is left of an update from an older version; read by buffered, asynchronous, "
        "window and tt-fed",
        "{weight: polynomial, exponent: 0.5}",
        StalenessSection(),
        PER_SECTION,
        written=False,
    )
    direction: Annotated[str | None, Word(("delta", "model"))] = key(
        "an update is its change of the version that the device downloaded (delta), or its "
        "distance from the model of now (model); read by buffered, asynchronous, window and "
        "tt-fed",
        "delta",
        None,
        f"model with asynchronous, {FEDASYNC}; else delta, {FEDBUFF}",
        written=False,
    )
    server_lr: Annotated[float, Quantity(high=1e6)] = key(
        "factor of the mean of the damped changes; read by buffered, window and tt-fed",
        0.7,
        1.0,
        f"{FEDBUFF}: tuned",
        written=False,
    )
    mixing: Annotated[float, Quantity(high=1.0)] = key(
        "alpha, weight of a fresh update beside the model; read by asynchronous",
        0.6,
        0.6,
        FEDASYNC,
        written=False,
    )
    max_staleness: Annotated[int | None, WholeNumber(0, 10**9, none=True)] = key(
        "updates that are older when they arrive, or grow older while they wait for their use, are "
        "discarded; none: none are; read by buffered, asynchronous, window and tt-fed",
        20,
        None,
        f"{OURS}: nothing is discarded",
        written=False,
    )
    window_s: Annotated[float | None, Quantity("s")] = key(
        "W, time between two versions; needed by window and tt-fed",
        "1 s",
        None,
        "not set: needed by window and tt-fed",
        written=False,
    )
    speed_tiers: Annotated[int, WholeNumber(1, 10**6)] = key(
        "M, tiers of devices with equal numbers, by the time that a job takes; read by speed-tiers",
        3,
        5,
        "Chai et al., SC 2021 (FedAT)",
        written=False,
    )
    over_commit: Annotated[float, Quantity(low=1.0, above=False, high=1e6)] = key(
        "devices asked for every one that is needed; the method's participants are needed; read "
        "by overcommit",
        1.3,
        1.3,
        "Bonawitz et al., MLSys 2019",
        written=False,
    )
    partial: Annotated[str, Word(("none", "planned", "cut"))] = key(
        "what a device does that cannot make all steps in time: none, all of them, and is late; "
        "planned, as many as the threshold leaves time for when it starts; cut, as many as it "
        "has made when its upload must begin; read by deadline",
        "planned",
        "none",
        "Liu, Algorithm 1; planned and cut: Li et al. (FedProx), MLSys 2020, Section 3.2",
        written=False,
    )

    @model_validator(mode="after")
    def _reads_its_keys(self) -> ClockSection:
        for name, modes in READ_BY.items():
            if name in self.model_fields_set and self.mode not in modes:
                allowed = " or ".join(modes)
                problem = f", which reads no {yaml_key(name)}; remove it or write mode: {allowed}"
                raise refuse(self.mode, problem, "mode")
        if self.mode in READ_BY["window_s"] and self.window_s is None:
            raise refuse(
                self.mode, ", which needs a window; write for instance window: 1 s", "mode"
            )
        most = self.in_flight
        if most is not None and self.buffer is not None and self.buffer > most:
            raise refuse(self.buffer, f"; allowed is at most in_flight ({most})", "buffer")
        return self
