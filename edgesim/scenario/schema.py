"""The keys of a scenario: one class per section, each key with its meaning, unit and default.

The sections network and devices are in network_schema.py, checks between sections in
validation.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from edgesim.scenario.cells.interference_schema import PLANNED
from edgesim.scenario.clock.clock_schema import ClockSection
from edgesim.scenario.fields import (
    LABEL,
    NAME,
    AnyMapping,
    Boolean,
    NumberList,
    Quantity,
    RoundsOrTime,
    WholeNumber,
    Word,
    WordList,
    WordMapping,
)
from edgesim.scenario.hierarchy.tiers_schema import TiersSection
from edgesim.scenario.network_schema import DeviceClass, NetworkSection
from edgesim.scenario.per_device_values import MethodReader, MethodSpec, SelectionReader
from edgesim.scenario.radio.fidelity import with_rung
from edgesim.scenario.section import OURS, PER_SECTION, Section, ValueRefusedError, key, refuse


class BudgetSection(Section):
    latency_threshold_s: Annotated[float | None, Quantity("s", none=True)] = key(
        "longest a round should take, T_th; none: no limit",
        "25 ms",
        None,
        f"{OURS}: no limit unless one is given",
    )


class AllocationSection(Section):
    solver: Annotated[str, Word(looks="the name of a solver, see edgesim list solvers")] = key(
        "how band and pruning ratios are set each round; ./file.py:name for one of your own",
        "kkt",
        "kkt",
        "Liu, eqs. (54), (58), with the bounds that (54) leaves out",
    )
    when_infeasible: Annotated[str, Word(("stretch", "stop"))] = key(
        "where the threshold cannot be met: plan for the least one that can, or stop",
        "stretch",
        "stretch",
        f"{OURS}: Liu et al. report latencies above the threshold, Table I",
    )
    resource_blocks: Annotated[int | None, WholeNumber(1, 10**9, none=True)] = key(
        "N, blocks into which the band is divided: a share is a whole number of 1 / N; read by the "
        "solvers kkt, fair and latency",
        50,
        None,
        "none: shares are real numbers, Liu, eq. (9)",
    )
    levels: Annotated[tuple[float, ...] | None, NumberList("pruning ratios", closed=True)] = key(
        "the pruning ratios rho that a device may use; read by the solver levels",
        [0, 0.25, 0.5, 0.75],
        None,
        "not set: needed with solver levels only",
    )
    alpha: Annotated[float | None, Quantity(high=1000.0, above=False, none=True)] = key(
        "fairness of the solver alpha-fair: 0 least sum of rho (kkt), 1 proportional fairness, "
        "towards infinity least largest rho (fair)",
        2,
        None,
        "none: 1 with the solver alpha-fair; Mo and Walrand, IEEE/ACM ToN 2000",
        written=False,
    )
    rate: Annotated[str, Word(("now", "mean", "quantile"))] = key(
        "the uplink rate that a round is planned with: that of the instant; the mean over the "
        "fading; the one that a device gets with probability reliability in the time that it has",
        "quantile",
        "now",
        "Liu, eq. (9): constant within a round",
        written=False,
    )
    reliability: Annotated[float, Quantity(high=1.0)] = key(
        "probability of being in time that is planned for; read with rate: quantile",
        0.99,
        0.95,
        f"{OURS}: the 5 % quantile, as for cell-edge users",
        written=False,
    )
    reliability_for: Annotated[str, Word(("device", "round"))] = key(
        "device: of each device by itself; round: of all devices of a round together",
        "round",
        "device",
        f"{OURS}: each device by itself",
        written=False,
    )

    interference: Annotated[str, Word(PLANNED)] = key(
        "what plans of a network count with: full, everybody sends all the time, so that nobody is "
        "later than planned; load, everybody sends for the part of the threshold that it needs; "
        "measured, what each sector has met in the last round, at first as full",
        "load",
        "full",
        f"{OURS}: safe",
        written=False,
    )

    @model_validator(mode="after")
    def _reads_its_reliability(self) -> AllocationSection:
        if not self.reliability < 1.0:
            problem = "; allowed is more than 0 and less than 1"
            raise refuse(self.reliability, problem, "reliability")
        for name in ("reliability", "reliability_for"):
            if self.rate != "quantile" and name in self.model_fields_set:
                problem = f", which reads no {name}; remove it or write rate: quantile"
                raise refuse(self.rate, problem, "rate")
        return self


class IidPartition(Section):
    kind: Literal["iid"] = key("iid: every device draws from all labels alike", "iid")


class LabelPartition(Section):
    kind: Literal["labels"] = key("labels: every device holds few labels", "labels")
    labels_per_device: Annotated[int, WholeNumber(1, 1000)] = key("labels on each device", 2)


class DirichletPartition(Section):
    kind: Literal["dirichlet"] = key(
        "dirichlet: label shares drawn from a Dirichlet distribution", "dirichlet"
    )
    alpha: Annotated[float, Quantity()] = key(
        "concentration; small means few labels per device", 0.3
    )
    min_samples: Annotated[int | None, WholeNumber(1, 10**9, none=True)] = key(
        "training samples that every device has at least: shares are drawn anew until they do; "
        "none: at least one",
        10,
        None,
        f"{OURS}: the first draw is taken",
    )


class SpeakerPartition(Section):
    kind: Literal["speakers"] = key(
        "speakers: every device holds the lines of one speaker; only for text with speakers",
        "speakers",
    )


class NaturalPartition(Section):
    kind: Literal["natural"] = key(
        "natural: every device holds the samples of one client; only for data with clients",
        "natural",
    )


class FilePartition(Section):
    kind: Literal["file"] = key("file: a file says which device holds which sample", "file")
    file: Annotated[str, Word(looks="the path of a .csv or .npz file")] = key(
        "CSV with the columns sample, device (from 0 on) and, if wanted, part (train or test); or "
        ".npz with the arrays train and, if wanted, test: the device of each sample, -1 for none",
        "split.csv",
    )


Partition = (
    IidPartition
    | LabelPartition
    | DirichletPartition
    | SpeakerPartition
    | NaturalPartition
    | FilePartition
)


class LearningSection(Section):
    dataset: Annotated[str, Word(looks="the name of a data set, see edgesim list datasets")] = key(
        "the data; ./mine.npz, a folder of .npy files or ./file.py:function for data of your own; "
        "none: nothing is trained, only time, bits and joules are counted, "
        "for the model on the data that it was made for (liu-cnn: 28x28x1, 10 classes)",
        "digits",
    )
    partition: Annotated[Partition, Field(discriminator="kind")] | None = key(
        "who holds what",
        "{kind: labels, labels_per_device: 2}",
        None,
        "not set: needed with every data set",
    )
    samples_per_device: Annotated[int | None, WholeNumber(1, 10**9, none=True)] = key(
        "training samples of each device; none: the data is dealt out completely; "
        "with dataset none, one batch",
        500,
        None,
        f"{OURS}: all data is used",
    )
    validation: Annotated[float | None, Quantity(high=0.5)] = key(
        "share of each device's training samples that is held out, with its mix of labels: used "
        "for nothing but the measures validation_accuracy and validation_loss, by which edgesim "
        "sweep --select chooses",
        0.2,
        None,
        "not set: all training samples are trained on",
    )
    inputs: Annotated[str, Word(("unit", "standard", "bytes"))] = key(
        "scale of the pixels: unit: [0, 1]; standard: less the mean of each channel of the "
        "training pictures, over its deviation; bytes: [0, 255]",
        "standard",
        "unit",
        f"{OURS}; FedLPS's program standardises, SpaFL's trains on bytes",
        written=False,
    )
    model: Annotated[str, Word(looks="the name of a model, see edgesim list models")] = key(
        "the network; ./file.py:name for a torch.nn.Module of your own", "mlp"
    )
    classifier: Annotated[tuple[str, ...] | None, WordList("modules or parameters")] = key(
        "of a model of your own: names of the modules or parameters whose role is classifier, "
        "all others are features",
        ["fc1", "fc2"],
        None,
        f"{OURS}: the last module with weights that a forward pass calls",
    )
    loss: Annotated[str | None, Word(looks="the name of a loss, or ./file.py:function")] = key(
        "what is minimised: cross-entropy, squared-error, absolute-error, or a function of yours "
        "(outputs, y) -> loss of each sample",
        "squared-error",
        None,
        "cross-entropy for labels, squared-error for real targets",
    )
    metric: Annotated[str | None, Word(looks="the name of a loss, or ./file.py:function")] = key(
        "what is measured beside loss and accuracy, a column of the table rounds: one of the "
        "losses, or a function of yours (outputs, y) -> value of each sample",
        "absolute-error",
        None,
        f"{OURS}: nothing else",
    )
    batch_size: Annotated[int, WholeNumber(1, 10**6)] = key("samples per SGD step", 128)
    method: Annotated[MethodSpec, MethodReader()] = key(
        "the algorithm and its parameters", "{name: fedavg}"
    )
    selection: Annotated[MethodSpec, SelectionReader()] = key(
        "which of the idle devices take part, as many as the method's participants, with the "
        "rule's parameters; ./file.py:function for a rule of your own; oort and refl have their "
        "own",
        "best-channel",
        MethodSpec("uniform"),
        "McMahan et al., AISTATS 2017, Algorithm 1",
        written=False,
    )
    executor: Annotated[str, Word(("auto", "resident", "pool", "batched", "dask"))] = key(
        "how waiting jobs are trained: one by one, on several threads, stacked, by workers of a "
        "dask cluster (docs/use/cluster.md); auto: by docs/performance.md",
        "pool",
        "auto",
        f"{OURS}: a rule written from benchmarks",
    )
    device: Annotated[str, Word(looks="a torch device such as cpu or cuda:0")] = key(
        "where training runs", "cpu", "cpu", f"{OURS}: runs everywhere, byte-identical"
    )

    @field_validator("partition", mode="before")
    @classmethod
    def _none(cls, given: object) -> object:
        return None if given == "none" else given


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
    untuned: Annotated[str | None, Word(looks="a sentence")] = key(
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
