"""Bits and joules per round."""

from pytest import approx

from reports.figures import payload_and_energy


def test_costs_per_round(drawn, two_schemes):
    bits, joules = drawn(payload_and_energy.payload_and_energy, two_schemes).axes
    assert [bar.get_width() for bar in bits.patches] == approx(
        [10, 10, 20, 20]
    )  # Mbit up, up, down, down
    assert [bar.get_width() for bar in joules.patches] == approx(
        [0.1, 0.1, 0.4, 0.4]
    )  # train, train, upload, upload
