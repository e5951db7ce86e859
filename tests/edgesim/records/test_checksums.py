"""SHA256SUMS of a finished run's folder."""

import subprocess

import pytest

from edgesim.records.checksums import (
    DamagedRunError,
    SummedFiles,
    damaged_files,
    read_summed,
    read_sums,
)
from fl.stored_files import BLANK, sealed


@pytest.fixture
def folder(tmp_path):
    files = SummedFiles()
    files.write(tmp_path / "rounds.csv", "round\n0\n")
    files.write(tmp_path / "spans.parquet", b"\x00\x01")
    files.write_sums(tmp_path)
    return tmp_path


def test_the_program_sha256sum_reads_them(folder):
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True)
    assert done.stdout.decode().splitlines() == ["rounds.csv: OK", "spans.parquet: OK"]


def test_whole_files_are_read(folder):
    assert damaged_files(folder) == []
    assert read_summed(folder / "rounds.csv", 100) == b"round\n0\n"


@pytest.mark.slow
def test_any_flipped_bit_of_a_file_or_of_the_sums_is_noticed(folder):
    for name in ("rounds.csv", "spans.parquet", "SHA256SUMS"):
        whole = (folder / name).read_bytes()
        for place in range(len(whole)):
            flipped = bytes([whole[place] ^ (1 << place % 8)])
            (folder / name).write_bytes(whole[:place] + flipped + whole[place + 1 :])
            assert damaged_files(folder), (name, place)
        (folder / name).write_bytes(whole)
    assert damaged_files(folder) == []


def test_a_damaged_file_is_named(folder):
    (folder / "rounds.csv").write_text("round\n1\n")
    with pytest.raises(DamagedRunError, match=r"rounds.csv is damaged: its bytes do not match"):
        read_summed(folder / "rounds.csv", 100)
    assert [damage.name for damage in damaged_files(folder)] == ["rounds.csv"]
    (folder / "rounds.csv").unlink()
    assert "cannot be read (No such file" in damaged_files(folder)[0].problem


def test_a_folder_without_sums_says_so(tmp_path):
    (tmp_path / "rounds.csv").write_text("round\n0\n")
    assert read_sums(tmp_path) is None
    assert read_summed(tmp_path / "rounds.csv", 100) == b"round\n0\n"
    assert "has no SHA256SUMS" in damaged_files(tmp_path)[0].problem


def test_sums_that_are_lost_are_missed(folder):
    """By what `edgesim` leaves beside them: the digest in timing.json."""
    (folder / "SHA256SUMS").unlink()
    (folder / "summary.json").write_text("{}")
    assert read_sums(folder) is None
    (folder / "timing.json").write_bytes(sealed(f'{{"digest": "{BLANK}"}}'.encode()))
    with pytest.raises(DamagedRunError, match="SHA256SUMS is missing"):
        read_sums(folder)
    assert "SHA256SUMS is missing" in damaged_files(folder)[0].problem


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "./a", "", "a\0b"])
def test_sums_lead_to_no_folder_beside_or_above(tmp_path, name):
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  {name}\n")
    with pytest.raises(DamagedRunError, match="a line without digest and file name"):
        read_sums(tmp_path)
