"""The files that ``edgesim init`` writes: a commented scenario, a method and an allocator."""

SCENARIO = """\
# A scenario to start from: your method and your allocator beside FedAvg
#
# Quantities carry their unit. `edgesim explain KEY` says more of a key, `edgesim list methods` what
# can be named (also solvers, datasets, models, channels, selection).
#   edgesim check scenario.yaml --allow-code    what each device can reach, and what binds it
#   edgesim run scenario.yaml --allow-code      all schemes; the same command resumes
#   edgesim report runs/my-scenario             one page, figures and tables
name: my-scenario                 # runs are kept under runs/my-scenario
rounds: 20                        # global rounds
seed: 0                           # of every random stream; or several: edgesim run ... --seeds 0-4

network:
  bandwidth: 2 MHz                # the band that all devices share
  noise: -174 dBm/Hz              # a density over the band in use; or a power, such as -110 dBm
  uplink: {share: fixed}          # reclaim: freed band goes to those still sending
  downlink: ideal                 # or {mode: broadcast, tx_power: 46 dBm}
  channel:                        # or ./radio.py:function, or {trace: rates.csv}
    path_loss: {model: log-distance, reference_loss: 38.5 dB, exponent: 3.5}  # at 1 m; or constant
    shadowing: 8 dB               # standard deviation, drawn once per device; none: 0 dB
    fading: none                  # or {kind: rayleigh, coherence: 5 ms}

devices:                          # classes; a value is a number, a list or {uniform: [low, high]}
  - count: 10
    distance: {uniform: [50 m, 300 m]}   # to the base station
    tx_power: 23 dBm
    cpu:
      frequency: {uniform: [0.5 GHz, 2 GHz]}
      cycles_per_weight: 100      # per weight and SGD step; or flops_per_cycle
    availability: 1               # probability of being there when a round starts

budget:
  latency_threshold: 120 ms       # longest time that a round should take; none: no limit
clock:
  mode: synchronous               # wait for everybody; deadline: a round ends at the threshold

allocation:
  solver: ./allocator.py:by_time_alone   # yours; or kkt, fair, latency, energy, equal, ...
  when_infeasible: stretch        # plan for the least threshold that can be met; or stop

learning:
  dataset: digits                 # or ./mine.npz, ./mine.py:load
  partition: {kind: dirichlet, alpha: 0.5}   # who holds what; or {kind: iid}
  model: mlp                      # or ./net.py:Net, a torch.nn.Module
  batch_size: 20                  # samples per SGD step
  selection: uniform              # who takes part; or best-channel, ./choose.py:function
  method:
    name: ./method.py:MyMethod    # yours; its parameters follow, as in the file
    local_steps: 5
    lr: 0.1
    decay: 0.99

accounting:
  bits_per_weight: 32             # what a sent weight costs
evaluate:
  every: 1                        # rounds between two evaluations
  targets: [0.8, 0.9]             # accuracies whose time, bits and joules are reported
report:                           # remove it once edgesim sweep --select best-validation tuned them
  untuned: The step sizes are a first guess; nothing is tuned.   # so a report ranks no accuracies

schemes:                          # what is compared: the keys that a scheme changes
  mine: {}
  fedavg:
    allocation: {solver: equal}
    learning: {method: {name: fedavg, local_steps: 5, lr: 0.1}}

# sweep:                          # what edgesim sweep varies
#   network.bandwidth: [1 MHz, 2 MHz, 4 MHz]
#   seeds: 0-4
"""

METHOD = '''\
"""A method to start from: docs/guide/method.md says which hooks there are."""

from dataclasses import dataclass, replace

from fl.method_base.method import param
from fl.methods.fedavg import FedAvg


@dataclass(frozen=True, eq=False)
class MyMethod(FedAvg):
    """FedAvg whose output layer stays on its device, with a step size that decays."""

    source = "ours"
    decay: float = param(1.0, "factor of the step size from round to round", source="ours", gt=0)

    def personal(self):
        """Weights that never leave their device, bool [P]; they cost no bits."""
        return self.task.layout.role("classifier")

    def local_update(self, state, k, w, grant):
        """How device k trains from its model w [P] in round state.g."""
        phases = super().local_update(state, k, w, grant)
        return tuple(replace(phase, lr=phase.lr * self.decay**state.g) for phase in phases)
'''

ALLOCATOR = '''\
"""An allocator to start from: docs/guide/allocator.md says what a problem holds."""

import numpy as np


def by_time_alone(problem):
    """Band shares in proportion to the time of each upload alone on the band.

    Args:
        problem: solvers.PruningProblem with arrays [K] over the devices of the round.

    Returns:
        Shares of the band, which sum to at most 1, and pruned shares of the weights, both [K].
    """
    alone_s = (problem.bits + problem.bits_fixed) / problem.rate_bps
    share = alone_s / alone_s.sum()
    return share, np.clip(problem.rho_at(share), problem.rho_min, problem.rho_max)
'''

FILES = {"scenario.yaml": SCENARIO, "method.py": METHOD, "allocator.py": ALLOCATOR}
