"""Places of shares among resource blocks: by hand, and through all that moves them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.network.interference.couplings import Couplings
from edgesim.network.interference.resource_grid import ResourceGrid
from edgesim.network.interference.sector_bands import SectorBands
from edgesim.seeds import Seeds
from fl.contracts import Grant


def grid_of(serving, shares, blocks, reclaim=False, seed=0):
    """(bands with these grants of which all send, their grid)."""
    sectors = max(serving) + 1
    bands = SectorBands(Couplings(np.ones((len(serving), sectors)), serving), reclaim)
    bands.grant([Grant(k, share, 0.0, 1e9, 0.2) for k, share in enumerate(shares)])
    bands.sending[:] = True
    return bands, ResourceGrid(bands, blocks, Seeds(seed))


def held(grid, share):
    """(device, block, width) of all pieces."""
    pieces = grid.pieces(share)
    columns = pieces.device.tolist(), pieces.block.tolist(), pieces.width.tolist()
    return list(zip(*columns, strict=True))


def test_shares_by_hand():
    """Four blocks from block 3 on: 1.5, 1 and 0.5 of them; who does not send leaves a gap."""
    bands, grid = grid_of([0, 0, 0], [0.375, 0.25, 0.125], 4)
    grid.offset[:] = 3.0
    whole = [(0, 0, 0.5), (1, 0, 0.5), (1, 1, 0.5), (2, 1, 0.5), (0, 3, 1.0)]
    bands.sending[1] = False  # still computes, and has its place
    assert held(grid, bands.shares()) == [piece for piece in whole if piece[0] != 1]
    bands.begin(1, 0.25)
    assert held(grid, bands.shares()) == whole
    bands.release(1)
    assert held(grid, bands.shares()) == [piece for piece in whole if piece[0] != 1]


def test_a_whole_band_and_shares_below_a_block():
    bands, grid = grid_of([0, 1, 1], [1.0, 0.1, 0.1], 4)
    grid.offset[:] = [2.0, 0.0]
    found = held(grid, bands.shares())
    assert [piece for piece in found if piece[0] == 0] == [(0, r, 1.0) for r in range(4)]
    small = [piece for piece in found if piece[0] > 0]
    assert [piece[:2] for piece in small] == [(1, 0), (2, 0)]
    assert [piece[2] for piece in small] == pytest.approx([0.4, 0.4])


def test_a_sector_that_lends_band_is_laid_anew():
    """Device 0 is done, and the others have its quarter too: two blocks each."""
    bands, grid = grid_of([0, 0, 0], [0.25, 0.375, 0.375], 4, reclaim=True)
    grid.offset[:] = 1.0
    assert held(grid, bands.shares())[0] == (2, 0, 1.0)
    bands.release(0)
    assert held(grid, bands.shares()) == [(2, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]


def test_a_device_that_comes_is_laid_beside_those_that_are_there():
    """Device 0 goes on in sector 1, before device 1 there; the others of its sector stay."""
    bands, grid = grid_of([0, 1, 0], [0.25, 0.5, 0.25], 4)
    grid.offset[:] = [0.0, 3.0]
    before = held(grid, bands.shares())
    assert before == [(0, 0, 1.0), (1, 0, 1.0), (2, 1, 1.0), (1, 3, 1.0)]
    bands.hand_over(0, 1)
    assert held(grid, bands.shares()) == [(1, 0, 1.0), (1, 1, 1.0), (2, 1, 1.0), (0, 3, 1.0)]


def test_a_new_round_is_laid_by_its_own_grants():
    """Also where they are smaller than those before: a resumed run knows no round before."""
    bands, grid = grid_of([0, 0], [0.5, 0.5], 4)
    grid.pieces(bands.shares())
    bands.forget()
    grid.forget(np.arange(2))
    bands.grant([Grant(k, 0.25, 0.0, 1e9, 0.2) for k in range(2)])
    bands.sending[:] = True
    assert held(grid, bands.shares()) == held(grid_of([0, 0], [0.25, 0.25], 4)[1], np.full(2, 0.25))


def test_offsets_are_whole_blocks_of_a_stream_of_each_sector():
    few, many = (grid_of(list(range(n)), [1.0] * n, 51, seed=7)[1].offset for n in (5, 90))
    assert few.tolist() == many[:5].tolist()
    assert many.min() >= 0.0 and many.max() <= 50.0 and (many == np.floor(many)).all()
    assert len(set(many.tolist())) > 30
    assert few.tolist() != grid_of(list(range(5)), [1.0] * 5, 51, seed=8)[1].offset.tolist()


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 60), st.booleans())
def test_no_block_is_held_twice_in_a_sector_whatever_happens(seed, blocks, reclaim):
    """Devices begin, wait, end, return and change sectors; each has its share of the blocks."""
    rng = np.random.default_rng(seed)
    serving = np.repeat(np.arange(3), 3)
    shares = rng.dirichlet(np.ones(3), 3).ravel() * rng.uniform(0.2, 1.0)
    bands, grid = grid_of(serving, shares, blocks, reclaim)
    bands.sending[:] = False
    for _ in range(25):
        k, what = int(rng.integers(9)), rng.integers(4)
        if what == 0 and (bands.granted[k] > 0.0 or not reclaim):  # who lent its band is done
            bands.begin(k, float(shares[k]))
        elif what == 1:
            bands.release(k)
        elif what == 2:
            bands.hand_over(k, int(rng.integers(3)))
        else:
            bands.pause(k)
        share = bands.shares()
        pieces = grid.pieces(share)
        assert pieces.width.min(initial=0.0) >= -1e-12 and pieces.width.max(initial=0.0) <= 1.0
        sums = np.bincount(pieces.device, pieces.width, 9)
        assert sums == pytest.approx(blocks * share, abs=1e-9)
        place = bands.couplings.serving[pieces.device] * blocks + pieces.block
        assert np.bincount(place, pieces.width).max(initial=0.0) <= 1.0 + 1e-9
