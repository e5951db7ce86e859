"""Commands of other packages: found by their entry points, and no harm done by a broken one."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import typer
from typer.testing import CliRunner

from edgesim.cli import plugin_commands as plugins


def command_line(monkeypatch, *entries):
    found = [EntryPoint(name, value, plugins.GROUP) for name, value in entries]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    app = typer.Typer(rich_markup_mode=None)
    app.command("first")(lambda: typer.echo("one"))
    plugins.add_commands(app)
    return app


def test_commands_of_one_module_stand_in_the_order_of_its_lines(monkeypatch):
    app = command_line(
        monkeypatch, ("compare", "reports.command:compare"), ("report", "reports.command:report")
    )
    names = [command.name for command in app.registered_commands]
    assert names == ["first", "report", "compare"]


def test_a_broken_entry_point_says_so_when_it_is_used_and_harms_no_other_command(monkeypatch):
    app = command_line(monkeypatch, ("gone", "no_such_package:command"))
    run = CliRunner().invoke
    assert run(app, ["first"]).output == "one\n"
    broken = run(app, ["gone", "a", "--option", "b"])
    assert broken.exit_code == 2
    assert "The command gone (no_such_package:command) cannot be loaded" in broken.output
    assert len(broken.output.splitlines()) == 1


def test_a_module_that_fails_in_any_way_harms_no_other_command(monkeypatch, tmp_path):
    (tmp_path / "odd_commands.py").write_text("raise ZeroDivisionError('odd')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    app = command_line(monkeypatch, ("odd", "odd_commands:command"))
    assert CliRunner().invoke(app, ["first"]).output == "one\n"
    broken = CliRunner().invoke(app, ["odd"])
    assert broken.exit_code == 2 and "cannot be loaded: odd" in broken.output


def test_what_is_no_command_harms_no_other_one(monkeypatch, tmp_path):
    code = "number = 3\ndef odd(x: int | str): pass\nappend = [].append  # its __module__ is None\n"
    (tmp_path / "no_commands.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entries = [(name[0], f"no_commands:{name}") for name in ("number", "odd", "append")]
    app = command_line(monkeypatch, *entries)
    assert CliRunner().invoke(app, ["first"]).output == "one\n"
    for name, reason in (("n", "it is int, no function"), ("o", "Typer ")):
        broken = CliRunner().invoke(app, [name])
        assert broken.exit_code == 2 and f"cannot be loaded: {reason}" in broken.output
        assert len(broken.output.splitlines()) == 1


def test_a_name_that_is_there_stays_what_it_is_and_of_two_packages_neither_is_taken(monkeypatch):
    taken, report = ("first", "reports.command:compare"), "reports.command:report"
    app = command_line(monkeypatch, taken, ("two", report), ("two", "other_package:two"))
    assert CliRunner().invoke(app, ["first"]).output == "one\n"
    neither = CliRunner().invoke(app, ["two"])
    assert neither.exit_code == 2
    packages = "other_package:two and reports.command:report"
    assert neither.output == f"The command two is registered by {packages}; remove one of them.\n"


def test_a_command_of_this_project_goes_before_one_of_another_package(monkeypatch):
    (own,) = plugins.entry_points(group=plugins.GROUP, name="compare")
    foreign = EntryPoint("compare", "json:dumps", plugins.GROUP)
    for order in ((own, foreign), (foreign, own)):
        monkeypatch.setattr(plugins, "entry_points", lambda group, order=order: order)
        app = typer.Typer()
        plugins.add_commands(app)
        (command,) = app.registered_commands
        assert command.callback.__module__ == own.module
