"""Every module can be imported, and the examples in docstrings print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("solvers", "fl", "edgesim", "reports")
    for path in sorted((ROOT / package).rglob("*.py"))
    if path.name != "__main__.py"  # which is the command line
}
WITH_EXAMPLES = [name for name, path in MODULES.items() if b">>>" in path.read_bytes()]


def test_every_module_can_be_imported():
    assert len(MODULES) > 500
    for name, path in MODULES.items():
        assert Path(import_module(name).__file__) == path


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_show(name):
    assert not doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed
