"""Signing in on the page: by a link, by what it says, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browsing import card, expect, expect_page
from tests.serving import InThread, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browsing import Visit

pytest_plugins = ["tests.browsing"]


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[InThread]:
    """Serve a board with one task, and ask for keys."""
    with serving(tmp_path / "data", auth=True) as server:
        server.board.add("Write the parser")
        yield server


def code(server: InThread) -> str:
    return server.server.access.credentials.new_code()


def test_a_link_signs_the_browser_in_and_leaves_no_code_behind(asking: InThread, visit: Visit) -> None:
    visit.allow("401")
    page = visit(asking, f"/?view=board#code={code(asking)}")
    expect(card(page, "Write the parser")).to_be_visible()
    assert "code" not in page.url
    assert page.evaluate("document.cookie") == "", "no script can read the session"
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.reload()
    expect(card(page, "Write the parser")).to_be_visible()
    page.go_back()
    assert "code" not in page.url


def test_without_a_link_the_page_says_how_to_get_one_and_takes_it(asking: InThread, visit: Visit) -> None:
    visit.allow("401")
    page = visit(asking)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("atb open")).to_be_visible()
    expect(page.get_by_text("Write the parser")).to_have_count(0)
    field = page.get_by_label("Link or code")
    field.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("this sign-in code is wrong, expired or used")).to_be_visible()
    field.fill(f"http://elsewhere.example/#code={code(asking)}")
    page.get_by_role("button", name="Sign in").click()
    expect(card(page, "Write the parser")).to_be_visible()


def test_a_link_that_was_used_says_so(asking: InThread, visit: Visit) -> None:
    visit.allow("401")
    used = code(asking)
    assert asking.server.access.credentials.redeem(used)
    page = visit(asking, f"/#code={used}")
    expect(page.get_by_text("this sign-in code is wrong, expired or used")).to_be_visible()
    assert used not in page.url


def test_a_person_who_signed_in_approves_and_signs_out(asking: InThread, visit: Visit) -> None:
    visit.allow("401")
    task = asking.board.add("Reviewed", needs_approval=True, priority=5).task.id
    claim = asking.board.claim("ada", task=task)
    assert claim is not None
    assert claim.lease is not None
    asking.board.complete(task, claim.lease.token)
    page = visit(asking, f"/?task={task}#code={code(asking)}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(card(page, "Write the parser")).not_to_be_visible()
    assert page.context.cookies() == []


def test_a_session_that_ends_elsewhere_hides_the_board(asking: InThread, visit: Visit) -> None:
    visit.allow("401")
    page = visit(asking, f"/#code={code(asking)}")
    expect(card(page, "Write the parser")).to_be_visible()
    asking.server.access.credentials.end_sessions()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(card(page, "Write the parser")).not_to_be_visible()


def test_a_server_that_asks_for_nothing_shows_the_board_at_once(server: InThread, visit: Visit) -> None:
    server.board.add("Write the parser")
    page = visit(server)
    expect(card(page, "Write the parser")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("button", name="Sign out")).not_to_be_visible()
    expect_page(page).to_have_title("Agent Task Board")
