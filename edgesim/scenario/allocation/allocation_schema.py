"""The section allocation of a scenario: who gets which band, and what is planned with."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from edgesim.scenario.cells.interference_schema import PLANNED
from edgesim.scenario.fields import NumberList, Quantity, WholeNumber, Word
from edgesim.scenario.section import OURS, Section, key, refuse


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
        "fading; the one that a device gets with probability reliability in the time that it has; "
        "without fading all three are the same",
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
