"""The small scenarios among the runs whose bytes are kept, as text."""

from __future__ import annotations

EIGHT = """
name: eight
rounds: 2
network:
  bandwidth: 4 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: 95 dB}, fading: {kind: rayleigh, coherence: 9 ms}}
devices:
  - count: 6
    tx_power: 23 dBm
    cpu: {frequency: 2 GHz, flops_per_cycle: 4}
    capability: {choice: [1, 0.5]}
    capability_drawn: round
    model_budget: [1, 1, 0.25, 0.25, 0.0625, 0.0625]
  - {count: 2, tx_power: 23 dBm, cpu: {frequency: 10 MHz, flops_per_cycle: 1}}
budget: {latency_threshold: 60 ms}
allocation: {solver: equal}
learning:
  dataset: digits
  partition: {kind: labels, labels_per_device: 3}
  samples_per_device: 40
  model: digits-cnn
  batch_size: 10
  method: {name: fedavg}
"""
FOUR = """
name: four
rounds: 3
network:
  bandwidth: 20 MHz
  noise: -110 dBm
  channel: {path_loss: {model: constant, loss: [90 dB, 97 dB, 104 dB, 110 dB]}}
devices:
  - count: 4
    tx_power: 28 dBm
    cpu: {frequency: [1 GHz, 2 GHz, 3 GHz, 1.5 GHz], cycles_per_weight: 40}
budget: {latency_threshold: 700 ms}
learning: {dataset: none, model: liu-cnn, batch_size: 128, method: {name: fedavg}}
"""
CROWD = """
name: crowd
rounds: 3
network:
  bandwidth: 400 MHz
  noise: -110 dBm
  channel:
    path_loss: {model: log-distance, reference_loss: 40 dB, exponent: 2.6}
    shadowing: 4 dB
devices:
  - count: 160
    tx_power: {uniform: [20 dBm, 28 dBm]}
    distance: {uniform: [20 m, 200 m]}
    cpu: {frequency: {trace: clocks.csv}, cycles_per_weight: 40, capacitance: 2.0e-28}
    availability: 0.8
    idle_power: 100 mW
  - count: 80
    tx_power: 28 dBm
    distance: {choice: [30 m, 60 m, 120 m]}
    cpu: {frequency: {uniform: [0.5 GHz, 2 GHz]}, cycles_per_weight: 20}
    capability: {choice: [1, 0.5]}
    capability_drawn: round
budget: {latency_threshold: 400 ms}
learning: {dataset: none, model: liu-cnn, batch_size: 32, method: {name: liu}}
"""
SECTORS = """
name: sectors
rounds: 3
network:
  carrier: {frequency: 3.5 GHz, bandwidth: 20 MHz}
  noise: -169 dBm/Hz
  layout: {kind: hex, rings: 0}
  channel: {path_loss: {model: uma, antenna: {kind: column}}}
  interference: resolved
devices:
  - {count: 9, tx_power: 23 dBm, cpu: {frequency: {uniform: [1 GHz, 3 GHz]}, cycles_per_weight: 5}}
budget: {latency_threshold: 150 ms}
allocation: {interference: measured}
learning: {dataset: none, model: liu-cnn, batch_size: 20, method: {name: liu}}
"""
TEXTS = {"eight": EIGHT, "four": FOUR, "crowd": CROWD, "sectors": SECTORS}
PROCESSORS = "".join(f"{1 + (7 * i % 20) / 10} GHz\n" for i in range(160))  # clocks.csv of CROWD
