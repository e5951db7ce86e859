"""`edgesim init`: what it writes runs at once, and it overwrites nothing."""

import pytest

from edgesim.cli.starter.starter_files import FILES
from edgesim.scenario.documented_keys import all_keys
from edgesim.scenario.documents.yaml_text import read_file


@pytest.mark.slow
def test_what_it_writes_runs_at_once(folder, invoke):
    shown = invoke("init", "start").stdout.splitlines()
    assert shown == [
        *("start/scenario.yaml", "start/method.py", "start/allocator.py"),
        "now: edgesim run start/scenario.yaml --allow-code",
    ]
    command = shown[-1].removeprefix("now: edgesim ").split()
    printed = invoke(*command, "--out", "runs").stdout
    assert "mine: round 20/20" in printed and "fedavg: round 20/20" in printed
    assert "cannot" not in invoke("check", *command[1:]).stdout.split("all 10 devices")[0]


def test_it_overwrites_nothing(folder, invoke):
    (folder / "start").mkdir()
    (folder / "start" / "method.py").write_text("mine")
    refused = invoke("init", "start", code=2).stderr
    assert refused == "command line: start has method.py already; give another folder\n"
    assert [path.name for path in (folder / "start").iterdir()] == ["method.py"]
    assert "cannot be written" in invoke("init", "tiny.yaml/start", code=2).stderr


def test_nothing_is_written_through_a_link_that_leads_nowhere(folder, invoke):
    (folder / "start").mkdir()
    (folder / "start" / "scenario.yaml").symlink_to(folder / "elsewhere")
    refused = invoke("init", "start", code=2).stderr
    assert refused == "command line: start has scenario.yaml already; give another folder\n"
    assert not (folder / "elsewhere").exists()


def test_a_name_that_is_too_long_is_one_sentence(folder, invoke):
    refused = invoke("init", "x" * 300, code=2).stderr
    assert refused.endswith("cannot be written (File name too long); give another folder\n")


def test_every_line_of_the_scenario_is_a_known_key_with_a_remark(tmp_path):
    (tmp_path / "scenario.yaml").write_text(FILES["scenario.yaml"])
    known = {info.key for info in all_keys()}
    tree = read_file(tmp_path / "scenario.yaml").tree
    for section in ("network", "budget", "clock", "allocation", "learning", "accounting"):
        for key in tree[section]:
            assert f"{section}.{key}" in known
    lines = [line for line in FILES["scenario.yaml"].splitlines() if line.strip()]
    bare = [line.strip() for line in lines if "#" not in line and not line.rstrip().endswith(":")]
    plain = ("tx_power", "frequency", "- count", "mine", "allocation", "learning", "local_steps")
    assert all(line.startswith((*plain, "lr", "decay")) for line in bare), bare


def test_its_schemes_are_said_not_to_be_tuned(tmp_path):
    (tmp_path / "scenario.yaml").write_text(FILES["scenario.yaml"])
    tree = read_file(tmp_path / "scenario.yaml").tree
    assert len(tree["schemes"]) == 2 and "nothing is tuned" in tree["report"]["untuned"]
