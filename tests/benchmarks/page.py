"""The page in Chromium, with 10,000 tasks: until the first cards are painted, and until a filter is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests import showcase
from tests.benchmarks.measuring import Measured, row
from tests.browsing import chromium
from tests.serving import process

if TYPE_CHECKING:
    from pathlib import Path

WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("atb-card")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
"""Notes when the first card has been painted, in milliseconds since the page was asked for."""

FILTER = """
async (q) => {
  const { router } = await import("/static/js/router.js");
  const start = performance.now();
  router.go({ q }, { replace: true });
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}
"""
"""Sets the text to search for; returns how many milliseconds it took until the page was painted anew."""


def measure(directory: Path, runs: int, *, tasks: int = 10_000) -> list[str]:
    """Return the rows of the table."""
    place = directory / "page"
    showcase.make(str(place), tasks)
    framed: list[float] = []
    painted: list[float] = []
    filtered: list[float] = []
    with process(place) as server, chromium() as browser:
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            context.add_init_script(WATCH)
            page = context.new_page()
            page.goto(server.url)
            page.locator("atb-card").first.wait_for()
            page.locator("atb-task-dialog").wait_for(state="attached")
            page.evaluate("new Promise((done) => setTimeout(done, 1500))")
            framed.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            painted.append(page.evaluate("window.painted"))
            filtered += [page.evaluate(FILTER, text) for text in ("route", "r", "rou", "", "zzz", "")]
            context.close()
    return [
        row(f"the page, {tasks:,} tasks: first paint, p50, p90", "", _spread(framed)),
        row(f"the page, {tasks:,} tasks: first cards painted, p50, p90", "", _spread(painted)),
        row(f"the page, {tasks:,} tasks: a filter until painted, p50, p90", "", _spread(filtered)),
    ]


def _spread(numbers: list[float]) -> str:
    measured = Measured(numbers)
    return f"{measured.percentile(50):.0f}, {measured.percentile(90):.0f} ms"
