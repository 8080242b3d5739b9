"""The page of the board in Chromium where things go wrong: nothing may be written, nothing answers, text is hostile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_task_board import Actor, characters, printable
from agent_task_board.board import snapshot
from tests import showcase
from tests.browsing import column, expect, go, query, task_page
from tests.hidden_text import HIDING, SHOWN, characters_of
from tests.serving import serving
from tests.support import bring_to, hold, last_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browsing import Sample, Visit
    from tests.serving import InThread

pytest_plugins = ["tests.browsing"]

# When things go wrong


def test_a_board_for_reading_shows_nothing_that_would_be_refused(sample: Sample, visit: Visit) -> None:
    visit.allow("status of 403")
    with serving(sample.directory, read_only=True) as server:
        page = visit(server)
        expect(page.get_by_text("Read-only")).to_be_visible()
        expect(page.get_by_role("link", name="New task")).to_be_hidden()
        page.keyboard.press("n")
        assert query(page) == {}
        for name in ("review", "running", "delayed", "blocked", "failed", "done", "cancelled"):
            go(page, f"/?task={sample.ids[name]}")
            dialog = task_page(page, sample.title(name))
            expect(dialog.locator("atb-task-timeline")).to_contain_text("added the task")
            harmless = re.compile("^(Close|Copy .*|Load more|Show .*)$")
            names = (
                dialog.get_by_role("button")
                .filter(visible=True)
                .evaluate_all("all => all.map(one => one.ariaLabel || one.textContent)")
            )
            assert [text for text in names if not harmless.match(text)] == []
            expect(dialog.get_by_role("textbox")).to_have_count(0)
            page.keyboard.press("e")
            page.keyboard.press("c")
            expect(dialog.get_by_role("textbox")).to_have_count(0)
        page.goto(f"{server.url}?new=1")
        expect(page.get_by_text("Read-only")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        answer = page.evaluate(
            """async (id) => {
              const headers = { "Content-Type": "application/json" };
              const answer = await fetch(`/api/tasks/${id}/approve`, { method: "POST", headers, body: "{}" });
              return [answer.status, (await answer.json()).error.code];
            }""",
            sample.ids["review"],
        )
        assert answer == [403, "not_permitted"]
        page.close()


def test_a_missing_board_that_may_only_be_read_explains_itself(tmp_path: Path, visit: Visit) -> None:
    with serving(tmp_path / "nowhere", read_only=True) as server:
        page = visit(server)
        expect(page.get_by_role("main")).to_contain_text("there is no board at")
        expect(page.get_by_role("main")).to_contain_text(str(tmp_path / "nowhere"))
        page.close()


def test_a_lost_network_is_told_and_mended_without_losing_what_was_typed(server: InThread, visit: Visit) -> None:
    visit.allow("net::ERR_")
    task = server.board.add("a task").task
    page = visit(server, f"/?task={task.id}")
    page.evaluate("window.loadedOnce = true")
    dialog = task_page(page, "a task")
    box = dialog.get_by_label("New comment")
    box.fill("half a thought")
    page.context.set_offline(True)
    live = page.locator("atb-header [role=status]")
    expect(live).to_have_text(re.compile("Offline|Reconnecting"))
    box.press("Control+Enter")
    expect(dialog.locator("atb-task-comments").get_by_role("alert")).to_contain_text("not responding")
    expect(box).to_have_value("half a thought")
    server.board.update(task.id, title="another title")
    page.context.set_offline(False)
    expect(task_page(page, "another title")).to_be_visible()
    expect(live).to_have_text("Live")
    expect(page.get_by_label("New comment")).to_have_value("half a thought")
    page.get_by_label("New comment").press("Control+Enter")
    expect(page.get_by_label("New comment")).to_have_value("")
    assert last_event(server.board, task.id)["data"]["text"] == "half a thought"
    assert page.evaluate("window.loadedOnce")


def test_a_server_that_comes_back_finds_its_page_waiting(tmp_path: Path, visit: Visit) -> None:
    visit.allow("net::ERR_")
    with serving(tmp_path / "data") as server:
        task = server.board.add("a task").task
        page = visit(server, f"/?task={task.id}")
        dialog = task_page(page, "a task")
        dialog.get_by_role("button", name="Edit").click()
        dialog.get_by_label("Description").fill("typed before")
    live = page.locator("atb-header [role=status]")
    expect(live).to_have_text(re.compile("Offline|Reconnecting"))
    with serving(tmp_path / "data", port=server.port) as again:
        expect(live).to_have_text("Live")
        hold(again.board)
        expect(dialog.locator("atb-task-facts")).to_contain_text("ada")
        expect(dialog.get_by_label("Description")).to_have_value("typed before")
        page.close()


HOSTILE = """<img src=/x onerror="alert('{0}')">"""


def test_hostile_text_is_shown_as_text_wherever_it_stands(server: InThread, visit: Visit) -> None:
    board = server.board
    said = {
        name: HOSTILE.format(name)
        for name in "title body tag queue ada bob note comment error artifact param result key deed".split()
    }
    person = Actor(HOSTILE.format("person"), "human")
    before = board.add(said["title"], actor=person).task
    task = board.add(
        said["title"],
        body=f"{said['body']}\n\n<script>alert(1)</script>\n\n**{said['body']}** `{said['body']}`",
        tags=[said["tag"]],
        queue=said["queue"],
        params={said["param"]: said["param"]},
        dedupe_key=said["key"],
        needs_approval=True,
        actor=person,
    ).task
    held = hold(board, said["ada"], task=task.id)
    board.heartbeat(task.id, held.token, progress=10, note=said["note"])
    board.fail(task.id, held.token, said["error"], retry_in=0)
    board.comment(task.id, said["comment"], actor=person)
    board.add(said["title"], depends_on=[task.id], queue=said["queue"])
    board.cancel(before.id, note=said["deed"], actor=person)
    failed = hold(board, said["bob"], task=board.add(said["title"]).task.id)
    board.fail(failed.id, failed.token, said["error"], no_retry=True)
    held = hold(board, said["bob"], task=task.id)
    board.heartbeat(task.id, held.token, note=said["note"])

    page = visit(server)
    harmless(page)
    for name in ("title", "tag", "queue", "bob", "note", "error"):
        expect(page.locator("atb-board").get_by_text(said[name]).first).to_be_attached()
    page.keyboard.press("a")
    drawer = page.get_by_role("complementary", name="Activity")
    for name in ("title", "ada", "bob", "note", "error", "comment", "deed"):
        expect(drawer.get_by_text(said[name]).first).to_be_attached()
    harmless(page)
    page.keyboard.press("a")
    board.complete(task.id, held.token, result=said["result"], artifacts=[said["artifact"]], note=said["note"])
    page.goto(f"{server.url}?task={task.id}")
    dialog = task_page(page, said["title"])
    for name in set(said) - {"deed"}:
        expect(dialog.get_by_text(said[name]).first).to_be_attached()
    expect(dialog.get_by_text("<script>alert(1)</script>")).to_be_visible()
    harmless(page)
    dialog.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Description")).to_have_value(re.compile("^" + re.escape(said["body"])))
    harmless(page)
    for view in ("graph", "flow"):
        page.goto(f"{server.url}?view={view}")
        expect(
            page.locator(f"atb-{view}").get_by_text(said["title"] if view == "graph" else said["bob"]).first
        ).to_be_attached()
        harmless(page)


def harmless(page: Page) -> None:
    """Check that no text became an element of its own; requests and dialogs are complaints in any case."""
    own = "img[src='/static/favicon.svg'], script[src^='/static/js/']"
    found = page.evaluate(
        f"[...document.querySelectorAll('img, script, iframe')].filter(e => !e.matches(\"{own}\")).length"
    )
    assert found == 0
    assert page.locator("[onerror], [onclick], [onload]").count() == 0


TURNED = "pay \u202eevil\u202c to\u200bday \U000e0041"
TURNED_SHOWN = r"pay \u202eevil\u202c to\u200bday \udb40\udc41"


def test_hidden_characters_are_written_out_wherever_they_stand(server: InThread, visit: Visit) -> None:
    board = server.board
    task = board.add(TURNED, body=TURNED, params={"x": TURNED}, actor=Actor("the operator (approved)", "human")).task
    board.comment(task.id, TURNED, actor=Actor("the operator (approved)", "human"))
    held = hold(board, "ada", task=task.id)
    board.heartbeat(task.id, held.token, note=TURNED)
    page = visit(server)
    card = page.locator("atb-board .card-link")
    expect(card).to_have_text(TURNED_SHOWN)
    expect(page.locator("atb-board").get_by_title(TURNED_SHOWN).first).to_be_attached()
    page.keyboard.press("a")
    drawer = page.get_by_role("complementary", name="Activity")
    expect(drawer.get_by_text("\u201cthe operator (approved)\u201d").first).to_be_attached()
    page.goto(f"{server.url}?task={task.id}")
    dialog = task_page(page, TURNED_SHOWN)
    expect(dialog.get_by_text(TURNED_SHOWN)).to_have_count(5)  # title, body, params, comment, note
    shown = page.evaluate(
        "document.documentElement.innerText + [...document.querySelectorAll('[title]')].map(e => e.title)"
    )
    assert not set(shown) & set("\u202e\u202c\u200b\U000e0041")
    directions = (
        "[...document.querySelectorAll('.card-link, .task-title, .who')].map(e => getComputedStyle(e).unicodeBidi)"
    )
    assert set(page.evaluate(directions)) <= {"isolate", "plaintext", "isolate-override"}


def test_the_page_escapes_what_the_program_escapes(server: InThread, visit: Visit) -> None:
    page = visit(server)
    texts = [
        *SHOWN.values(),
        *(text for text, _ in HIDING.values()),
        *(f"a{chr(code)}b" for code in range(0x20, 0x3000)),
    ]
    texts += [f"a{char}b" for char in characters_of(characters.DEFAULT_IGNORABLE)]
    names = ["ada", "agent-7", "Zo\xeb", "Zoe\u0308", "the operator (approved)", "ada.", "", "a b", "\u5c0f\u6797"]
    told = page.evaluate(
        """async ([texts, names]) => {
          const { quotedName, visible } = await import("/static/js/printable.js");
          return [texts.map(visible), names.map(quotedName)];
        }""",
        [texts, names],
    )
    assert told[0] == [printable.escape_text(text) for text in texts]
    assert [name for name, shown in zip(names, told[1], strict=True) if name == shown] == [
        name for name in names if name == printable.name(name)
    ]


def test_only_web_addresses_become_links(server: InThread, visit: Visit) -> None:
    body = """
[one](javascript:alert(1)) [two](JaVaScRiPt:alert(1)) [three](data:text/html,<script>alert(1)</script>)
[four](vbscript:x) [five](//evil.example/) [six](/api/tasks) [seven](<java\tscript:alert(1)>) <javascript:alert(1)>
![picture](https://evil.example/picture.png)

[good](https://example.org/a?b=1) and https://example.org/bare
"""
    task = server.board.add("a task", body=body).task
    server.board.comment(task.id, "[one](javascript:alert(1))")
    dialog = task_page(visit(server, f"/?task={task.id}"), "a task")
    expect(dialog.get_by_role("link", name="good")).to_be_visible()
    links = dialog.locator(".prose a")
    found = links.evaluate_all("all => all.map(link => [link.getAttribute('href'), link.target, link.rel])")
    external = ["_blank", "noopener noreferrer"]
    assert [link for link in found if "evil.example/picture" not in link[0]] == [
        ["https://example.org/a?b=1", *external],
        ["https://example.org/bare", *external],
    ]
    for text in ("one", "three", "seven"):
        expect(dialog.locator(".prose").get_by_text(text).first).to_be_visible()


def test_the_policy_holds_scripts_styles_and_pictures_off(sample: Sample, visit: Visit) -> None:
    visit.allow("policy violated", "Content Security Policy")
    page = visit(sample.server)
    page.evaluate(
        """() => {
          const add = (tag, properties) => document.body.append(Object.assign(document.createElement(tag), properties));
          add("script", { textContent: "window.broken = true" });
          add("script", { src: "data:text/javascript,window.broken = true" });
          add("style", { textContent: "body { margin-left: 77px !important }" });
          add("img", { src: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>" });
          add("div", { innerHTML: "<b onclick='window.broken = true'>x</b>" });
          document.body.lastChild.firstChild.click();
        }"""
    )
    assert page.evaluate("[window.broken, getComputedStyle(document.body).marginLeft]") == [None, "0px"]
    for directive in ("script-src-elem", "style-src-elem", "img-src", "script-src-attr"):
        assert any(f"policy violated: {directive}" in text for text in visit.complaints), directive


# Many tasks


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Serve a board of 10,000 tasks."""
    directory = str(tmp_path_factory.mktemp("crowd") / "data")
    showcase.make(directory, 10_000)
    with serving(directory) as server:
        yield server


def test_ten_thousand_tasks_are_counted_and_come_as_one_scrolls(crowd: InThread, visit: Visit) -> None:
    page = visit(crowd)
    stats = crowd.board.stats()
    by_status, blocked = stats["by_status"], stats["blocked"]
    counts = {
        "queued": by_status["queued"] - blocked,
        "blocked": blocked,
        "in_progress": by_status["claimed"] + by_status["running"],
        **{name: by_status[name] for name in ("review", "done", "failed", "cancelled")},
    }
    assert sum(counts.values()) == 10_000
    for name, count in counts.items():
        expect(column(page, name).get_by_role("heading", level=2)).to_contain_text(f"{count:,}")
    done = column(page, "done").locator("atb-card")
    expect(done.first).to_be_visible()
    for _ in range(3):
        shown = done.count()
        assert shown < counts["done"] / 10
        done.last.scroll_into_view_if_needed()
        expect(done.nth(shown)).to_be_attached()
    page.get_by_role("searchbox").fill("snow layer")
    matching = crowd.board.list_tasks(search="snow layer", limit=10_000).tasks
    expect(page.get_by_role("status").filter(has_text=" of ")).to_have_text(f"{len(matching):,} of 10,000 tasks")
    expect(done.first).to_contain_text("snow layer")


def test_a_board_that_is_cut_off_says_so_and_counts_all(
    server: InThread, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SHOWN", 3)
    for _ in range(4):
        bring_to(server.board, "done")
    server.board.add("open")
    page = visit(server)
    expect(page.get_by_text("Showing only 3 tasks")).to_be_visible()
    expect(column(page, "done").get_by_role("heading", level=2)).to_contain_text("4")
    expect(column(page, "done").locator("atb-card")).to_have_count(2)
