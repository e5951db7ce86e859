"""Bits and joules per round."""

from pytest import approx

from reports.figures.costs import payload_and_energy
from reports.run_data.scheme_grouping import load_schemes
from reports.run_data.statistics.metrics import ENERGY
from reports.run_data.statistics.seed_intervals import seed_mean


def test_costs_per_round(drawn, two_schemes):
    bits, joules = drawn(payload_and_energy.payload_and_energy, two_schemes).axes
    assert [bar.get_width() for bar in bits.patches] == approx(
        [10, 10, 20, 20]
    )  # Mbit up, up, down, down
    assert [bar.get_width() for bar in joules.patches] == approx(
        [0.1, 0.1, 0.4, 0.4]
    )  # train, train, upload, upload


def test_seeds_with_other_numbers_of_rounds_count_alike(tmp_path, write_run):
    """Two rounds of 10 Mbit up and four of 40; joules as in the Pareto front."""
    folders = [
        write_run(
            tmp_path / str(k), seed=k, latency_s=(0.02,) * n, accuracy=(0.5,) * n, bits_up=bits
        )
        for k, (n, bits) in enumerate([(2, 10e6), (4, 40e6)])
    ]
    (scheme,) = load_schemes(folders)
    assert payload_and_energy.bits_per_round([scheme])["uplink"] == [approx(25e6)]
    second = scheme.runs[1].spans
    second["energy_j"] *= 3.0
    scheme.runs[1].rounds["energy_j"] *= 3.0
    joules = payload_and_energy.joules_per_round([scheme])
    assert sum(row[0] for row in joules.values()) == approx(seed_mean(scheme, ENERGY.of))
