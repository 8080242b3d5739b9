"""The page of the board in Chromium: what people see of the work of others, and what they do with a task."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agent_task_board import instants
from tests.browsing import card, column, expect, expect_page, task_page
from tests.command_line import Terminal
from tests.support import Clock, bring_to, hold, last_event, open_board, refused
from tests.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page, Route

    from tests.browsing import Visit
    from tests.serving import InThread

pytest_plugins = ["tests.browsing"]


def freeze(page: Page) -> None:
    """Let the page learn nothing new by itself: every look at the board finds it unchanged."""
    page.route("**/api/board", lambda route: route.fulfill(status=304))


def press_button(place: Page | Locator, name: str) -> None:
    place.get_by_role("button", name=name, exact=True).click()


# What others do


def test_a_claim_by_another_process_shows_as_a_live_card_without_a_reload(
    tmp_path: Path, server: InThread, visit: Visit
) -> None:
    server.board.add("Write the parser")
    page = visit(server)
    expect(card(column(page, "queued"), "Write the parser")).to_be_visible()
    page.evaluate("window.loadedOnce = true")
    answer = Terminal(tmp_path).process("claim", "--agent", "ada", "--data-dir", str(tmp_path / "data"))
    live = card(column(page, "in_progress"), "Write the parser")
    expect(live).to_be_visible()
    expect(live).to_contain_text("ada")
    expect(column(page, "queued").locator("atb-card")).to_have_count(0)

    lease = answer.data["lease"]
    server.board.heartbeat(answer.data["task"]["id"], lease["token"], progress=40, note="grammar written")
    expect(live.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
    expect(live).to_contain_text("grammar written")
    assert page.evaluate("window.loadedOnce")


def test_counts_in_the_column_heads_follow_the_tasks(server: InThread, visit: Visit) -> None:
    first = server.board.add("first").task
    server.board.add("second", depends_on=[first.id])
    page = visit(server)
    for name, count in {"queued": 1, "blocked": 1, "in_progress": 0}.items():
        expect(column(page, name).get_by_role("heading", level=2)).to_contain_text(str(count))
    held = hold(server.board)
    server.board.complete(held.id, held.token)
    for name, count in {"queued": 1, "blocked": 0, "done": 1}.items():
        expect(column(page, name).get_by_role("heading", level=2)).to_contain_text(str(count))


def test_what_happens_is_told_to_screen_readers(server: InThread, visit: Visit) -> None:
    server.board.add("Write the parser")
    page = visit(server)
    hold(server.board)
    expect(page.locator("[aria-live=polite]")).to_contain_text("ada claimed Write the parser")


def test_an_agent_that_has_gone_silent_is_seen_at_a_glance(tmp_path: Path, server: InThread, visit: Visit) -> None:
    clock = Clock()
    clock.now = instants.now() - 12 * instants.MINUTE
    with open_board(tmp_path / "data", clock) as board:
        for title, lease in {"live": "1h", "silent": "15m", "expired": "1m"}.items():
            hold(board, task=board.add(title).task.id, lease=lease)
    page = visit(server)
    expect(card(page, "silent")).to_contain_text("Silent for 12 min")
    expect(card(page, "expired")).to_contain_text("Expired 11 min ago")
    expect(card(page, "live")).not_to_contain_text("Silent")
    expect(column(page, "in_progress").locator("atb-card").first).to_contain_text("expired")
    expect(page.get_by_role("region", name="Needs you").get_by_role("listitem")).to_have_text([re.compile("expired")])


def test_the_tab_counts_what_needs_a_person(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "review")
    bring_to(server.board, "failed")
    server.board.add("late", due_at="2020-01-01")
    page = visit(server)
    expect_page(page).to_have_title("(3) Agent Task Board")
    server.board.approve(held.id)
    expect_page(page).to_have_title("(2) Agent Task Board")
    strip = page.get_by_role("region", name="Needs you")
    expect(strip.get_by_role("listitem")).to_have_count(2)
    strip.get_by_role("button", name="Dismiss a task").click()
    expect(strip.get_by_role("listitem")).to_have_count(1)
    expect_page(page).to_have_title("(1) Agent Task Board")


NOTIFICATIONS = """
window.asked = 0;
window.shown = [];
window.away = false;
window.Notification = class extends EventTarget {
  static permission = "default";
  static async requestPermission() { window.asked += 1; return this.permission = "granted"; }
  constructor(title, { body }) { super(); window.shown.push(`${title}: ${body}`); }
};
Object.defineProperty(document, "hidden", { get: () => window.away });
"""


def test_notifications_are_asked_for_by_a_click_and_come_while_one_looks_elsewhere(
    server: InThread, visit: Visit
) -> None:
    bring_to(server.board, "review")
    page = visit(server, script=NOTIFICATIONS)
    expect_page(page).to_have_title("(1) Agent Task Board")
    assert page.evaluate("[asked, shown.length]") == [0, 0]
    bell = page.get_by_role("button", name="Notifications")
    bell.click()
    expect(bell).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("asked") == 1
    server.board.add("late", due_at="2020-01-01")
    page.evaluate("away = true; document.dispatchEvent(new Event('visibilitychange'))")
    eventually(lambda: page.evaluate("shown.length") == 1)
    assert page.evaluate("shown") == ["Overdue: late"]


# Review


def test_work_in_review_is_approved_with_a_note(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "review")
    page = visit(server)
    page.get_by_role("region", name="Needs you").get_by_role("link").click()
    dialog = task_page(page, "a task")
    dialog.get_by_label("Note").fill("well done")
    press_button(dialog, "Approve")
    expect(dialog.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    expect(dialog.locator("atb-task-timeline")).to_contain_text("well done")
    event = last_event(server.board, held.id)
    assert (event["kind"], event["actor_kind"], event["data"]["note"]) == ("approved", "human", "well done")
    page.keyboard.press("Escape")
    expect(card(column(page, "done"), "a task")).to_be_visible()
    expect(page.get_by_role("region", name="Needs you")).to_contain_text("Nothing needs you")


def test_work_is_returned_with_a_note_only(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "review")
    page = visit(server, f"/?task={held.id}")
    dialog = task_page(page, "a task")
    press_button(dialog, "Reject")
    note = dialog.get_by_label("Note")
    expect(note).to_have_attribute("aria-invalid", "true")
    expect(note).to_be_focused()
    assert server.board.show(held.id)["task"]["status"] == "review"
    note.fill("the colours are missing")
    press_button(dialog, "Reject")
    expect(dialog.locator("atb-task-timeline")).to_contain_text("rejected the task")
    event = last_event(server.board, held.id)
    assert (event["kind"], event["data"]["note"]) == ("rejected", "the colours are missing")
    expect(dialog.locator(".part-returned")).to_contain_text("the colours are missing")
    expect(dialog.locator(".attempt")).to_contain_text("Returned")
    expect(dialog.locator(".attempt")).not_to_contain_text("Completed")
    page.keyboard.press("Escape")
    expect(card(page, "a task")).to_contain_text(re.compile("Returned by .*the colours are missing", re.DOTALL))


def test_a_stuck_task_says_for_which_ended_task_it_waits(server: InThread, visit: Visit) -> None:
    first = server.board.add("choose").task.id
    second = server.board.add("write", depends_on=[first]).task.id
    server.board.add("print", depends_on=[second])
    server.board.cancel(first)
    server.board.archive_task(first)
    page = visit(server)
    strip = page.get_by_role("region", name="Needs you")
    expect(strip.get_by_role("listitem")).to_have_count(2)
    expect(strip).to_contain_text("Stuck: waits for choose, which was cancelled")
    expect(card(column(page, "blocked"), "print")).to_contain_text("Waits for choose, which was cancelled")
    strip.get_by_role("link").first.click()
    dialog = task_page(page, "write")
    expect(dialog.locator(".part-stuck")).to_contain_text("Waits for choose, which was cancelled. Retry that task")
    server.board.retry(first)
    expect(dialog.locator(".part-stuck")).to_be_hidden()


def test_the_name_of_the_settings_is_written_beside_what_one_does(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "review")
    page = visit(server)
    press_button(page, "Settings")
    page.get_by_label("Your name").fill("nora")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    card(page, "a task").click()
    press_button(task_page(page, "a task"), "Approve")
    expect(task_page(page, "a task").locator("atb-task-timeline")).to_contain_text("nora approved")
    assert last_event(server.board, held.id)["actor"] == "nora"
    page.goto(server.url)
    press_button(page, "Settings")
    expect(page.get_by_label("Your name")).to_have_value("nora")


# Verbs


def test_a_running_task_is_taken_from_its_holder_for_another_agent(server: InThread, visit: Visit) -> None:
    held = bring_to(server.board, "running")
    page = visit(server, f"/?task={held.id}")
    dialog = task_page(page, "a task")
    press_button(dialog, "Reassign")
    expect(dialog).to_contain_text("ada is working on this task and will lose the lease")
    dialog.get_by_label("Assign to").fill("bob")
    dialog.get_by_label("Note (optional)").fill("ada is on holiday")
    dialog.get_by_label("Note (optional)").press("Control+Enter")
    expect(dialog.locator("atb-task-timeline")).to_contain_text("ada is on holiday")
    task = server.board.show(held.id)["task"]
    assert (task["status"], task["assignee"], task["claimed_by"]) == ("queued", "bob", None)
    with refused("lease_lost"):
        server.board.heartbeat(held.id, held.token)


def test_a_task_is_cancelled_and_retried(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task").task
    server.board.add("the next one", depends_on=[task.id])
    page = visit(server, f"/?task={task.id}")
    dialog = task_page(page, "a task")
    press_button(dialog, "Cancel task")
    expect(dialog).to_contain_text("One task depends on it and will stay blocked.")
    press_button(dialog, "Keep task")
    expect(dialog.get_by_role("button", name="Cancel task")).to_be_focused()
    press_button(dialog, "Cancel task")
    press_button(dialog, "Yes, cancel it")
    expect(dialog.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    assert server.board.show(task.id)["task"]["status"] == "cancelled"
    press_button(dialog, "Retry")
    expect(dialog.get_by_role("button", name="Reassign", exact=True)).to_be_visible()
    assert server.board.show(task.id)["task"]["status"] == "queued"


def test_a_comment_is_written_and_read_as_markdown(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task").task
    page = visit(server, f"/?task={task.id}")
    dialog = task_page(page, "a task")
    box = dialog.get_by_label("New comment")
    box.fill("See **this**.")
    box.press("Control+Enter")
    comments = dialog.locator("atb-task-comments")
    expect(comments.locator("strong")).to_have_text("this")
    expect(box).to_have_value("")
    server.board.comment(task.id, "Seen.")
    expect(comments).to_contain_text("Seen.")
    assert last_event(server.board, task.id)["data"]["text"] == "Seen."


def test_everything_that_is_known_of_a_task_is_on_its_page(server: InThread, visit: Visit) -> None:
    board = server.board
    first = board.add("first").task
    task = board.add(
        "a task", body="# Goal\n\nIt *works*.", params={"depth": {"limit": 7}}, depends_on=[first.id], tags=["parser"]
    ).task
    board.add("last", depends_on=[task.id])
    held = hold(board, task=first.id)
    board.complete(first.id, held.token)
    held = hold(board, task=task.id)
    board.heartbeat(task.id, held.token, progress=30, note="half of it")
    board.fail(task.id, held.token, "no network", retry_in=0)
    held = hold(board, "bob", task=task.id)
    board.complete(task.id, held.token, result={"tests": 12}, artifacts=["report.md"], note="all green")
    dialog = task_page(visit(server, f"/?task={task.id}"), "a task")
    expect(dialog.get_by_role("heading", name="Goal")).to_be_visible()
    expect(dialog.locator("em")).to_have_text("works")
    for heading, words in {
        "Params": "limit 7",
        "Result": "tests 12",
        "Artifacts": "report.md",
        "Depends on": "first",
        "Needed by": "last",
        "Attempts": "no network",
        "Timeline": "bob completed the task",
    }.items():
        part = dialog.locator("section").filter(has=dialog.page.get_by_role("heading", name=heading, exact=True))
        expect(part).to_contain_text(words)
    expect(dialog.locator(".attempt")).to_have_count(2)
    expect(dialog.locator("atb-task-facts")).to_contain_text("parser")


def test_a_long_history_is_loaded_piece_by_piece(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task").task
    for number in range(1, 46):
        server.board.update(task.id, priority=number)
    dialog = task_page(visit(server, f"/?task={task.id}"), "a task")
    timeline = dialog.locator("atb-task-timeline")
    expect(timeline).to_contain_text("from 44 to 45")
    seen = 0
    while timeline.get_by_role("button", name="Load more").is_visible():
        seen = timeline.locator("li.timeline-entry").count()
        press_button(timeline, "Load more")
        expect(timeline.locator("li.timeline-entry").nth(seen)).to_be_attached()
    assert seen > 0
    expect(timeline.locator("li.timeline-entry")).to_have_count(46)
    expect(timeline.locator("li.timeline-entry").last).to_contain_text("added")


# Forms


def test_a_task_is_edited_and_only_what_was_touched_is_sent(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task", priority=1, due_at="2030-01-01T00:00:00Z").task
    page = visit(server, f"/?task={task.id}")
    dialog = task_page(page, "a task")
    press_button(dialog, "Edit")
    expect(dialog.get_by_label("Title")).to_be_focused()
    dialog.get_by_label("Tags").press_sequentially("parser,")
    dialog.get_by_label("Priority").fill("7")
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        press_button(dialog, "Save")
    assert sent.value.post_data_json == {"priority": 7, "tags": ["parser"], "if_version": task.version}
    expect(dialog.locator("atb-task-timeline")).to_contain_text("changed the priority and tags")
    assert server.board.show(task.id)["task"]["tags"] == ["parser"]


def test_edit_is_not_lost_that_was_asked_for_before_the_whole_task_was_there(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task").task
    page = visit(server)
    held: list[Route] = []
    page.route(f"**/api/tasks/{task.id}?*", lambda route: held.append(route) if not held else route.continue_())
    page.get_by_role("link", name="a task").click()
    dialog = task_page(page, "a task")
    press_button(dialog, "Edit")
    eventually(lambda: page.evaluate("1") and held)
    expect(dialog.get_by_label("Title")).to_be_hidden()
    held[0].continue_()
    expect(dialog.get_by_label("Title")).to_have_value("a task")


def test_what_somebody_else_changed_meanwhile_is_shown_and_nothing_typed_is_lost(
    server: InThread, visit: Visit
) -> None:
    visit.allow("status of 409")
    task = server.board.add("a task", body="old").task
    page = visit(server, f"/?task={task.id}")
    dialog = task_page(page, "a task")
    press_button(dialog, "Edit")
    dialog.get_by_label("Title").fill("my title")
    dialog.get_by_label("Description").fill("my words")
    server.board.update(task.id, title="their title", priority=9)
    press_button(dialog.or_(task_page(page, "their title")), "Save")
    dialog = task_page(page, "their title")
    alert = dialog.get_by_role("alert").filter(has_text="changed while you were editing")
    expect(alert).to_contain_text("their title")
    expect(alert).to_contain_text("You changed this too")
    expect(dialog.get_by_label("Title")).to_have_value("my title")
    expect(dialog.get_by_label("Description")).to_have_value("my words")
    expect(dialog.get_by_label("Priority")).to_have_value("9")
    press_button(dialog, "Save my changes anyway")
    expect(task_page(page, "my title")).to_be_visible()
    after = server.board.show(task.id)["task"]
    assert (after["title"], after["body"], after["priority"]) == ("my title", "my words", 9)


def test_leaving_typed_text_asks_first(server: InThread, visit: Visit) -> None:
    task = server.board.add("a task").task
    page = visit(server)
    card(page, "a task").click()
    dialog = task_page(page, "a task")
    box = dialog.get_by_label("New comment")
    box.fill("half a thought")
    for leave in (lambda: page.keyboard.press("Escape"), page.go_back):
        leave()
        expect(dialog.get_by_role("alert")).to_contain_text("You have unsaved changes.")
        press_button(dialog, "Keep editing")
        expect(box).to_have_value("half a thought")
    page.keyboard.press("Escape")
    press_button(dialog, "Discard changes")
    expect(dialog).to_be_hidden()
    assert server.board.show(task.id)["comments"] == []


def test_a_new_task_waits_for_the_chosen_one(server: InThread, visit: Visit) -> None:
    first = server.board.add("Write the parser").task
    server.board.add("something else")
    page = visit(server)
    page.get_by_role("link", name="New task").click()
    dialog = page.get_by_role("dialog", name="New task")
    expect(dialog.get_by_label("Title")).to_be_focused()
    dialog.get_by_label("Title").fill("Test the parser")
    dialog.get_by_label("Queue").fill("core")
    dialog.get_by_label("Tags").fill("tests")
    dialog.get_by_label("Depends on").press_sequentially("parser")
    dialog.get_by_role("option", name="Write the parser").click()
    dialog.get_by_label("Params").fill(json.dumps({"deep": [1, 2]}))
    dialog.get_by_label("Needs approval").check()
    press_button(dialog, "Add task")
    expect(task_page(page, "Test the parser")).to_be_visible()
    page.keyboard.press("Escape")
    expect(card(column(page, "blocked"), "Test the parser")).to_contain_text("Waiting for Write the parser")
    [task] = server.board.list_tasks(queue="core", full=True).tasks
    assert (task.blocked_by, task.tags, task.params) == ([first.id], ["tests"], {"deep": [1, 2]})
    assert task.needs_approval


# Refusals


def test_what_cannot_be_is_said_at_its_field_by_the_page_or_by_the_server(server: InThread, visit: Visit) -> None:
    visit.allow("status of 400")
    page = visit(server, "/?new=1")
    dialog = page.get_by_role("dialog", name="New task")
    title, params, assignee = (dialog.get_by_label(label) for label in ("Title", "Params", "Assignee"))
    params.fill('{"a": ')
    press_button(dialog, "Add task")
    expect(title).to_be_focused()
    expect(title).to_have_attribute("aria-invalid", "true")
    expect(dialog.locator(".field", has=page.get_by_label("Params")).get_by_role("alert")).to_contain_text(
        "Invalid JSON"
    )

    params.fill('{"a": 1}')
    title.fill("a task")
    assignee.fill("bob\tada")
    press_button(dialog, "Add task")
    expect(assignee).to_be_focused()
    expect(assignee).to_have_attribute("aria-invalid", "true")
    expect(dialog.locator(".field", has=page.get_by_label("Assignee")).get_by_role("alert")).to_contain_text("assignee")
    expect(title).to_have_value("a task")
    assert server.board.list_tasks().tasks == []


def test_a_cycle_is_refused_in_the_form(server: InThread, visit: Visit) -> None:
    visit.allow("status of 409")
    first = server.board.add("first").task
    server.board.add("second", depends_on=[first.id])
    dialog = task_page(visit(server, f"/?task={first.id}"), "first")
    press_button(dialog, "Edit")
    expect(dialog.get_by_label("Title")).to_be_focused()
    dialog.get_by_label("Depends on").press_sequentially("second")
    dialog.get_by_label("Depends on").press("Enter")
    press_button(dialog, "Save")
    expect(dialog.locator("atb-task-form").get_by_role("alert").filter(visible=True)).to_contain_text("cycle")
    expect(dialog.get_by_role("button", name="Remove dependency second")).to_be_visible()
    assert server.board.show(first.id)["task"]["blocked_by"] == []


def test_a_decision_that_came_too_late_is_refused_beside_its_button(server: InThread, visit: Visit) -> None:
    visit.allow("status of 409")
    held = bring_to(server.board, "review")
    page = visit(server, f"/?task={held.id}")
    dialog = task_page(page, "a task")
    dialog.get_by_label("Note").fill("my opinion")
    freeze(page)
    server.board.approve(held.id)
    alert = dialog.locator(".action-panel").get_by_role("alert").filter(visible=True)
    for button in ("Approve", "Reject"):
        with page.expect_response(lambda answer: answer.status == 409):
            press_button(dialog, button)
        expect(alert).to_contain_text('is "done", not "review"')
        expect(dialog.get_by_label("Note")).to_have_value("my opinion")
    page.unroute("**/api/board")
    expect(alert).to_have_count(0)
    expect(page.locator(".toast-error")).to_contain_text('is "done", not "review"')
    expect(dialog.get_by_label("New comment")).to_have_value("my opinion")


def test_escape_pressed_twice_keeps_what_was_typed_and_the_cursor_in_it(server: InThread, visit: Visit) -> None:
    page = visit(server, "/?new=1")
    title = page.get_by_role("dialog").get_by_label("Title")
    title.fill("half a thought")
    for _ in range(2):
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Keep editing")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Keep editing")).to_be_hidden()
    expect(title).to_be_focused()
    expect(title).to_have_value("half a thought")


def test_a_board_in_motion_takes_no_letter_out_of_the_search(server: InThread, visit: Visit) -> None:
    server.board.add("walking time of a route")
    page = visit(server)
    search = page.get_by_role("searchbox")
    typed = "walking time of a route"
    for letter in typed:
        server.board.add(f"another {letter}")
        search.press_sequentially(letter)
        page.evaluate("new Promise((done) => setTimeout(done, 100))")
    expect(search).to_have_value(typed)
    expect(card(column(page, "queued"), typed)).to_be_visible()
