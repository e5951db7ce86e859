"""Lists wrap between words on a terminal, and are one line each elsewhere."""

import io
import math
from datetime import datetime

from rich.console import Console

from edgesim.cli import console
from edgesim.cli.options import print_error
from edgesim.results.run_listing import ListedRun

ROW = ("fedavg", "One global model: every device trains all of it, and the server averages.", "us")


def printed(monkeypatch, **terminal):
    text = io.StringIO()
    monkeypatch.setattr(console, "console", lambda: Console(file=text, **terminal))
    console.print_catalog([ROW])
    return text.getvalue().splitlines()


def test_a_terminal_gets_whole_words(monkeypatch):
    lines = printed(monkeypatch, width=40, force_terminal=True, color_system=None)
    assert len(lines) == 3 and max(map(len, lines)) < 40
    assert " ".join(" ".join(lines).split()) == f"fedavg {ROW[1]} (us)"
    assert all(line.startswith("        ") for line in lines[1:])


def test_a_pipe_gets_one_line(monkeypatch):
    assert printed(monkeypatch, width=40) == [f"fedavg  {ROW[1]} (us)"]


def test_control_characters_are_printed_escaped(capsys):
    """A terminal would obey them; line breaks and other letters stay."""
    print_error("the key a\x1b[31mb\x9b1m\u202ec is unknown")
    assert capsys.readouterr().err == "the key a\\x1b[31mb\\x9b1m\\u202ec is unknown\n"
    text = io.StringIO()
    console.print_line("\x07é\u200d\n\x1b]0;x", Console(file=text))
    assert text.getvalue() == "\\x07é\u200d\n\\x1b]0;x\n"


def test_a_narrow_terminal_gets_whole_numbers_and_a_name_in_several_lines():
    """46.64 ms that are printed as 46.… are no number; a line that is too long can be read."""
    text = io.StringIO()
    table = console.table_of("demo")
    table.add_column("scheme")
    console.add_number_columns(table, ["latency ms", "sent", "energy J"])
    table.add_row("equal bandwidth", "46.64", "416 kbit", "0.07072")
    console.print_table(table, Console(file=text, width=20, force_terminal=True, color_system=None))
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert lines[-2:] == [["equal", "46.64", "416", "kbit", "0.07072"], ["bandwidth"]]


def test_a_pipe_gets_the_names_of_folders_as_a_whole(monkeypatch, tmp_path):
    name = "points/" + "long name " * 20 + "s0"
    run = ListedRun(tmp_path / name, "joint", "finished", datetime(2026, 1, 1), "0", 2, 0.5)
    text = io.StringIO()
    monkeypatch.setattr(console, "console", lambda: Console(file=text, width=160))
    console.print_listed(tmp_path, [run])
    assert text.getvalue().splitlines()[1].startswith(f"{name} joint")


def test_a_metric_without_a_finite_value_is_a_dash():
    event = {"accuracy": 0.5, "metrics": {"own": math.inf, "other": None, "third": 0.25}}
    shown = {"accuracy": "0.500", "own": "-", "other": "-", "third": "0.25"}
    assert console.learning_figures(event) == shown


def test_an_infinite_loss_is_a_dash_and_one_that_was_not_measured_is_not_shown():
    assert console.learning_figures({"accuracy": math.nan, "loss": math.inf}) == {"loss": "-"}
    for loss in (math.nan, None):
        assert console.learning_figures({"accuracy": math.nan, "loss": loss}) == {}
