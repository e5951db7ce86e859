"""Hooks of mkdocs: README and CHANGELOG as pages, links that stay true, breaks within names.

The pages are written to be read in the repository as well; there a link may lead to any file.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
FROM_ROOT = {"README.md": "tour.md", "CHANGELOG.md": "changelog.md"}  # file -> page of the site
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]+)(#[^)]*)?\)")
IMAGE = re.compile(r'(<img src=")docs/')
CELL = re.compile(r"<td.*?</td>", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
JOINT = re.compile(r"(?<=[\w)])([/._:](?=\w))")  # within a name or path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand beside docs/."""
    for name, page in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_with_links(text, ROOT / name)))
    return files


def on_page_markdown(markdown: str, page, **_: object) -> str:
    """Links of a page under docs/ that lead outside of it."""
    source = page.file.abs_src_path
    return markdown if source is None else _with_links(markdown, Path(source))


def on_page_content(html: str, **_: object) -> str:
    """Let names in narrow cells of tables break after a slash, dot, colon or underscore."""

    def with_breaks(cell: re.Match[str]) -> str:
        return CODE.sub(lambda code: JOINT.sub(r"\1<wbr>", code[0]), cell[0])

    return CELL.sub(with_breaks, html)


def _with_links(text: str, source: Path) -> str:
    """The text with links for the site: to a page, or the plain name of a file that is none."""

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = (source.parent / target).resolve()
        if not path.is_relative_to(ROOT):
            return found[0]
        inside = path.relative_to(ROOT)
        if source.parent != ROOT and inside.parts[0] == "docs":
            return found[0]  # from page to page
        up = "" if source.parent == ROOT else "../" * (len(source.relative_to(ROOT).parts) - 2)
        if str(inside) in FROM_ROOT:
            return f"{label}({up}{FROM_ROOT[str(inside)]}{anchor})"
        if inside.parts[0] == "docs":
            return f"{label}({up}{'/'.join(inside.parts[1:])}{anchor})"
        return label.lstrip("!")[1:-1]

    return LINK.sub(link, IMAGE.sub(r"\1", text) if source.parent == ROOT else text)
