"""The page in a real browser: no complaints, nothing wider than the screen, no dead link.

Screenshots go to the folder that EDGESIM_ARTEFACTS names, else to the test's own.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium (apt-get install chromium)"),
]
WIDTHS = {"laptop": 1280, "phone": 390}
ASK = """
<script>
addEventListener("load", () => {
  const inside = (e) => e.closest(".scroll, .picture, pre");  // these scroll by themselves
  const width = document.documentElement.clientWidth;
  const over = (e) => e.getBoundingClientRect().right > width + 1;
  const wide = [...document.querySelectorAll("main *")].filter((e) => !inside(e) && over(e));
  const contents = [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href"));
  const places = (href) => document.querySelectorAll(`[id="${href.slice(1)}"]`).length;
  const images = [...document.images], files = document.querySelectorAll("figcaption a, .note a");
  parent.postMessage(JSON.stringify({
    width,
    scrolled: document.documentElement.scrollWidth,
    wide: wide.map((e) => e.outerHTML.slice(0, 80)),
    contents: contents.length,
    dead: contents.filter((href) => !document.querySelector(href)),
    twice: contents.filter((href) => places(href) > 1),
    blank: images.filter((i) => !i.complete || !i.naturalWidth).length,
    images: images.length,
    links: [...files].map((a) => a.getAttribute("href").slice(0, 60)),
  }), "*");
});
</script>
"""
FRAME = """<!doctype html><title>nothing</title>
<script>
addEventListener("message", (message) => {{
  const told = document.createElement("pre");
  told.textContent = message.data;
  document.body.append(told);
}});
</script>
<body><iframe src="asked.html" style="width: {width}px; height: 900px; border: 0"></iframe>"""


@pytest.fixture
def browse(tmp_path):
    """browse(page, *options) -> what the browser said: its output and its log."""

    def start(page: Path, *options: str) -> subprocess.CompletedProcess:
        fixed = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--v=1",
        ]
        command = [
            BROWSER,
            *fixed,
            f"--user-data-dir={tmp_path / 'profile'}",
            *options,
            page.as_uri(),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=180)

    return start


@pytest.fixture
def artefacts(tmp_path):
    place = Path(os.environ.get("EDGESIM_ARTEFACTS") or tmp_path)
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.mark.parametrize("screen", WIDTHS)
def test_a_browser_shows_the_page_without_complaints(
    report, browse, artefacts, record_property, screen
):
    picture = artefacts / f"report-{screen}.png"
    done = browse(
        report / "index.html", f"--window-size={WIDTHS[screen]},2000", f"--screenshot={picture}"
    )
    record_property("screenshot", str(picture))
    assert "CONSOLE" not in done.stderr
    with Image.open(picture) as shown:
        assert shown.size == (WIDTHS[screen], 2000)
        assert len(shown.convert("RGB").getcolors(1 << 24)) > 50  # text and pictures, no blank page


@pytest.mark.parametrize("screen", WIDTHS)
def test_nothing_is_wider_than_the_screen_and_every_link_leads_somewhere(
    report, browse, tmp_path, screen
):
    page = (report / "index.html").read_text(encoding="utf-8")
    (tmp_path / "asked.html").write_text(page + ASK, encoding="utf-8")
    frame = tmp_path / "frame.html"  # a window cannot be as narrow as a phone, a frame can
    frame.write_text(FRAME.format(width=WIDTHS[screen]), encoding="utf-8")
    done = browse(frame, "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom")
    told = re.search(r"<pre>(\{.*?\})</pre>", done.stdout, re.DOTALL)
    assert told, done.stderr[-2000:]
    found = json.loads(html.unescape(told[1]))
    assert found["width"] == found["scrolled"] == WIDTHS[screen] and found["wide"] == []
    assert found["contents"] > 15 and found["dead"] == found["twice"] == []
    assert found["images"] == 13 and found["blank"] == 0
    files = [href for href in found["links"] if not href.startswith("data:text/csv;base64,")]
    assert len(files) > 39 and all((report / href).is_file() for href in files)
