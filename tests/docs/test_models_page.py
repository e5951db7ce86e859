"""docs/models.md: every file, and every name beside a file, exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
PLACES = re.findall(r"`([\w/]+\.py)`(?: \(((?:`[\w.]+`(?:, )?)+)\))?", PAGE)


def names_in(path: Path) -> set[str]:
    """Functions, classes, methods (``Class.method``) and constants of a file."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}.{each.name}" for each in inner}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            found |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found


@pytest.mark.parametrize(("file", "names"), PLACES)
def test_a_place_of_an_equation_exists(file, names):
    assert set(re.findall(r"[\w.]+", names)) <= names_in(ROOT / file)


def test_the_page_names_the_places_of_the_main_equations():
    assert len(PLACES) >= 15
