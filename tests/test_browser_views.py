"""The page of the board in Chromium: finding one's way, by mouse, keyboard and touch, and every view of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browsing import DESKTOP, PHONE, card, column, expect, expect_query, go, task_page
from tests.support import bring_to, hold, last_event
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browsing import Sample, Visit
    from tests.serving import InThread

pytest_plugins = ["tests.browsing"]

COLUMNS = ("queued", "blocked", "in_progress", "review", "done", "failed", "cancelled")


def titles(page: Page) -> set[str]:
    return {text.strip() for text in page.locator("atb-card h3").all_text_contents()}


def wide(page: Page) -> int:
    """How many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


# Filters and links


def test_filters_choose_cards_and_stand_in_the_address(sample: Sample, visit: Visit) -> None:
    tasks = sample.server.board.list_tasks(limit=1_000).tasks
    page = visit(sample.server)
    chosen: dict[str, str] = {}
    wanted = tasks
    for name, value, passes in (
        ("agent", "otter", lambda task: "otter" in (task.claimed_by, task.assignee)),
        ("queue", "web", lambda task: task.queue == "web"),
        ("tag", "maps", lambda task: "maps" in task.tags),
    ):
        page.get_by_label(name.capitalize(), exact=True).select_option(value)
        chosen[name] = value
        fewer = [task for task in wanted if passes(task)]
        assert 0 < len(fewer) < len(wanted), "the sample board tells nothing about this filter"
        wanted = fewer
        expect(page.locator("atb-card")).to_have_count(len(wanted))
        assert titles(page) == {task.title for task in wanted}
        expect_query(page, chosen)
    expect(page.get_by_role("status").filter(has_text=" of ")).to_have_text(f"{len(wanted)} of {len(tasks)} tasks")
    page.reload()
    expect(page.locator("atb-card")).to_have_count(len(wanted))
    expect(page.get_by_label("Agent", exact=True)).to_have_value("otter")

    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator("main")).to_be_focused()
    expect_query(page, {})
    page.go_back()
    expect(page.locator("atb-card")).to_have_count(len(wanted))
    page.go_forward()

    page.get_by_role("button", name="Overdue").click()
    late = {task.title for task in tasks if task.overdue}
    expect(page.locator("atb-card")).to_have_count(len(late))
    assert titles(page) == late
    expect_query(page, {"overdue": "1"})


def test_text_is_searched_for_word_by_word(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server)
    page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    page.keyboard.type("ROUTE click")
    expect(page.locator("atb-card")).to_have_count(1)
    expect(card(page, sample.title("draw"))).to_be_visible()
    expect(column(page, "queued")).to_contain_text("No matching tasks.")
    expect_query(page, {"q": "ROUTE click"})
    page.keyboard.press("Escape")
    expect(column(page, "queued").locator("atb-card")).not_to_have_count(0)
    expect_query(page, {})


def test_the_server_searches_every_text_and_archived_tasks_while_the_filters_hold(
    server: InThread, visit: Visit
) -> None:
    board = server.board
    board.add("Plain title", body="a Straße in the body", queue="docs")
    board.add("Strasse by title", queue="core")
    board.add("other")
    old = board.add("Old one", body="strasse").task.id
    board.cancel(old)
    board.archive_task(old)
    page = visit(server)
    page.get_by_role("searchbox").fill("STRASSE")
    expect(page.locator("atb-card")).to_have_count(2)
    expect(card(page, "Plain title")).to_contain_text("a Straße in the body")
    elsewhere = page.locator(".filter-elsewhere")
    elsewhere.get_by_text("1 more match: archived").click()
    expect(elsewhere.get_by_role("link", name="Old one")).to_be_visible()
    page.get_by_label("Queue", exact=True).select_option("docs")
    expect(page.locator("atb-card")).to_have_count(1)
    expect(elsewhere).to_be_hidden()
    page.get_by_label("Queue", exact=True).select_option("")
    board.add("New one", body="strasse")
    expect(page.locator("atb-card")).to_have_count(3)

    visit.allow("net::ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    page.get_by_role("searchbox").fill("by title")
    expect(page.locator("atb-card")).to_have_count(1)


def test_a_task_has_an_address_and_back_and_forward_work(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server, f"/?queue=core&task={sample.ids['surface']}")
    dialog = task_page(page, sample.title("surface"))
    expect(dialog).to_be_visible()
    dialog.locator("section", has_text="Depends on").get_by_role("link", name=sample.title("router")).click()
    expect(task_page(page, sample.title("router"))).to_be_visible()
    page.go_back()
    expect(dialog).to_be_visible()
    page.go_forward()
    expect(task_page(page, sample.title("router"))).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("Queue", exact=True)).to_have_value("core")
    card(page, sample.title("surface")).click()
    expect(dialog).to_be_visible()
    expect_query(page, {"queue": "core", "task": sample.ids["surface"]})
    page.go_back()
    expect(dialog).to_be_hidden()

    visit.allow("status of 404")
    go(page, "/?task=01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.get_by_role("dialog").get_by_role("alert").filter(visible=True)).to_contain_text("no such task")


# Keyboard and focus


def test_a_round_by_keyboard_alone(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "review")
    server.board.add("first", priority=2)
    server.board.add("second", priority=1)
    page = visit(server)
    keys = page.keyboard
    expect(card(page, "second")).to_be_visible()
    keys.press("j")
    expect(page.get_by_role("link", name="first")).to_be_focused()
    keys.press("j")
    expect(page.get_by_role("link", name="second")).to_be_focused()
    keys.press("k")
    keys.press("ArrowRight")
    link = column(page, "review").get_by_role("link", name="a task")
    expect(link).to_be_focused()
    keys.press("Enter")
    dialog = task_page(page, "a task")
    expect(dialog).to_be_visible()
    reach(page, "Approve")
    keys.press("Enter")
    expect(dialog.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    assert last_event(server.board, held.id)["kind"] == "approved"
    keys.press("c")
    expect(dialog.get_by_label("New comment")).to_be_focused()
    keys.type("seen")
    keys.press("Control+Enter")
    expect(dialog.locator("atb-task-comments")).to_contain_text("seen")
    keys.press("Escape")
    expect(dialog).to_be_hidden()
    expect(column(page, "done").get_by_role("link", name="a task")).to_be_focused()

    keys.press("n")
    expect(page.get_by_role("dialog", name="New task").get_by_label("Title")).to_be_focused()
    keys.type("third")
    keys.press("Control+Enter")
    expect(task_page(page, "third")).to_be_visible()
    keys.press("Escape")
    expect(card(column(page, "queued"), "third")).to_be_visible()

    for first, second, view in (("g", "g", "graph"), ("g", "f", "flow"), ("g", "b", "board")):
        keys.press(first)
        keys.press(second)
        expect(page.locator(f"atb-{view}")).to_be_visible()


def reach(page: Page, name: str) -> None:
    """Press Tab until the focus is on a button."""
    for _ in range(40):
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never comes to {name}")


def test_the_list_of_shortcuts_opens_anywhere_and_closes_again(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server)
    button = page.get_by_role("button", name="Keyboard shortcuts")
    button.focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    for label in ("New task", "Search", "Next card", "Next column", "Graph", "Activity", "Edit the open task"):
        expect(dialog.get_by_role("term").filter(has_text=re.compile(f"^{label}$"))).to_be_visible()
    page.keyboard.press("n")
    expect_query(page, {})
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()


def test_the_focus_returns_to_where_it_came_from(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server)
    link = page.get_by_role("link", name=sample.title("download"), exact=True)
    link.click()
    expect(task_page(page, sample.title("download"))).to_be_visible()
    task_page(page, sample.title("download")).get_by_role("button", name="Close", exact=True).click()
    expect(link).to_be_focused()
    new = page.get_by_role("link", name="New task")
    new.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="New task")).to_be_visible()
    page.keyboard.press("Escape")
    expect(new).to_be_focused()
    activity = page.get_by_role("button", name="Activity", exact=True)
    activity.click()
    page.get_by_role("button", name="Close activity").click()
    expect(activity).to_be_focused()


# Screens


def test_seven_columns_fit_a_desktop_and_some_fold(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server)
    expect(page.locator("atb-column")).to_have_count(len(COLUMNS))
    right = 0.0
    for name in COLUMNS:
        box = column(page, name).bounding_box()
        assert box is not None
        assert box["x"] >= right
        right = box["x"] + box["width"]
        expect(column(page, name).get_by_role("heading", level=2)).to_be_visible()
    assert right <= DESKTOP["width"]
    assert wide(page) <= 0
    assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.columns'))") <= 0

    done = column(page, "done")
    done.get_by_role("button", name="Collapse Done").click()
    expect(done.locator("atb-card")).to_have_count(0)
    page.reload()
    expect(column(page, "queued").locator("atb-card").first).to_be_visible()
    expect(done.locator("atb-card")).to_have_count(0)
    done.get_by_role("button", name="Expand Done").click()
    expect(done.locator("atb-card").first).to_be_visible()


def test_a_phone_shows_one_column_at_a_time_and_tasks_on_the_whole_screen(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server, viewport=PHONE, has_touch=True, is_mobile=True)
    tabs = page.get_by_role("navigation", name="Columns").get_by_role("button")
    expect(tabs).to_have_count(len(COLUMNS))
    for name, label in (("in_progress", "In progress"), ("review", "Review"), ("queued", "Queued")):
        tabs.filter(has_text=label).tap()
        expect(page.locator("atb-column:visible")).to_have_count(1)
        expect(column(page, name).locator("atb-card").first).to_be_visible()
        assert wide(page) <= 0
    tabs.filter(has_text="Review").tap()
    card(page, sample.title("review")).tap()
    dialog = task_page(page, sample.title("review"))
    expect(dialog.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    assert dialog.bounding_box() == {"x": 0, "y": 0, **PHONE}
    assert dialog.evaluate("e => [...e.querySelectorAll('*')].filter(n => n.scrollWidth > innerWidth).length") == 0
    dialog.get_by_role("button", name="Close", exact=True).tap()
    for view in ("graph", "flow"):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=view.capitalize()).tap()
        expect(page.locator(f"atb-{view}")).to_be_visible()
        assert wide(page) <= 0


def test_nothing_moves_for_those_who_want_no_motion(server: InThread, visit: Visit) -> None:
    server.board.add("a task")
    script = "window.moved = 0; addEventListener('animationstart', () => { window.moved += 1; });"
    still, moving = (visit(server, script=script, reduced_motion=wish) for wish in ("reduce", "no-preference"))
    hold(server.board)
    for page in (still, moving):
        expect(column(page, "in_progress").locator("atb-card")).to_be_visible()
    eventually(lambda: moving.evaluate("moved > 0"))
    assert still.evaluate("[moved, document.getAnimations().length]") == [0, 0]


def test_times_are_those_of_the_board_wherever_the_browser_is(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task", due_at="2030-07-24T20:15:00Z").task
    page = visit(server, timezone_id="America/New_York")
    expect(card(page, "a task").get_by_title("25 Jul 2030, 04:15:00 GMT+8")).to_be_visible()
    page.goto(f"{server.url}?task={task.id}")
    dialog = task_page(page, "a task")
    expect(dialog.locator("time", has_text="in ").first).to_have_attribute("title", "25 Jul 2030, 04:15:00 GMT+8")
    dialog.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Deadline")).to_have_value("2030-07-25T04:15")
    dialog.get_by_label("Deadline").fill("2030-07-25T06:00")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("atb-task-timeline")).to_contain_text("set the deadline")
    assert server.board.show(task.id)["task"]["due_at"] == "2030-07-24T22:00:00.000+00:00"


# Pictures and the activity


def test_the_graph_shows_what_waits_for_what_and_opens_tasks(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server, "/?view=graph")
    nodes = page.locator("atb-graph .graph-node")
    blocked = nodes.filter(has_text=re.compile("waiting for"))
    expect(blocked.first).to_be_visible()
    tasks = {task.id: task for task in sample.server.board.list_tasks(limit=1_000).tasks}
    drawn = {node.get_attribute("data-id") for node in nodes.all()}
    waiting = {task.id for task in tasks.values() if task.blocked}
    assert waiting <= drawn
    edges = page.locator("atb-graph .graph-edge")
    pairs = {(edge.get_attribute("data-from"), edge.get_attribute("data-to")) for edge in edges.all()}
    assert pairs == {(one, other) for other in drawn if other for one in tasks[other].blocked_by if one in drawn}
    node = page.locator(f".graph-node[data-id='{sample.ids['publish']}']")
    node.focus()
    page.keyboard.press("Enter")
    expect(task_page(page, sample.title("publish"))).to_be_visible()
    page.keyboard.press("Escape")
    expect(node).to_be_focused()
    before = page.locator("atb-graph svg > g").first.get_attribute("transform")
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator("atb-graph svg > g").first).not_to_have_attribute("transform", before or "")
    page.get_by_role("button", name="List", exact=True).click()
    row = page.locator("atb-graph tbody tr").filter(has=page.get_by_role("rowheader", name=sample.title("publish")))
    expect(row).to_contain_text(sample.title("offline"))


def test_the_flow_page_draws_what_was_finished_and_opens_what_runs(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server, "/?view=flow")
    stats = sample.server.board.stats(days=14)
    finished = page.get_by_role("figure").filter(has_text="Finished per day")
    bars = sum(bool(day[status]) for day in stats["finished"] for status in ("done", "failed", "cancelled"))
    expect(finished.locator("rect.chart-bar")).to_have_count(bars)
    day = finished.get_by_role("slider")
    day.focus()
    page.keyboard.press("ArrowLeft")
    expect(day).to_have_attribute("aria-valuetext", re.compile(r"\d+ done|nothing finished"))
    finished.get_by_text("Show as table").click()
    expect(finished.locator("tbody tr")).to_have_count(14)
    for title, rows in (("Running now", len(stats["running"])), ("Agents", len(stats["by_agent"]))):
        panel = page.locator("section").filter(has=page.get_by_role("heading", name=title))
        expect(panel.locator("li, tbody tr")).to_have_count(rows)
    page.locator("atb-flow").get_by_role("link", name=sample.title("download")).click()
    expect(task_page(page, sample.title("download"))).to_be_visible()


def test_the_activity_is_told_in_sentences_and_goes_back_as_far_as_one_asks(sample: Sample, visit: Visit) -> None:
    page = visit(sample.server)
    page.keyboard.press("a")
    drawer = page.get_by_role("complementary", name="Activity")
    expect(drawer.get_by_text(f"jonas commented on {sample.title('time')}")).to_be_visible()
    claim = drawer.get_by_role("listitem").filter(has_text=f"is working on {sample.title('surface')}")
    expect(claim).to_have_count(1)
    expect(claim).to_contain_text("64\N{NO-BREAK SPACE}%")
    more = drawer.get_by_role("button", name="Load more")
    while more.is_visible():
        shown = drawer.get_by_role("listitem").count()
        more.click()
        expect(drawer.get_by_role("listitem").nth(shown)).to_be_attached()
    expect(drawer.get_by_role("listitem").last).to_contain_text(f"maria added {sample.title('format')}")
    drawer.get_by_role("link", name=sample.title("format")).last.click()
    expect(task_page(page, sample.title("format"))).to_be_visible()


# Accessibility


COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe-core that depend on the theme."""


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_to_complain_about(sample: Sample, visit: Visit, axe: str, screen: dict[str, int]) -> None:
    page = visit(sample.server, viewport=screen, color_scheme="light", reduced_motion="reduce")
    page.evaluate(axe)
    # Where to go, what to look at there, and by which sign one knows that it stands.
    places = (
        ("/", "html", "atb-card:visible"),
        (f"/?task={sample.ids['review']}", "atb-task-dialog dialog", ".timeline-entry"),
        ("/?new=1", "atb-new-task dialog", "input"),
        ("/?view=graph", "html", ".graph-node"),
        ("/?view=flow", "html", "rect.chart-bar"),
        ("/?activity=1", "atb-activity", "li"),
        ("?", "dialog.shortcuts", "kbd"),
    )
    found = {}
    for place, part, sign in places:
        go(page, place.removeprefix("?") or "/")
        if place == "?":
            page.keyboard.press("?")
        expect(page.locator(part).locator(sign).first).to_be_visible()
        found[place] = violations(page, part, {"rules": {"target-size": {"enabled": True}}}) + page.evaluate(DOUBLED)
        if screen is DESKTOP:  # a phone has the same colours
            page.emulate_media(color_scheme="dark")
            found[f"{place} in the dark"] = violations(page, part, {"runOnly": COLOURS})
            page.emulate_media(color_scheme="light")
    assert {place: problems for place, problems in found.items() if problems} == {}


DOUBLED = "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, at, all) => all.indexOf(id) < at)"
"""Ids that are there more than once."""


def violations(page: Page, part: str, options: dict[str, Any]) -> list[str]:
    """Return every rule of axe-core that an element in a part of the page breaks, with the element."""
    result = page.evaluate(
        "([part, options]) => axe.run(part, { resultTypes: ['violations'], ...options })", [part, options]
    )
    return [f"{rule['id']}: {node['html'][:200]}" for rule in result["violations"] for node in rule["nodes"]]
