"""The key presence of a device class: when its devices are there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from edgesim.presence.day_cycle import DayCycle
from edgesim.scenario.fields import NAME, Quantity, Word
from edgesim.scenario.per_device_values import Draw, constant, per_device
from edgesim.scenario.section import OURS, Section, key, refuse
from edgesim.scenario.units import format_quantity

IS_DEFAULT = ", which is the default; remove presence, write none, or give it an outage"


class OutageSection(Section):
    group: Annotated[str, NAME] = key(
        "name of the group that is away together; classes may share one", "north"
    )
    up_s: Annotated[float, Quantity("s")] = key("mean time between two outages", "1 h")
    down_s: Annotated[float, Quantity("s")] = key("mean length of an outage", "5 min")


class PresenceSection(Section):
    outage: OutageSection | None = key(
        "devices of a group, such as those of one feeder, are away together for exponential times, "
        "whatever else keeps them there",
        "{group: north, up: 1 h, down: 5 min}",
        None,
        f"{OURS}: devices come and go by themselves",
    )


class AlwaysPresence(PresenceSection):
    kind: Literal["always"] = key("always: there, but for outages of the group", "always")

    @model_validator(mode="after")
    def _has_outages(self) -> AlwaysPresence:
        if self.outage is None:
            raise refuse(self.kind, IS_DEFAULT, "kind")
        return self


class OnOffPresence(PresenceSection):
    kind: Literal["onoff"] = key(
        "onoff: sessions and absences of random length, each device by itself", "onoff"
    )
    on_s: Annotated[Draw, per_device("s")] = key("mean length of a session", "300 s")
    off_s: Annotated[Draw, per_device("s")] = key("mean length of an absence", "100 s")
    law: Annotated[str, Word(("exponential", "weibull", "lognormal"))] = key(
        "law of the lengths; exponential: a Markov chain",
        "weibull",
        "exponential",
        f"{OURS}: the law without memory",
    )
    shape: Annotated[float, Quantity(low=0.05, above=False, high=20.0)] = key(
        "k of weibull, or sigma, the deviation of the logarithm, of lognormal",
        0.7,
        1.0,
        f"{OURS}: with weibull the exponential law",
        written=False,
    )

    @model_validator(mode="after")
    def _reads_its_shape(self) -> OnOffPresence:
        if self.shape != 1.0 and self.law == "exponential":
            problem = ", which reads no shape; remove it or write law: weibull"
            raise refuse(self.law, problem, "law")
        if self.law == "lognormal" and self.shape > 5.0:
            raise refuse(self.shape, "; allowed with lognormal is at most 5", "shape")
        return self


class DiurnalPresence(PresenceSection):
    kind: Literal["diurnal"] = key(
        "diurnal: there with probability mean + amplitude sin(2 pi (t - phase) / period)",
        "diurnal",
    )
    mean: Annotated[float, Quantity(high=1.0)] = key("share of devices there, over the day", 0.5)
    amplitude: Annotated[float, Quantity(above=False, high=0.5)] = key(
        "how much more are there at the best hour, and less at the worst", 0.3
    )
    phase_s: Annotated[Draw, per_device("s", above=False)] = key(
        "when in the day the mean is passed on the way up; a choice makes time zones",
        "{choice: [0 h, 8 h]}",
        constant(0.0),
        f"{OURS}: one time zone",
    )
    session_s: Annotated[float, Quantity("s")] = key("mean length of a session", "10 min")
    period_s: Annotated[float, Quantity("s")] = key(
        "length of the day", "24 h", 86400.0, f"{OURS}: a day"
    )

    @model_validator(mode="after")
    def _is_a_share(self) -> DiurnalPresence:
        if not self.mean - self.amplitude > 0.0 or not self.mean + self.amplitude < 1.0:
            problem = f" beside mean {self.mean:g}; mean - amplitude to mean + amplitude must lie "
            raise refuse(self.amplitude, f"{problem}between 0 and 1", "amplitude")
        if self.session_s > (longest_s := self.cycle.longest_session_s):
            problem = "; with this mean and amplitude more leave in the evening than sessions of "
            problem += f"that length let go; allowed is at most {longest_s:.4g} s"
            raise refuse(format_quantity(self.session_s, "s"), problem, "session")
        return self

    @property
    def cycle(self) -> DayCycle:
        """The law of the day."""
        return DayCycle(self.mean, self.amplitude, self.period_s, self.session_s)


class BlockPresence(PresenceSection):
    kind: Literal["blocks"] = key(
        "blocks: in every block of time a group draws p by Beta(a, b), and each device is there "
        "with probability p; two are correlated by 1 / (a + b + 1)",
        "blocks",
    )
    group: Annotated[str, NAME] = key("name of the group; classes may share one", "north")
    a: Annotated[float, Quantity(low=0.01, above=False, high=100.0)] = key(
        "first parameter of the beta law", 1
    )
    b: Annotated[float, Quantity(low=0.01, above=False, high=100.0)] = key(
        "second parameter of the beta law", 1
    )
    block_s: Annotated[float, Quantity("s")] = key("length of a block", "60 s")


class TracePresence(PresenceSection):
    kind: Literal["trace"] = key("trace: intervals that were measured", "trace")
    file: Annotated[str, Word(looks="the path of a CSV file")] = key(
        "CSV with the columns device (from 0 on, within the class), start_s and end_s: there from "
        "start_s until before end_s",
        "presence.csv",
    )
    period_s: Annotated[float | None, Quantity("s", none=True)] = key(
        "after which the trace starts again; none: whoever is away at its end stays away",
        "24 h",
        None,
        f"{OURS}: of a trace nothing is repeated",
    )


AnyPresence = Annotated[
    AlwaysPresence | OnOffPresence | DiurnalPresence | BlockPresence | TracePresence,
    Field(discriminator="kind"),
]
