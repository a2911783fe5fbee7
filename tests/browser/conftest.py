"""A real Chromium over the pages that Lamina writes."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

HOW_TO = "Chromium is not here: apt-get install -y chromium chromium-driver"
WAIT_SECONDS = 30


class Browser:
    """A window, and what it asked for and complained of."""

    def __init__(self, driver: Chrome, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def open(self, page: str, folder: Path) -> Path:
        """Show a page from a file, in daylight and at desktop size."""
        file = folder / "page.html"
        file.write_text(page, encoding="utf-8")
        self.media()
        self.size(1100)
        self.complaints()
        self.driver.get(file.as_uri())
        return file

    def complaints(self) -> list[str]:
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """What pages asked for since the last call, blobs of their own left out."""
        entries = (entry["message"] for entry in self.driver.get_log("performance"))
        messages = (json.loads(entry)["message"] for entry in entries)
        sent = (each["params"] for each in messages if each["method"] == "Network.requestWillBeSent")
        return [each["request"]["url"] for each in sent if not each["request"]["url"].startswith("blob:")]

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show pages as on this medium and in this colour scheme."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})

    def size(self, width: int) -> None:
        """Show pages in a window of this width."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script: str, *values: object):
        """Return what a script returns."""
        return self.driver.execute_script(script, *values)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the whole run; skips where none is installed."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(HOW_TO)
    downloads = tmp_path_factory.mktemp("downloads")
    options = ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=ChromeService(driver))
    try:
        started.set_script_timeout(WAIT_SECONDS)
        yield Browser(started, downloads)
    finally:
        started.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The browser with nothing left of the test before."""
    chromium.driver.get("about:blank")
    chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.complaints()
    chromium.requests()
    return chromium
