"""The results page of a benchmark in Chromium: drawn, sortable, printable, readable in the dark."""

import base64

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from lamina.bench.page import Column, Page, Section, Table, render
from lamina.bench.page_charts import Bars, Dots, Lines

HOSTILE = "</script><script>stolen=1</script><img src=x onerror='stolen=1'>"
ROWS = (("bm25", 1033, 0.533, 9.5), ("auto", 1033, 0.74, None), (HOSTILE, 9, 0.08, 20.25))
CHARTS = (
    Bars("Found", ["bm25", HOSTILE], {"recall@5": [53.3, 74.0], "ndcg@5": [44.5, None]}, "%"),
    Bars("Times", ["bm25", "auto"], {"p50": [0.1, 8.0], "p99": [0.4, 21.0]}, "ms", log=True),
    Lines("Needle", {"auto": [(20, 100), (1000, 100)], HOSTILE: [(20, 100), (1000, 2)]}, "turns", "%"),
    Dots("Spread", {"bm25": [50.0, 52.0], "auto": [70.0, 74.0]}, "recall@5, %"),
)
TABLE = Table(
    f"Every strategy {HOSTILE}",
    (Column("strategy"), Column("n", "count"), Column("recall@5", "share"), Column("p50 ms", "number")),
    ROWS,
)
PAGE = Page(
    f"LoCoMo {HOSTILE}",
    {"embedder": HOSTILE, "machine": "2 cores"},
    (Section(HOSTILE, HOSTILE, (TABLE, *CHARTS)),),
    {"recall@5": HOSTILE},
)


@pytest.fixture(scope="module")
def html() -> str:
    return render(PAGE)


@pytest.fixture
def page(browser, html, tmp_path):
    browser.open(html, tmp_path)
    return browser


def shown(page, place=0):
    return page.run(
        "return [...document.querySelectorAll('tbody tr')].map(row => row.cells[arguments[0]].textContent)",
        place,
    )


def colour(page, selector, name="color"):
    """Brightness of a colour, 0 to 255."""
    text = page.run(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name
    )
    red, green, blue = (float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_everything_is_drawn_nothing_is_loaded_and_the_console_is_silent(page):
    assert page.complaints() == []
    assert [url.rsplit("/", 1)[-1] for url in page.requests()] == ["page.html"]
    drawings = page.driver.find_elements(By.CSS_SELECTOR, "figure svg")
    assert len(drawings) == len(CHARTS)
    for drawing in drawings:
        assert drawing.is_displayed()
        assert drawing.rect["height"] > 200
        inside = page.run(
            "const outer = arguments[0].getBoundingClientRect();"
            "return [...arguments[0].querySelectorAll('text')].filter(each => {"
            "  const box = each.getBoundingClientRect();"
            "  return box.width && box.left >= outer.left - 1 && box.right <= outer.right + 1; }).length",
            drawing,
        )
        assert inside == len(drawing.find_elements(By.TAG_NAME, "text")) > 4
    ids = page.run("return [...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))


def test_what_a_benchmark_passes_in_is_text_and_never_runs(page):
    assert page.run("return typeof stolen") == "undefined"
    assert page.driver.title == f"LoCoMo {HOSTILE}"
    assert page.driver.find_elements(By.TAG_NAME, "img") == []
    assert HOSTILE in shown(page)
    labels = page.run("return [...document.querySelectorAll('svg text')].map(each => each.textContent)")
    assert labels.count(HOSTILE) == 2


def test_a_click_sorts_the_largest_first_then_the_smallest_and_what_is_missing_stays_last(page):
    heading = page.driver.find_element(By.XPATH, "//thead//button[normalize-space()='p50 ms']")
    heading.click()
    assert shown(page, 3) == ["20.2", "9.5", "–"]
    assert heading.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"
    heading.click()
    assert shown(page, 3) == ["9.5", "20.2", "–"]
    names = page.driver.find_element(By.XPATH, "//thead//button[normalize-space()='strategy']")
    names.send_keys(Keys.ENTER)
    names.send_keys(Keys.ENTER)
    assert shown(page)[1:] == ["auto", "bm25"]
    assert [each.get_attribute("aria-sort") for each in page.driver.find_elements(By.CSS_SELECTOR, "th")][
        :4
    ] == ["ascending", None, None, None]


def test_without_scripts_the_page_shows_the_same_figures(browser, html, tmp_path):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(html, tmp_path)
    assert browser.driver.find_elements(By.TAG_NAME, "button") == []
    assert "74.0 %" in browser.driver.find_element(By.TAG_NAME, "table").text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_charts_stand_out_in_both_colour_schemes(page, scheme):
    page.media(scheme=scheme)
    paper = colour(page, "body", "backgroundColor")
    for part, name in (("h1", "color"), ("td", "color"), ("svg text", "fill")):
        assert abs(colour(page, part, name) - paper) > 180
    assert (paper < 60) == (scheme == "dark")


def test_it_prints_black_on_white_even_in_the_dark(page):
    page.media("print", "dark")
    assert colour(page, "body", "backgroundColor") == 255
    assert colour(page, "svg text", "fill") == 0
    printed = page.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_a_narrow_window_scrolls_tables_and_charts_not_the_page(page):
    page.size(390)
    wide, narrow = page.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= narrow


def test_a_chart_has_a_name_and_its_figures_in_words(page):
    names = page.run(
        "return [...document.querySelectorAll('svg')].map(svg => svg.getAttribute('aria-labelledby')"
        ".split(' ').map(id => document.getElementById(id).textContent))"
    )
    assert names[0] == [
        "Found",
        f"%. recall@5: bm25 53.3, {HOSTILE} 74. ndcg@5: bm25 44.5, {HOSTILE} –.",
    ]
    assert names[2][1].startswith("% over turns. auto: 20 100, 1000 100.")
