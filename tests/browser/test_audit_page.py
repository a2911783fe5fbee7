"""The page of `lamina journal --sample --html` in Chromium: a person judges edits, and the figures follow."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from lamina.agents.audit import Case, Place, Sample, page
from lamina.streams.records import Edit, Unit

HOSTILE = "</div><script>stolen=1</script><img src=x onerror='stolen=1'>"
MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
ACCEPTED = {"merge": 30, "update": 10}


def a_unit(number: int, text: str) -> Unit:
    return Unit(
        id=UUID(int=number),
        namespace="local/nora",
        kind="fact",
        session="s",
        text=text,
        said_at=MAY,
        recorded_at=MAY,
    )


def a_case(number: int, operator: str) -> Case:
    place = Place(number, 0, UUID(int=100 + number), operator)
    edit = Edit(operator=operator, outcome="executed", reason=f"why {HOSTILE}", confidence=0.95)
    before, after = a_unit(number, f"Mia likes cake. {HOSTILE}"), a_unit(50 + number, "Mia likes cake a lot.")
    return Case(place, edit, (before,), (after,), (before,))


CASES = [a_case(1, "merge"), a_case(2, "merge"), a_case(3, "update")]
SAMPLE = Sample(tuple(case.place for case in CASES), ACCEPTED, 7)


@pytest.fixture
def audit(browser, tmp_path):
    browser.open(page(SAMPLE, CASES), tmp_path)
    browser.run("localStorage.clear()")
    browser.driver.refresh()
    return browser


def judge(audit, case: int, verdict: str, note: str = "") -> None:
    card = audit.driver.find_elements(By.TAG_NAME, "article")[case]
    card.find_element(By.CSS_SELECTOR, f"input[value={verdict}]").click()
    if note:
        card.find_element(By.CSS_SELECTOR, "input[type=text]").send_keys(note, "\t")


def figures(audit) -> dict[str, list[str]]:
    """Judged, valid and harmful, by operator and overall."""
    rows = audit.driver.find_elements(By.CSS_SELECTOR, "tbody tr")
    cells = ([cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in rows)
    return {name: judged for name, _, _, *judged in cells}


def test_verdicts_count_by_operator_and_weigh_by_how_often_it_was_accepted(audit):
    assert figures(audit)["all, weighted"] == ["0", "–", "–"]
    judge(audit, 0, "valid")
    judge(audit, 1, "harmful")
    judge(audit, 2, "valid")
    assert figures(audit) == {
        "merge": ["2", "50.0 %", "50.0 %"],
        "update": ["1", "100.0 %", "0.0 %"],
        "all, weighted": ["3", "62.5 %", "37.5 %"],
    }
    judge(audit, 1, "invalid")
    assert figures(audit)["merge"] == ["2", "50.0 %", "0.0 %"]
    assert audit.complaints() == []


def test_judgements_are_there_again_when_the_page_is_opened_again(audit):
    judge(audit, 1, "harmful", "lost a detail")
    audit.driver.refresh()
    assert figures(audit)["merge"] == ["1", "0.0 %", "100.0 %"]
    card = audit.driver.find_elements(By.TAG_NAME, "article")[1]
    assert card.find_element(By.CSS_SELECTOR, "input[type=text]").get_property("value") == "lost a detail"
    assert "judged" in card.get_attribute("class").split()


def test_the_download_holds_every_verdict_and_note(audit):
    judge(audit, 0, "valid", "quite so")
    audit.driver.find_element(By.ID, "download").click()
    file = audit.downloads / "judgements.json"
    WebDriverWait(audit.driver, 30).until(lambda _: file.exists())
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert (kept["seed"], kept["accepted"]) == (7, ACCEPTED)
    assert kept["judgements"][0] == {
        "edit": SAMPLE.places[0].name,
        "operator": "merge",
        "verdict": "valid",
        "note": "quite so",
    }
    assert [each["verdict"] for each in kept["judgements"]] == ["valid", None, None]


def test_hostile_memory_is_shown_as_text_runs_nothing_and_loads_nothing(audit):
    assert audit.run("return typeof stolen") == "undefined"
    assert audit.complaints() == []
    assert {url.rsplit("/", 1)[-1] for url in audit.requests()} == {"page.html"}
    assert audit.driver.find_elements(By.TAG_NAME, "img") == []
    assert HOSTILE in audit.driver.find_element(By.TAG_NAME, "article").text
