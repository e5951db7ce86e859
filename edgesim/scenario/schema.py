"""The keys of a scenario: one class per section, each key with its meaning, unit and default.

The larger sections have files of their own: network_schema.py, and in folders of their names
allocation, clock, learning, devices (hardware) and tiers (hierarchy). Checks between sections are
in checks.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import model_validator

from edgesim.scenario.allocation.allocation_schema import AllocationSection
from edgesim.scenario.clock.clock_schema import ClockSection
from edgesim.scenario.fields import (
    LABEL,
    NAME,
    AnyMapping,
    Boolean,
    NumberList,
    Quantity,
    RoundsOrTime,
    Sentence,
    WholeNumber,
    Word,
    WordMapping,
)
from edgesim.scenario.hardware.device_schema import DeviceClass
from edgesim.scenario.hierarchy.tiers_schema import TiersSection
from edgesim.scenario.learning.learning_schema import LearningSection
from edgesim.scenario.network_schema import NetworkSection
from edgesim.scenario.radio.fidelity import with_rung
from edgesim.scenario.section import OURS, PER_SECTION, Section, ValueRefusedError, key


class BudgetSection(Section):
    latency_threshold_s: Annotated[float | None, Quantity("s", none=True)] = key(
        "longest a round should take, T_th; none: no limit",
        "25 ms",
        None,
        f"{OURS}: no limit unless one is given",
    )


class AccountingSection(Section):
    bits_per_weight: Annotated[int, WholeNumber(1, 1024)] = key(
        "bits that a sent weight takes, q_hat", 32, 32, "Liu et al., Section V"
    )
    mask_overhead: Annotated[str, Word(("none", "bitmap", "entropy"))] = key(
        "what sending the mask costs: nothing, N_u bit, or N_u H2(rho) bit",
        "bitmap",
        "none",
        "Liu, eq. (25)",
    )
    sparse_efficiency: Annotated[float, Quantity(high=1.0, above=False)] = key(
        "share of the pruned weights' computation that is really saved", 0.5, 1.0, "Liu, eq. (24)"
    )
    backward: Annotated[str, Word(("counted", "twice"))] = key(
        "FLOPs of a backward pass: counted layer by layer; or twice the forward pass "
        "(FedLPS code; SpaFL, eq. (50))",
        "twice",
        "counted",
        f"{OURS}: torch's own counter agrees",
    )
    count_biases: Annotated[bool, Boolean()] = key(
        "true: a bias costs 1 FLOP per output, as in the FedLPS reference code; false: nothing",
        "true",
        False,
        f"{OURS}: torch's own counter agrees",
    )


class EvaluationSection(Section):
    every: Annotated[int | float, RoundsOrTime()] = key(
        "rounds between two evaluations; or a simulated time: after the round in which it, or a "
        "multiple of it, has passed",
        5,
        1,
        f"{OURS}: every round",
    )
    targets: Annotated[tuple[float, ...], NumberList("accuracies")] = key(
        "accuracies whose time, bits and joules are reported", [0.8, 0.9], (0.8, 0.9), OURS
    )


class StopSection(Section):
    time_s: Annotated[float | None, Quantity("s")] = key(
        "the run ends with the round in which this simulated time has passed",
        "1 h",
        None,
        "not set: by rounds",
    )
    jobs: Annotated[int | None, WholeNumber(1, 10**12)] = key(
        "the run ends with the round in which the jobs that were handed out reach this number",
        100_000,
        None,
        "not set: by rounds",
    )


class ServerSection(Section):
    up_s: Annotated[float, Quantity("s")] = key(
        "mean time from a return of the server to its next failure, exponential", "1 h"
    )
    repair_s: Annotated[float, Quantity("s")] = key(
        "time from a failure until the server is back", "30 s"
    )
    save_every: Annotated[int, WholeNumber()] = key(
        "rounds, or versions, between two states that the server stores: with the last one it "
        "goes on after a failure",
        10,
        1,
        f"{OURS}: every one",
    )


LIU_SCHEMES = ("proposed", "equal-resource", "pruning-only", "personalization-only")


class ReportSection(Section):
    beside: Annotated[str | None, Word(("liu",))] = key(
        "whose results edgesim report tests these against; liu: Liu et al., Table I and Fig. 5",
        "liu",
        None,
        f"{OURS}: nobody's",
    )
    schemes: Annotated[dict[str, str] | None, WordMapping(LIU_SCHEMES)] = key(
        "label of a scheme -> which one of the paper's it is; others are not compared",
        "{joint: proposed, equal bandwidth: equal-resource}",
        None,
        f"{OURS}: none",
    )
    untuned: Annotated[str | None, Sentence()] = key(
        "why the schemes are not compared in accuracy; a report shows the sentence and marks none "
        "as the best",
        "The step sizes are the paper's.",
        None,
        f"{OURS}: the schemes are tuned",
    )

    @model_validator(mode="after")
    def _schemes_of_a_paper(self) -> ReportSection:
        if (self.beside is None) != (self.schemes is None):
            lacks = "beside: liu" if self.beside is None else "schemes: {joint: proposed}"
            raise ValueRefusedError(f" needs {lacks} too")
        return self


class ScenarioKeys(Section):
    """A whole scenario file."""

    base: Annotated[str | None, Word(looks="the path of a scenario file")] = key(
        "another scenario file, which this one changes: a key here wins, schemes and sweeps join; "
        "relative to this file",
        "../demo.yaml",
        None,
        "not set: the file stands alone",
    )

    name: Annotated[str, NAME] = key(
        "name of the scenario; runs are kept under it", "liu-20mhz-per-device"
    )
    rounds: Annotated[int, WholeNumber()] = key("number of global rounds G", 100)
    seed: Annotated[int, WholeNumber(0, 2**63 - 1)] = key(
        "seed of every random stream; --seed wins over it", 1, 0, f"{OURS}: any number does"
    )
    network: NetworkSection = key("the radio cell", "{bandwidth: 20 MHz, noise: -110 dBm, ...}")
    devices: tuple[DeviceClass, ...] = key("a list of device classes", "[{count: 10, ...}]")
    budget: BudgetSection = key(
        "what a round may take", "{latency_threshold: 25 ms}", BudgetSection(), PER_SECTION
    )
    allocation: AllocationSection = key(
        "who gets which band", "{solver: kkt}", AllocationSection(), PER_SECTION
    )
    learning: LearningSection = key("data, model, method", "{dataset: digits, ...}")
    accounting: AccountingSection = key(
        "what is charged", "{bits_per_weight: 32}", AccountingSection(), PER_SECTION
    )
    clock: ClockSection = key(
        "when a round ends", "{mode: synchronous}", ClockSection(), PER_SECTION
    )
    tiers: TiersSection | None = key(
        "edge servers between the devices and a cloud, each with a cell of its own; a round is "
        "then an exchange of the edges with the cloud",
        "{edges: [{position: [-200 m, 0 m]}, {position: [200 m, 0 m]}], local_rounds: 5}",
        None,
        f"{OURS}: one server",
    )
    evaluate: EvaluationSection = key(
        "when accuracy is measured", "{every: 1}", EvaluationSection(), PER_SECTION
    )
    server: ServerSection | None = key(
        "failures of the server: jobs at work and updates that wait are lost, and versions since "
        "the last stored state are void",
        "{up: 1 h, repair: 30 s, save_every: 10}",
        None,
        f"{OURS}: it never fails",
        written=False,
    )
    stop: StopSection | None = key(
        "ends the run before the last of its rounds",
        "{time: 1 h}",
        None,
        f"{OURS}: all rounds are played",
        written=False,
    )
    schemes: Annotated[dict[str, Any], AnyMapping()] = key(
        "label -> keys to change: one file compares several methods",
        "{all: {}, half: {rounds: 50}}",
        {},
        f"{OURS}: one scheme, the file itself",
    )
    sweep: Annotated[dict[str, Any], AnyMapping()] = key(
        "key -> values: what edgesim sweep varies, and seeds; in a scheme: what is varied for this "
        "scheme alone; edgesim run runs the file without it",
        "{budget.latency_threshold: [15 ms, 20 ms], "
        "network.bandwidth: 'log(1 MHz, 1 GHz, 4)', seeds: 0-4}",
        {},
        f"{OURS}: nothing is varied",
    )
    report: ReportSection | None = key(
        "the paper that a report compares the schemes with, and whether it may rank them; changes "
        "no result",
        "{beside: liu, schemes: {joint: proposed}}",
        None,
        f"{OURS}: none",
    )
    scheme: Annotated[str | None, LABEL] = key(
        "label of the scheme; written into a run's folder", "joint", None, f"{OURS}: no label"
    )
    scheme_position: Annotated[int | None, WholeNumber(0)] = key(
        "place of the scheme among those of its file, from 0, which reports keep; written into a "
        "run's folder",
        "0",
        None,
        f"{OURS}: by label",
    )
    provenance: Annotated[dict[str, Any] | None, AnyMapping()] = key(
        "versions and git state; written into a run's folder, not read",
        "{}",
        None,
        f"{OURS}: not read",
    )

    @model_validator(mode="before")
    @classmethod
    def _rung_of_the_ladder(cls, given: Any) -> Any:
        return with_rung(given)
