"""The page in a real browser: charts, legends, slices, sorted tables, and nothing from outside.

Screenshots go to the folder that EDGESIM_ARTEFACTS names, else to the test's own.
"""

import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from reports.html_page import write_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")  # None: playwright's own
OWNED = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache/ms-playwright"))
FOUND = BROWSER is not None or any(OWNED.glob("chromium*"))
WIDTHS = {"laptop": 1280, "phone": 390}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOUND, reason="needs Chromium (apt-get install chromium)"),
]
LAYOUT = """() => {
  const inside = (e) => e.closest(".scroll, .picture, pre");  // these scroll by themselves
  const width = document.documentElement.clientWidth;
  const over = (e) => e.getBoundingClientRect().right > width + 1;
  const wide = [...document.querySelectorAll("main *")].filter((e) => !inside(e) && over(e));
  const contents = [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href"));
  const places = (href) => document.querySelectorAll(`[id="${href.slice(1)}"]`).length;
  const images = [...document.images], files = document.querySelectorAll("figcaption a, .note a");
  return {
    scrolled: document.documentElement.scrollWidth,
    wide: wide.map((e) => e.outerHTML.slice(0, 80)),
    contents: contents.length,
    dead: contents.filter((href) => places(href) !== 1),
    blank: images.filter((i) => !i.complete || !i.naturalWidth).length,
    images: images.length,
    links: [...files].map((a) => a.getAttribute("href").slice(0, 60)),
  };
}"""


@pytest.fixture(scope="module")
def browser():
    """One Chromium for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="make test-browser installs it")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=WIDTHS)
def opened(browser, request, tmp_path):
    """opened(page) -> the page, as a screen of that width shows it; complaints fail the test."""
    screen = browser.new_page(viewport={"width": WIDTHS[request.param], "height": 1000})
    complaints, asked = [], []
    screen.on("console", lambda message: complaints.append(message.text))
    screen.on("pageerror", lambda error: complaints.append(str(error)))
    screen.on("request", lambda sent: asked.append(sent.url))

    def visit(page: Path):
        screen.goto(page.as_uri())
        return screen

    yield visit
    place = Path(os.environ.get("EDGESIM_ARTEFACTS") or tmp_path)
    screen.screenshot(path=place / f"{request.node.originalname}-{request.param}.png")
    outside = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    screen.close()
    assert complaints == [] and outside == []


@pytest.fixture(scope="module")
def swept_page(swept_folder, tmp_path_factory, only_figures):
    out = tmp_path_factory.mktemp("swept") / "out"
    return write_report([swept_folder], out, only_figures("accuracy-by-bandwidth"))


def test_nothing_is_wider_than_the_screen_and_every_link_leads_somewhere(opened, report):
    screen = opened(report / "index.html")
    found = screen.evaluate(LAYOUT)
    assert found["scrolled"] == screen.viewport_size["width"] and found["wide"] == []
    assert found["contents"] > 15 and found["dead"] == []
    assert found["images"] == 13 and found["blank"] == 0
    files = [href for href in found["links"] if not href.startswith("data:text/csv;base64,")]
    assert len(files) > 39 and all((report / href).is_file() for href in files)


def legend(screen, chart):
    """Label -> value, of the lines of a chart."""
    rows = screen.locator(".chart").nth(chart).locator(".u-series").all()[1:]
    return {row.locator("th").inner_text(): row.locator(".u-value").inner_text() for row in rows}


def point_at(screen, chart, share):
    """Move the pointer over a chart, to so much of its width."""
    box = screen.locator(".chart .u-over").nth(chart)
    box.scroll_into_view_if_needed()
    size = box.bounding_box()
    screen.mouse.move(size["x"] + share * size["width"], size["y"] + size["height"] / 2)


def test_the_values_under_the_pointer_are_those_of_the_nearest_point(opened, swept_page):
    screen = opened(swept_page)
    point_at(screen, 0, 0.02)  # the band of 10 MHz
    assert legend(screen, 0) == {
        "liu, latency threshold 15 ms": "20.5",
        "liu, latency threshold 30 ms": "20.5",
        "fedavg, latency threshold 15 ms": "10.5",
        "fedavg, latency threshold 30 ms": "10.5",
    }
    point_at(screen, 0, 0.98)
    assert legend(screen, 0)["liu, latency threshold 15 ms"] == "50.5"


def test_at_the_end_of_the_slowest_a_faster_line_shows_its_last_point(opened, swept_page):
    screen = opened(swept_page)
    point_at(screen, 1, 0.99)
    shown = legend(screen, 1)
    assert shown["liu (bandwidth 10 MHz, latency threshold 15 ms)"] == "20.5"
    assert shown["fedavg (bandwidth 40 MHz, latency threshold 15 ms)"] == "40.5"
    assert len(shown) == 12 and all(map(float, shown.values()))


def test_a_name_in_the_legend_switches_its_line(opened, swept_page):
    screen = opened(swept_page)
    line = screen.locator(".chart").first.locator(".u-series").nth(1)
    assert "u-off" not in line.get_attribute("class")
    line.locator("th").click()
    assert "u-off" in line.get_attribute("class")
    line.locator("th").press("Enter")
    assert "u-off" not in line.get_attribute("class")


def test_a_slice_of_the_sweep_is_chosen_by_a_control(opened, swept_page):
    screen = opened(swept_page)
    at = screen.get_by_label("at latency threshold")
    at.select_option(label="30 ms")
    assert set(legend(screen, 0)) == {"liu", "fedavg"}
    screen.get_by_label("against").first.select_option(label="latency threshold (ms)")
    screen.get_by_label("Show").first.select_option(label="mean latency per round (ms)")
    screen.get_by_label("at bandwidth").select_option(label="20 MHz")
    point_at(screen, 0, 0.98)
    assert legend(screen, 0) == {"liu": "30", "fedavg": "300"}


def test_the_curves_are_drawn_against_what_is_chosen(opened, swept_page):
    screen = opened(swept_page)
    screen.get_by_label("against").nth(1).select_option(label="payload, up and down (Mbit)")
    point_at(screen, 1, 0.98)  # 30 Mbit a round, two rounds
    shown = screen.locator(".chart").nth(1)
    assert shown.locator(".u-series").first.locator(".u-value").inner_text() == "60"
    # of twelve schemes eight are shown at first
    assert shown.locator(".u-series.u-off").count() == 12 - 8


def test_a_click_on_a_header_sorts_a_table(opened, swept_page):
    screen = opened(swept_page)
    table = screen.locator("table.sortable:has(th:has-text('Final accuracy'))").first
    head = table.locator("th", has_text="Final accuracy")
    column = head.evaluate("th => th.cellIndex")

    def numbers():
        cells = table.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()
        return [float(cell) for cell in cells]

    before = numbers()
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and numbers() == sorted(before)
    head.get_by_role("button").click()
    assert numbers() == sorted(before, reverse=True) and numbers() != before


def test_without_a_script_the_page_has_its_figures_and_no_empty_charts(browser, swept_page):
    context = browser.new_context(java_script_enabled=False)
    screen = context.new_page()
    screen.goto(swept_page.as_uri())
    assert not screen.locator("#explore").is_visible() and screen.locator("img").count() == 1
    context.close()


def test_a_slice_at_a_number_leaves_out_what_has_none_there(
    opened, write_run, tmp_path, only_figures
):
    """Rounds last 25 ms under a threshold of 25 ms or 40 ms, and 60 ms without one."""
    for (limit, last_s), band in product(
        (("25 ms", 0.025), ("40 ms", 0.025), ("none", 0.06)), (10, 20)
    ):
        write_run(
            tmp_path / "runs" / f"{limit}-{band}", latency_s=(last_s,) * 4,
            bandwidth=f"{band} MHz", extra=f"budget: {{latency_threshold: {limit}}}",
        )  # fmt: skip
    screen = opened(write_report([tmp_path / "runs"], tmp_path / "out", only_figures("latency")))
    screen.get_by_label("Show").first.select_option(label="mean latency per round (ms)")
    for limit, latency in (("25 ms", "25"), ("none", "60")):
        screen.get_by_label("at latency threshold").select_option(label=limit)
        point_at(screen, 0, 0.98)
        assert legend(screen, 0) == {"joint": latency}
    screen.get_by_label("at latency threshold").select_option(label="all")
    assert "joint, latency threshold none" in legend(screen, 0)
