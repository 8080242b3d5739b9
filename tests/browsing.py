"""Chromium for the tests of the page, and a watch on what the page does there.

A test module gets the fixtures by ``pytest_plugins = ["tests.browsing"]``. The browser is the one that ``ATB_CHROMIUM``
names, else the first of ``chromium``, ``chromium-browser`` and ``google-chrome`` on the path. Where there is none, the
tests are skipped; with ``ATB_REQUIRE_BROWSER=1`` they fail.

PYTEST_DONT_REWRITE: test modules import this one before pytest hears of it as a plugin.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import showcase
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page
    from playwright.sync_api._generated import LocatorAssertions, PageAssertions

    from tests.serving import InThread

CHROMIUM = os.environ.get("ATB_CHROMIUM")
REQUIRED = os.environ.get("ATB_REQUIRE_BROWSER") == "1"
NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
PATIENCE = 20_000
"""Milliseconds after which something that should have come is taken for lost."""

OURS = ("/static/", "/api/")
"""Where the page may send requests to, besides ``/`` and ``/healthz`` of its own server."""
TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
  console.error(`policy violated: ${violatedDirective} ${blockedURI}`);
});
"""

WHOLE = """
Promise.all([...document.querySelectorAll(":not(:defined)")].map((part) => customElements.whenDefined(part.localName)))
  .then(() => true)
"""
"""Some parts of the page are fetched after the first paint."""


class MissingBrowserError(Exception):
    """There is no browser to test with; the message says what is missing."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window.

    Raises:
        MissingBrowserError: it is not installed, or Playwright's Python package is not.
    """
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        raise MissingBrowserError("the Python package playwright is not installed") from None
    path = CHROMIUM or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise MissingBrowserError("no Chromium; install the package chromium, or let ATB_CHROMIUM name a browser")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests of a module.

    Not of the session: as long as Playwright runs, its event loop runs in this thread, and tests of other modules
    could not run theirs.
    """
    try:
        with chromium() as browser:
            yield browser
    except MissingBrowserError as error:
        do_without(str(error))


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core."""
    try:
        from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
    except ImportError:
        do_without("the Python package axe-playwright-python is not installed")
    return str(Axe().axe_script)


LEFT_OUT = "tests of the page left out: "


def do_without(reason: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be missing."""
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(LEFT_OUT + reason)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let all tests that are left out be so in one place: pytest then sums them up in one line."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and LEFT_OUT in report.longrepr[2]:
        report.longrepr = (__file__, 1, report.longrepr[2].removeprefix("Skipped: "))
    return report


class Visit:
    """Opens pages for one test, each in a context of its own, and listens to what they complain about."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._allowed: list[str] = []
        self.complaints: list[str] = []

    def __call__(self, server: InThread, path: str = "/", *, script: str = "", **options: Any) -> Page:
        """Open a page of a server and wait until it is whole: the board, or what is said instead of it.

        ``script`` runs in the page before anything of its own; ``options`` are those of a browser context.
        """
        context = self._browser.new_context(**{"viewport": DESKTOP, "locale": "en-GB", **options})
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(TELL_VIOLATIONS + script)
        self._listen(context, server.url)
        page = context.new_page()
        page.goto(server.url.rstrip("/") + path)
        expect(page.locator("atb-card, .board-message:visible, .graph-node, .tile").first).to_be_attached()
        page.evaluate(WHOLE)
        return page

    def allow(self, *parts: str) -> None:
        """Let complaints pass that have one of these texts in them."""
        self._allowed += parts

    def end(self) -> None:
        """Close everything and fail if there was a complaint."""
        for context in self._contexts:
            context.close()
        complaints = [text for text in self.complaints if not any(part in text for part in self._allowed)]
        assert not complaints, "\n".join(complaints)

    def _listen(self, context: BrowserContext, url: str) -> None:
        home = urlsplit(url)

        def asked(address: str) -> None:
            there = urlsplit(address)
            ours = there.path in ("/", "/healthz") or there.path.startswith(OURS)
            if (there.scheme, there.netloc) != (home.scheme, home.netloc) or not ours:
                self.complaints.append(f"a request for {address}")

        def said(kind: str, text: str) -> None:
            if kind == "error":
                self.complaints.append(f"on the console: {text}")

        def opened(dialog: Dialog) -> None:
            if dialog.type != "beforeunload":
                self.complaints.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

        context.on("request", lambda request: asked(request.url))
        context.on("console", lambda message: said(message.type, message.text))
        context.on("weberror", lambda error: self.complaints.append(f"an exception: {error.error}"))
        context.on("dialog", opened)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Return what opens pages. Ask for it after the servers: pages must be closed before their server stops."""
    visit = Visit(browser)
    yield visit
    visit.end()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InThread]:
    """Serve an empty board of the test's own."""
    with serving(tmp_path / "data") as server:
        yield server


class Sample(NamedTuple):
    """The sample board, a server of it, and the ids of its tasks by the names that ``showcase.make`` gives them."""

    directory: str
    server: InThread
    ids: dict[str, str]

    def title(self, name: str) -> str:
        """Return the title of a task."""
        return str(self.server.board.show(self.ids[name])["task"]["title"])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """Serve the sample board to all tests of a module; none of them writes to it."""
    directory = str(tmp_path_factory.mktemp("sample") / "data")
    ids = showcase.make(directory)
    with serving(directory) as server:
        yield Sample(directory, server, ids)


def expect(place: Locator) -> LocatorAssertions:
    """Return Playwright's assertions, which wait until they hold."""
    from playwright.sync_api import expect

    return expect(place)


def expect_page(page: Page) -> PageAssertions:
    """Return Playwright's assertions about a page as a whole."""
    from playwright.sync_api import expect

    return expect(page)


def column(page: Page, name: str) -> Locator:
    """Return a column of the board: ``queued blocked in_progress review done failed cancelled``."""
    return page.locator(f"atb-column[data-column={name}]")


def card(place: Page | Locator, title: str) -> Locator:
    """Return the card of a task, on the board or in a column."""
    return place.locator(f"atb-card:has(a:text-is({json.dumps(title)}))")


def task_page(page: Page, title: str) -> Locator:
    """Return the open dialog of a task."""
    return page.get_by_role("dialog", name=title, exact=True)


def go(page: Page, path: str) -> None:
    """Go to another place of the page without loading it again."""
    page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def expect_query(page: Page, state: dict[str, str]) -> None:
    """Wait until the query of the page's address is this state; it follows what is seen, a moment later."""
    page.wait_for_url(lambda url: _query_of(url) == state)


def query(page: Page) -> dict[str, str]:
    """Return the query of the page's address: the state that it keeps there."""
    return _query_of(page.url)


def _query_of(url: str) -> dict[str, str]:
    return {name: value for name, [value] in parse_qs(urlsplit(url).query).items()}
