"""Links and file names in the documentation lead to something that is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import edgesim

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SUFFIXES = ("py", "yaml", "md", "json", "txt", "png")
NAMED = re.compile(rf"`((?:[\w-]+/)+[\w-]+\.(?:{'|'.join(SUFFIXES)}))`")
OF_THE_USER = (
    "checkpoint/",
    "runs/",
    "OUT/",
    "figures/",
    "tables/",
    "points/",
)  # in a folder of results


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def anchors(page: Path) -> tuple[set[str], set[str]]:
    """The anchors of a page's headings, as GitHub makes them and as the site does."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = [
        re.sub(r"[^\w\s-]", "", heading.strip().lower())
        for heading in re.findall(r"^#+ (.*)", re.sub(r"\]\([^)]*\)", "", text), re.M)
    ]
    on_the_site = {re.sub(r"[-\s]+", "-", heading).strip("-") for heading in headings}
    return {heading.replace(" ", "-") for heading in headings}, on_the_site


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings_on_github_and_on_the_site(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    dead = [
        (name, anchor)
        for name, anchor in links
        for known in anchors(page.parent / name if name else page)
        if anchor not in known
    ]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page):
    names = [
        name
        for name in NAMED.findall(page.read_text(encoding="utf-8"))
        if not name.startswith(OF_THE_USER)
    ]
    places = (ROOT, page.parent, ROOT / "docs", ROOT / "scenarios")
    assert [name for name in names if not any((at / name).exists() for at in places)] == []


def test_the_api_reference_describes_all_that_edgesim_gives():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    described = re.findall(r"^::: (\S+)", "\n".join(page.read_text() for page in pages), re.M)
    given = {name: getattr(edgesim, name) for name in edgesim.__all__}
    homes = {name: getattr(each, "__module__", each.__name__) for name, each in given.items()}
    missing = [n for n, home in homes.items() if not {home, f"{home}.{n}"} & set(described)]
    assert missing == []


@pytest.mark.slow
def test_nothing_refers_to_what_is_not_shipped():
    """Pages under docs/papers have what matters; no other digest of a paper is shipped."""
    digests = re.compile(r"(?<!docs/papers/)(?<!papers/)\b(liu|fedlps|fedmap|spafl|baselines)\.md")
    found = []
    for pattern in ("**/*.py", "**/*.yaml", "**/*.md", "**/*.j2"):
        for path in ROOT.glob(pattern):
            inside = path.relative_to(ROOT)
            elsewhere = inside.parts[0].startswith(".venv") or inside.parts[0] in ("runs", "build")
            if elsewhere or inside.parts[:2] == ("docs", "papers"):
                continue
            if path.name != Path(__file__).name and digests.search(
                path.read_text(encoding="utf-8")
            ):
                found.append(str(inside))
    assert found == []
