"""A report is there as a whole or not at all."""

import contextlib
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from edgesim.errors import ResultsError
from reports import atomic_folder
from reports.atomic_folder import replaced_folder
from reports.html_page import write_report


def test_no_place_to_write(tmp_path, two_runs):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        write_report([two_runs], tmp_path / "file")
    for below in ("out", "deep/out"):
        place = tmp_path / "file" / below
        sentence = f"written to {place}: {tmp_path / 'file'} is a file; give --out a folder"
        with pytest.raises(ResultsError, match=re.escape(sentence)), replaced_folder(place):
            pass


@pytest.mark.slow
def test_an_earlier_report_is_replaced_as_a_whole(only_figures, run, tmp_path):
    out = tmp_path / "deep" / "out"
    write_report([run], out, only_figures("cdf"))
    (out / "figures" / "old.pdf").write_text("from an earlier report")
    write_report([run], out, only_figures("cdf", style="ieee"))
    assert sorted(path.name for path in (out / "figures").iterdir()) == [
        "cdf.csv",
        "cdf.pdf",
        "cdf.png",
        "cdf.svg",
    ]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "figures"])
def test_what_is_no_report_is_never_replaced(only_figures, run, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("<title>mine</title>")
    with pytest.raises(ResultsError, match=r"holds .* give --out a new folder"):
        write_report([run], out, only_figures("cdf"))
    assert (out / name).read_text() == "<title>mine</title>" and len(list(tmp_path.iterdir())) == 2


def test_a_failure_leaves_the_earlier_report_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    with replaced_folder(out) as new:
        (new / "index.html").write_text("<title>edgesim: first</title>")
    with pytest.raises(ResultsError, match="No space left on device"), replaced_folder(out) as new:
        (new / "index.html").write_text("half")
        raise OSError(28, "No space left on device")
    with pytest.raises(KeyboardInterrupt), replaced_folder(out) as new:
        raise KeyboardInterrupt
    assert (out / "index.html").read_text() == "<title>edgesim: first</title>"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_made_for_a_report_that_failed_are_taken_back(tmp_path):
    with pytest.raises(ResultsError), replaced_folder(tmp_path / "a" / "b" / "out"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(run):
    with pytest.raises(ResultsError, match="The report cannot be written to /proc/report"):
        write_report([run], "/proc/report")


@pytest.mark.slow
def test_reports_that_end_at_the_same_time(tmp_path):
    """Each is there as a whole, one after the other, and nothing else is left."""
    out, count = tmp_path / "out", 8
    together = Barrier(count)

    def report(number):
        with replaced_folder(out) as new:
            (new / "index.html").write_text(f"<title>edgesim: {number}</title>")
            (new / "figures").mkdir()
            (new / "figures" / "cdf.csv").write_text(str(number))
            together.wait()

    with ThreadPoolExecutor(count) as pool:
        for _ in range(10):
            list(pool.map(report, range(count)))
    number = (out / "figures" / "cdf.csv").read_text()
    assert (out / "index.html").read_text() == f"<title>edgesim: {number}</title>"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_is_still_written_while_a_stop_takes_the_folder_back_does_not_stay(tmp_path):
    scratch = tmp_path / ".page-1"
    (scratch / "new").mkdir(parents=True)
    written = []

    def draw():
        with contextlib.suppress(FileNotFoundError):
            for number in range(10**6):
                (scratch / "new" / f"{number}.png").write_bytes(b"x")
                written.append(number)

    drawing = threading.Thread(target=draw)
    drawing.start()
    while len(written) < 300:
        time.sleep(0.001)
    atomic_folder._take_back(tmp_path / "page", scratch / "old", scratch)
    drawing.join()
    assert list(tmp_path.iterdir()) == []
