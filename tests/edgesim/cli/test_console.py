"""Lists wrap between words on a terminal, and are one line each elsewhere."""

import io

from rich.console import Console

from edgesim.cli import console

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
