"""The digest of the code: an edit that can change a result changes it, any other edit does not."""

import ast
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from edgesim import load
from edgesim.runs import fingerprint
from edgesim.runs.setup import set_up
from fl.methods import resolve

PROJECT = Path(__file__).parents[3]
SCENARIO = """
name: two
rounds: 1
network: {bandwidth: 4 MHz, noise: -110 dBm, channel: {path_loss: {model: constant, loss: 95 dB}}}
devices: [{count: 2, tx_power: 23 dBm, cpu: {frequency: 2 GHz, flops_per_cycle: 4}}]
budget: {latency_threshold: 60 ms}
allocation: {solver: kkt}
learning:
  {dataset: digits, partition: {kind: iid}, samples_per_device: 10, model: mlp, batch_size: 10,
   method: {name: liu, personal_lr: 0.05}}
"""
RUN = """
import sys
from edgesim import load, simulate
simulate(load("two.yaml"), out="run", shared="shared")
print(*(name for name in sys.modules if name.split(".")[0] in ("edgesim", "fl", "solvers")))
"""


def forget(*more):
    for function in ("code_digest", "_module_file", *more):
        getattr(fingerprint, function).cache_clear()


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Folder of a copy of the packages, made once: `copy` undoes what a test edits in it."""
    folder = tmp_path_factory.mktemp("code")
    for package in ("edgesim", "fl", "solvers", "reports"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / package, folder / package, ignore=ignore)
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.py")}


@pytest.fixture
def copy(copied, monkeypatch):
    """Folder of a copy of the packages, from which the digest is taken."""

    def find_spec(package):
        spec = ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations.append(str(copied / package))
        return spec

    before = contents(copied)
    forget()
    monkeypatch.setattr(fingerprint, "find_spec", find_spec)
    yield copied
    forget()
    for path, content in contents(copied).items():
        if path not in before:
            path.unlink()
        elif content != before[path]:
            path.write_bytes(before[path])


@pytest.fixture
def digest_of(copy):
    """Method name -> digest of the code behind it as it is now."""

    def digest(method):
        fingerprint.code_digest.cache_clear()
        return fingerprint.code_digest(resolve(method))

    return digest


def test_modules_that_decide_a_result_are_found():
    assert {
        "edgesim.engine.rounds",
        "edgesim.network.channel",
        "edgesim.seeds",
        "fl.accounting",
        "fl.data.partitions.partition",
        "fl.evaluation.evaluate",
        "fl.methods.fedalt",
        "fl.methods.liu",
        "fl.models.layers.layer",
        "fl.training.local_sgd",
        "solvers.allocators.kkt",
    } <= set(fingerprint.code_files(resolve("liu")))


def parsed_imports(node):
    """Dotted names that are imported below a node, by Python's own parser."""
    names = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            names |= {each.name for each in child.names}
        elif isinstance(child, ast.ImportFrom):
            names |= {child.module, *(f"{child.module}.{each.name}" for each in child.names)}
        elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            names |= parsed_imports(child)
    return names


@pytest.mark.slow
def test_no_import_of_any_module_is_overlooked():
    files = [path for each in fingerprint.PACKAGES for path in (PROJECT / each).rglob("*.py")]
    parsed = {path: parsed_imports(ast.parse(path.read_text())) for path in files}
    assert sum(map(len, parsed.values())) > 5000
    for path, names in parsed.items():
        assert names <= fingerprint._imported(path), path


@pytest.mark.parametrize(
    "text, names",
    [
        ("import a.b, c as d  # and why\n", {"a.b", "c"}),
        ("def f():\n    from a import b as c\n", {"a", "a.b"}),
        ("from a import (  # all (of them)\n    b,\n    c as d,  # why\n)\n", {"a", "a.b", "a.c"}),
        ("important = 1\nx = 'from here'\n", set()),
    ],
)
def test_imports_of_a_file(tmp_path, text, names):
    (tmp_path / "some.py").write_text(text)
    assert fingerprint._imported(tmp_path / "some.py") == names


@pytest.mark.slow
def test_an_edit_of_any_module_that_takes_part_changes_the_digest(copy, digest_of):
    before = digest_of("liu")
    for path in fingerprint.code_files(resolve("liu")).values():
        original = path.read_bytes()
        path.write_bytes(original + b"\nEDITED = True\n")
        assert digest_of("liu") != before, path
        path.write_bytes(original)
    assert digest_of("liu") == before


@pytest.mark.slow
def test_an_edit_of_a_base_class_changes_the_digest_of_its_subclass(copy, digest_of):
    before = digest_of("liu"), digest_of("fedavg")
    path = copy / "fl" / "methods" / "fedalt.py"
    path.write_text(path.read_text() + "\nEDITED = True\n")
    assert digest_of("liu") != before[0] and digest_of("fedavg") == before[1]


@pytest.mark.slow
def test_edits_of_other_methods_commands_and_reports_change_nothing(copy, digest_of):
    before = digest_of("liu")
    own = set(fingerprint.code_files(resolve("liu")).values())
    others = [copy / "fl" / "methods" / "fedlps" / "fedlps.py", copy / "fl" / "methods" / "oort"]
    for place in [*others, copy / "edgesim" / "cli", copy / "reports"]:
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            assert path not in own
            path.write_text(path.read_text() + "\nEDITED = True\n")
    assert digest_of("liu") == before


@pytest.mark.slow
def test_a_new_import_is_followed(copy, digest_of):
    before = digest_of("liu")
    (copy / "fl" / "new.py").write_text("VALUE = 1\n")
    assert digest_of("liu") == before
    layers = copy / "fl" / "models" / "layers" / "layer.py"
    layers.write_text(layers.read_text() + "\nfrom fl.new import VALUE\n")
    forget("_imported")
    assert fingerprint.code_files(resolve("liu"))["fl.new"] == copy / "fl" / "new.py"
    forget("_imported")  # the imports of this edit


@pytest.mark.slow
def test_the_digest_belongs_to_the_key_of_the_training_cache(tmp_path, monkeypatch):
    (tmp_path / "two.yaml").write_text(SCENARIO)
    before = fingerprint.training_digest(set_up(load(tmp_path / "two.yaml")))
    monkeypatch.setattr("edgesim.runs.fingerprint.code_digest", lambda method: "of other code")
    assert before != fingerprint.training_digest(set_up(load(tmp_path / "two.yaml")))


@pytest.mark.slow
def test_every_module_that_a_run_loads_is_covered(tmp_path):
    """Only the digest itself decides nothing but the name of a result."""
    (tmp_path / "two.yaml").write_text(SCENARIO)
    run = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    covered = set(fingerprint.code_files(resolve("liu")))
    assert set(run.stdout.split()) - covered <= {"edgesim.runs.fingerprint"}
