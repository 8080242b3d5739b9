"""A server that asks for keys: who comes in, as whom, and what becomes of secrets."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import socket
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.web import access, addresses, guesses, peers, routes
from tests.command_line import Terminal
from tests.other_user import NOBODY, ask_as_nobody, needs_another_user
from tests.serving import Answer, InThread, Wire, process, serving
from tests.support import bring_to, refused
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PUBLIC = ("/", "/static/favicon.svg", "/static/js/main.js", "/api", "/api/openapi.json", "/healthz")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[InThread]:
    """Return a server that asks for keys, for one test."""
    with serving(tmp_path / "data", auth=True) as server:
        yield server


def key(server: InThread, name: str = "ada") -> bytes:
    """Return the header line of a new key."""
    return f"Authorization: Bearer {server.server.access.credentials.add_key(name)[1]}".encode()


def sign_in(server: InThread, *fields: bytes) -> tuple[Answer, bytes]:
    """Sign in by a new code; return the answer and the header line of its cookie."""
    with server.wire() as client:
        answer = client.post("/api/session", {"code": server.server.access.credentials.new_code()}, *fields)
    assert answer.data == {"signed_in": True}
    return answer, b"Cookie: " + (answer.header("Set-Cookie") or "").partition(";")[0].encode()


def value_of(cookie: bytes) -> str:
    return cookie.partition(b"=")[2].decode()


def get(server: InThread, path: str, *fields: bytes) -> Answer:
    with server.wire() as client:
        return client.get(path, *fields)


def post(server: InThread, path: str, body: object, *fields: bytes, method: str = "POST") -> Answer:
    with server.wire() as client:
        return client.post(path, body, *fields, method=method)


# Without a key


def test_without_a_key_only_the_page_and_the_documentation_are_there(own: InThread) -> None:
    task = own.board.add("secret").task.id
    before = own.board.revision()
    for path in PUBLIC:
        assert get(own, path).status == 200, path
    for route in routes.ROUTES:
        if route.is_public:
            assert route.path in PUBLIC
            continue
        path = route.path.replace("{id}", task)
        with own.wire() as client:
            body: dict[str, Any] = dict.fromkeys(route.required, "x")
            answer = client.post(path, body, method=route.method) if route.writes else client.get(path)
            assert (answer.status, answer.code) == (401, "not_permitted"), path
            assert answer.header("WWW-Authenticate") == 'Bearer realm="atb"'
            assert b"secret" not in answer.content
    assert own.board.revision() == before


def test_what_is_public_tells_nothing_of_the_board(own: InThread) -> None:
    assert get(own, "/healthz").data["data_dir"] is None
    assert get(own, "/healthz", key(own)).data["data_dir"] is not None
    assert own.server.access.credentials.board_id.encode() not in get(own, "/").content


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Bearer ",
        "Authorization: Bearer",
        "Authorization: KEY",
        "Authorization: Basic KEY",
        "Authorization: Token KEY",
        "X-Api-Key: KEY",
        "Cookie: atb_session=KEY",
        "Cookie: COOKIE=KEY",
        "Cookie: COOKIE=",
        "Authorization: Bearer KEYx",
        "Authorization: Bearer KE",
        "Authorization: Bearer {KEY}",
        "Proxy-Authorization: Bearer KEY",
    ],
)
def test_what_is_no_key_opens_nothing(own: InThread, line: str) -> None:
    right = key(own).decode().rpartition(" ")[2]
    line = line.replace("KEY", right).replace("KE", right[:-1]).replace("COOKIE", own.server.access.cookie)
    assert get(own, "/api/board", line.encode()).status == 401


def test_a_key_in_the_address_opens_nothing_and_is_not_logged(own: InThread) -> None:
    right = key(own).decode().rpartition(" ")[2]
    for path in (f"/api/board?key={right}", f"/api/board?access_token={right}", f"/api/events?token={right}"):
        assert get(own, path).status == 401
    assert right not in "\n".join(own.log)


def test_a_repeated_authorization_is_refused(own: InThread) -> None:
    assert get(own, "/api/board", key(own), key(own, "bob")).status == 400


# Keys


def test_a_key_acts_as_its_agent_whatever_it_says(own: InThread) -> None:
    ada = key(own, "Ada")
    task = post(own, "/api/tasks", {"title": "t", "needs_approval": True}, ada).data["task"]
    assert task["created_by"] == "Ada"
    claimed = post(own, "/api/claim", {}, ada).data
    assert claimed["task"]["claimed_by"] == "Ada"
    path = f"/api/tasks/{task['id']}"
    for body in ({"agent": "bob"}, {"actor": "maria"}, {"agent": "ada", "actor": "maria"}, {"actor": "system"}):
        answer = post(own, f"{path}/comments", {"text": "x", **body}, ada)
        assert (answer.status, answer.code) == (403, "not_permitted"), body
    for body in ({}, {"agent": "ADA"}, {"agent": "me"}, {"actor": "ada"}):
        event = post(own, f"{path}/comments", {"text": "x", **body}, ada).data["event"]
        assert (event["actor"], event["actor_kind"]) == ("Ada", "agent"), body
    done = post(own, f"{path}/complete", {"token": claimed["lease"]["token"]}, ada).data["task"]
    assert done["status"] == "review"


def test_a_key_claims_for_nobody_else(own: InThread) -> None:
    ada, task = key(own), own.board.add("t").task.id
    for body in ({"status": "claimed", "agent": "bob"}, {"status": "claimed", "assignee": "bob"}):
        assert post(own, f"/api/tasks/{task}", body, ada, method="PATCH").status == 403
    assert post(own, f"/api/tasks/{task}/claim", {"agent": "bob"}, ada).status == 403
    assert post(own, "/api/claim", {"agent": "bob"}, ada).status == 403
    assert own.board.show(task)["task"]["status"] == "queued"
    answer = post(own, f"/api/tasks/{task}", {"status": "claimed", "assignee": "ada"}, ada, method="PATCH")
    assert answer.data["task"]["claimed_by"] == "ada"


@pytest.mark.parametrize("body", [{}, {"actor": "maria"}, {"actor": "ada"}, {"agent": "ada"}])
def test_a_key_does_nothing_that_is_for_people(own: InThread, body: dict[str, Any]) -> None:
    bob = key(own, "bob")
    task = bring_to(own.board, "review").id
    before = own.board.revision()
    for verb, more in (("approve", {}), ("reject", {"note": "no"}), ("cancel", {})):
        answer = post(own, f"/api/tasks/{task}/{verb}", {**more, **body}, bob)
        assert (answer.status, answer.code) == (403, "not_permitted"), verb
    cleared = post(own, f"/api/tasks/{own.board.add('t', needs_approval=True).task.id}", {"needs_approval": False}, bob)
    assert cleared.status == 405
    other = own.board.add("t", needs_approval=True).task.id
    answer = post(own, f"/api/tasks/{other}", {"needs_approval": False, **body}, bob, method="PATCH")
    assert (answer.status, answer.code) == (403, "not_permitted")
    assert own.board.show(task)["task"]["status"] == "review"
    assert own.board.revision() == before + 2, "but for the two tasks that the test made"


def test_me_is_the_agent_of_the_key(own: InThread) -> None:
    ada = key(own)
    post(own, "/api/tasks", {"title": "mine", "assignee": "me"}, ada)
    post(own, "/api/tasks", {"title": "other"}, ada)
    assert [task["title"] for task in get(own, "/api/tasks?assignee=me", ada).data["tasks"]] == ["mine"]


def test_a_key_that_is_revoked_opens_nothing_from_the_next_request_on(own: InThread) -> None:
    ada = key(own)
    with own.wire() as client:
        assert client.get("/api/board", ada).status == 200
        own.server.access.credentials.revoke_keys("ada")
        assert client.get("/api/board", ada).status == 401


def test_a_key_without_need_is_its_agent_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        task = bring_to(server.board, "review").id
        assert post(server, f"/api/tasks/{task}/approve", {}, key(server, "bob")).status == 403
        assert get(server, "/api/board", b"Authorization: Bearer atb_wrong").status == 401
        assert get(server, "/api/board", b"Authorization: Basic eDp5").status == 200, "of a proxy in front"
        assert get(server, "/api/board", b"Authorization: Bearer eyJh.b.c").status == 200, "of a proxy in front"
        assert post(server, f"/api/tasks/{task}/approve", {}).status == 200


# Sessions


def test_a_session_is_a_person(own: InThread) -> None:
    answer, cookie = sign_in(own)
    attributes = (answer.header("Set-Cookie") or "").split("; ")[1:]
    assert attributes == ["Path=/", "Max-Age=7776000", "HttpOnly", "SameSite=Strict"]
    assert own.server.access.cookie == f"atb_session_{own.board.board_id()}"
    task = bring_to(own.board, "review").id
    assert post(own, f"/api/tasks/{task}/approve", {}, cookie).data["task"]["status"] == "done"
    assert own.board.events(task=task)["events"][-1]["actor_kind"] == "human"


def test_who_presents_a_key_beside_a_session_is_the_agent(own: InThread) -> None:
    _, cookie = sign_in(own)
    task = bring_to(own.board, "review").id
    assert post(own, f"/api/tasks/{task}/approve", {}, cookie, key(own, "bob")).status == 403


def test_a_code_works_once(own: InThread) -> None:
    code = own.server.access.credentials.new_code()
    assert post(own, "/api/session", {"code": code}).status == 200
    answer = post(own, "/api/session", {"code": code})
    assert (answer.status, answer.code) == (401, "not_permitted")
    assert answer.header("Set-Cookie") is None
    assert code not in "\n".join(own.log)


def test_signing_in_never_takes_over_a_session_that_the_browser_brought(own: InThread) -> None:
    name = own.server.access.cookie
    chosen = "f" * 64
    answer, cookie = sign_in(own, f"Cookie: {name}={chosen}".encode())
    assert chosen not in (answer.header("Set-Cookie") or "")
    assert get(own, "/api/board", f"Cookie: {name}={chosen}".encode()).status == 401
    _, again = sign_in(own, cookie)
    assert value_of(again) != value_of(cookie)
    assert get(own, "/api/board", cookie).status == 401, "the browser's old session has ended"
    assert get(own, "/api/board", again).status == 200


def test_cookies_that_another_site_of_the_host_planted_keep_nobody_out(own: InThread) -> None:
    _, cookie = sign_in(own)
    name = own.server.access.cookie
    planted = "; ".join(f"{name}={number:064}" for number in range(100))
    assert (
        get(own, "/api/board", b"Cookie: " + planted.encode() + b"; " + cookie.removeprefix(b"Cookie: ")).status == 200
    )
    assert get(own, "/api/board", cookie).status == 200
    assert sign_in(own)[0].status == 200, "codes are counted apart"


def test_a_cookie_of_another_board_on_another_port_opens_nothing(own: InThread, tmp_path: Path) -> None:
    with serving(tmp_path / "other", auth=True) as other:
        _, theirs = sign_in(other)
        assert other.server.access.cookie != own.server.access.cookie
        assert get(own, "/api/board", theirs).status == 401
        renamed = f"Cookie: {own.server.access.cookie}={value_of(theirs)}".encode()
        assert get(own, "/api/board", renamed).status == 401
        _, ours = sign_in(own)
        both = b"Cookie: " + theirs.removeprefix(b"Cookie: ") + b"; " + ours.removeprefix(b"Cookie: ")
        assert get(own, "/api/board", both).status == get(other, "/api/board", both).status == 200
        assert get(own, "/api/board", key(other)).status == 401


def test_a_page_of_another_origin_signs_nobody_in_or_out(own: InThread) -> None:
    code = own.server.access.credentials.new_code()
    _, cookie = sign_in(own)
    for line in (b"Origin: http://evil.example", b"Sec-Fetch-Site: same-site", b"Origin: http://127.0.0.1:1"):
        assert post(own, "/api/session", {"code": code}, line).status == 403
        assert post(own, "/api/session/end", {}, cookie, line).status == 403
    assert get(own, "/api/board", cookie).status == 200
    assert post(own, "/api/session", {"code": code}).status == 200


def test_behind_tls_the_cookie_is_for_tls_only(tmp_path: Path) -> None:
    with serving(tmp_path / "data", auth=True, allow_hosts=["board.example"]) as server:
        answer, _ = sign_in(server, b"Origin: https://board.example")
        assert (answer.header("Set-Cookie") or "").endswith("; Secure")


def test_signing_out_ends_the_session_and_removes_the_cookie(own: InThread) -> None:
    _, cookie = sign_in(own)
    answer = post(own, "/api/session/end", {}, cookie)
    assert answer.data == {"signed_in": False}
    assert "Max-Age=0" in (answer.header("Set-Cookie") or "")
    assert get(own, "/api/board", cookie).status == 401
    assert post(own, "/api/session/end", {}).data == {"signed_in": False}


def test_a_server_that_asks_for_nothing_has_no_sessions(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        assert post(server, "/api/session", {"code": "x"}).status == 404
        assert post(server, "/api/session/end", {}).status == 404


def test_a_server_for_reading_signs_in_and_writes_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path / "data"):
        pass
    with serving(tmp_path / "data", auth=True, read_only=True) as server:
        _, cookie = sign_in(server)
        assert get(server, "/api/board", cookie).status == 200
        assert post(server, "/api/tasks", {"title": "t"}, cookie).status == 403


# Streams


@pytest.mark.parametrize("how", ["key", "session", "everywhere"])
def test_a_stream_opens_by_key_and_by_cookie_and_ends_with_them(own: InThread, how: str) -> None:
    assert get(own, "/api/stream").status == 401
    field = key(own) if how == "key" else sign_in(own)[1]
    with own.wire() as client:
        answer = client.get("/api/stream?after=0", field)
        assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
        client.until(b"\n\n")
        task = own.board.add("seen").task.id
        assert task.encode() in client.until(b"\n\n")
        if how == "key":
            own.server.access.credentials.revoke_keys("ada")
        elif how == "session":
            post(own, "/api/session/end", {}, field)
        else:
            own.server.access.credentials.end_sessions()
        assert client.is_closed(), "it ends without another event"


# Guessing


def test_guesses_of_one_source_are_limited_and_lock_out_nobody_who_is_known(own: InThread) -> None:
    ada = key(own)
    assert get(own, "/api/board", ada).status == 200
    wrong = [f"Authorization: Bearer atb_{number:064}".encode() for number in range(guesses.ALLOWED + 1)]
    assert [get(own, "/api/board", one).status for one in wrong] == [401] * guesses.ALLOWED + [503]
    assert get(own, "/api/board", ada).status == 200, "it was right before"
    bob = key(own, "bob")
    assert get(own, "/api/board", bob).status == 503, "a right guess is not told from a wrong one"
    assert get(own, "/api/board").status == 401, "who presents nothing guesses nothing"
    assert sign_in(own)[0].status == 200, "codes are counted apart"
    for number in range(guesses.ALLOWED):
        assert post(own, "/api/session", {"code": f"{number:032}"}).status == 401
    code = own.server.access.credentials.new_code()
    assert post(own, "/api/session", {"code": code}).status == 503
    assert own.server.access.credentials.redeem(code) is not None, "it was not used up"


def test_a_client_with_an_old_key_that_repeats_its_call_guesses_nothing(own: InThread) -> None:
    old = key(own)
    own.server.access.credentials.revoke_keys("ada")
    for _ in range(guesses.ALLOWED + 5):
        assert get(own, "/api/board", old).status == 401
    assert get(own, "/api/board", key(own, "bob")).status == 200


def test_guesses_are_forgotten_after_a_minute_and_counted_by_source() -> None:
    now = [0.0]
    counted = guesses.Guesses(clock=lambda: now[0])
    for number in range(guesses.ALLOWED):
        counted.allow("a", str(number))
        counted.wrong("a", str(number))
    with refused("busy"):
        counted.allow("a", "x")
    counted.allow("b", "x")
    now[0] = guesses.WINDOW
    counted.allow("a", "x")


def test_what_is_remembered_of_guesses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "SOURCES", 3)
    monkeypatch.setattr(guesses, "KNOWN", 3)
    counted = guesses.Guesses()
    for number in range(10):
        counted.wrong(f"source {number}", "x")
        counted.right(f"key {number}")
    assert len(counted._wrong) == len(counted._right) == 3


def test_addresses_of_one_network_are_one_source() -> None:
    def source(address: str, uid: int | None = None) -> str:
        return access._source(peers.Peer(address, uid), "key")

    assert source("2001:db8::1") == source("2001:db8::ffff:2") != source("2001:db8:0:1::1")
    assert source("192.0.2.1") != source("192.0.2.2")
    assert source("127.0.0.1", 1) != source("127.0.0.1", 2) != source("127.0.0.1")


# Secrets


def test_no_secret_reaches_the_log_or_an_answer(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--auth") as server:
        environ = {"XDG_STATE_HOME": str(tmp_path / "data-state")}
        terminal = Terminal(tmp_path)
        code = server.envelope["data"]["link"].partition("#code=")[2]
        right = terminal.atb("key", "add", "ada", **environ).data["key"]
        seen = []
        with server.wire() as client:
            answer = client.post("/api/session", {"code": code})
            session = (answer.header("Set-Cookie") or "").partition("=")[2].partition(";")[0]
            cookie = f"Cookie: atb_session_{'0' * 16}={session}".encode()
            bearer = f"Authorization: Bearer {right}".encode()
            for secret in (code, right, session):
                seen.append(client.get(f"/api/tasks/{secret}", bearer))
                seen.append(client.get(f"/{secret}x", cookie))
                seen.append(client.get(f"/api/board?key={secret}"))
                seen.append(client.post("/api/session", {"code": f"{secret}\n"}))
                seen.append(client.post("/api/session", {"code": secret, "more": 1}))
                seen.append(client.get("/api/board", f"Authorization: Bearer {secret}x".encode()))
            seen.append(client.post("/api/tasks", {"title": "t"}, bearer))
        assert server.stop() == 0
        assert "agent ada" in server.errors
        for answer in seen[-1:]:
            assert right not in answer.content.decode()
        for line in server.errors.splitlines():
            if not re.search(r"GET /api/tasks/|GET /[0-9a-f]|GET /atb_", line):  # a path that somebody put it into
                assert not [secret for secret in (code, right, session) if secret in line], line


def test_the_page_has_no_way_to_tell_a_secret_to_another_site(own: InThread) -> None:
    answer = get(own, "/")
    assert answer.header("Referrer-Policy") == "no-referrer"
    assert "connect-src 'self'" in (answer.header("Content-Security-Policy") or "")


# Other users and other machines


@needs_another_user
def test_another_user_comes_in_by_a_key_and_not_by_a_session(own: InThread) -> None:
    def ask(path: str, *lines: bytes, body: bytes | None = None) -> bytes:
        head = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1".encode(), f"Host: localhost:{own.port}".encode()]
        if body is not None:
            head += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
        text = b"\r\n".join([*head, b"Connection: close", *lines]) + b"\r\n\r\n" + (body or b"")
        return ask_as_nobody("127.0.0.1", own.port, text).split(b" ")[1]

    _, cookie = sign_in(own)
    code = own.server.access.credentials.new_code()
    assert ask("/api/board", key(own)) == b"200"
    assert ask("/api/board", cookie) == b"403", "a cookie that a server at another port got from the browser"
    assert ask("/api/session", body=json.dumps({"code": code}).encode()) == b"403"
    assert post(own, "/api/session", {"code": code}).status == 200, "the code was not used up"
    assert own.log[-3:-1] == ["GET /api/board 403 (user nobody)", "POST /api/session 403 (user nobody)"]


@needs_another_user
def test_another_user_who_is_let_in_signs_in(tmp_path: Path) -> None:
    with serving(tmp_path / "data", auth=True, allow_users=[NOBODY]) as server:
        body = json.dumps({"code": server.server.access.credentials.new_code()}).encode()
        head = f"POST /api/session HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n".encode()
        head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert ask_as_nobody("127.0.0.1", server.port, head + body).split(b" ")[1] == b"200"


def test_a_session_of_a_sender_that_has_closed_counts_only_from_another_machine(
    own: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, cookie = sign_in(own)
    own.server.access.close()
    monkeypatch.setattr(own.server.access, "_lookup", lambda *_: None)
    assert get(own, "/api/board", cookie).status == 403
    monkeypatch.setattr(access, "is_own_address", lambda _: False)
    assert get(own, "/api/board", cookie).status == 200


def test_addresses_of_this_machine_are_known() -> None:
    assert access.is_own_address("127.0.0.1")
    assert access.is_own_address("127.9.9.9")
    assert not access.is_own_address("192.0.2.1")
    assert not access.is_own_address("2001:db8::1")
    for address in addresses.reachable(socket.AF_INET):
        assert access.is_own_address(address)


def test_a_server_for_other_machines_asks_and_prints_addresses_that_answer(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--host", "0.0.0.0", "--allow-remote") as server:
        data = server.envelope["data"]
        assert data["auth"] is True
        assert data["url"] == data["urls"][0]
        assert data["link"].startswith(f"{data['url']}#code=")
        assert not [url for url in data["urls"] if "0.0.0.0" in url]
        for url in data["urls"]:
            host = url.removeprefix("http://").partition(":")[0]
            with Wire((host, server.port)) as client:
                assert client.get("/").status == 200, url
                assert client.get("/api/board").status == 401
                assert client.post("/api/session", {"code": "x"}, f"Origin: {url.rstrip('/')}".encode()).status == 401


def test_an_address_is_a_host_only_for_the_connection_that_came_to_it(tmp_path: Path) -> None:
    found = [one for one in addresses.reachable(socket.AF_INET) if not one.startswith("127.")]
    with serving(tmp_path / "data", host="0.0.0.0", allow_remote=True) as server:
        for name in ("127.0.0.2", "127.0.0.3", "192.0.2.1", "0.0.0.0", "evil.example", *found):
            with Wire(("127.0.0.2", server.port)) as client:
                text = f"GET /healthz HTTP/1.1\r\nHost: {name}:{server.port}\r\n\r\n".encode()
                assert client.ask(text).status == (200 if name == "127.0.0.2" else 421), name
    with serving(tmp_path / "one") as server, contextlib.suppress(OSError), Wire(("127.0.0.2", server.port)):
        pytest.fail("it listens on one address")
    gc.collect()


# The commands


def test_keys_and_links_are_for_people(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.atb("init")
    for words in (("key", "add", "ada"), ("key", "list"), ("key", "revoke", "--sessions"), ("open",)):
        assert terminal.atb(*words, ATB_AGENT="ada").error["code"] == "not_permitted"
        assert terminal.atb(*words, "--agent", "ada").error["code"] == "not_permitted"
    assert terminal.atb("key", "list").data == {"keys": [], "sessions": []}


def test_keys_are_made_shown_once_and_revoked(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.refused("not_found", "key", "add", "ada")
    terminal.atb("init")
    made = terminal.atb("key", "add", "ada").data
    assert sorted(made) == ["created_at", "id", "key", "name"]
    listed = terminal.atb("key", "list")
    assert listed.data["keys"] == [{name: made[name] for name in ("id", "name", "created_at")}]
    assert made["key"].encode() not in listed.out
    assert terminal.atb("key", "revoke", made["id"]).data == {"revoked": listed.data["keys"], "sessions": 0}
    terminal.refused("not_found", "key", "revoke", "ada")
    for words in (("key", "add"), ("key", "revoke"), ("key", "list", "ada"), ("key", "add", "ada", "--sessions")):
        terminal.refused("invalid_input", *words)
    assert terminal.atb("key", "add", "none").error["code"] == "invalid_input"
    for path in (tmp_path / ".atb").rglob("*"):
        assert path.is_dir() or made["key"].encode() not in path.read_bytes()


def test_open_makes_links_of_the_servers_that_run(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "data-state")}
    terminal = Terminal(tmp_path)
    with process(tmp_path / "data", "--auth") as server:
        data = eventually(lambda: _opened(terminal, environ), "the announcement")
        assert data["url"] == server.url
        assert data["link"] != server.envelope["data"]["link"]
        with server.wire() as client:
            assert client.post("/api/session", {"code": data["link"].partition("#code=")[2]}).status == 200
        named = terminal.atb("open", "--url", "https://board.example", **environ).data
        assert re.fullmatch(r"https://board\.example/#code=[0-9a-f]{32}", named["link"])
        server.popen.kill()
        server.popen.wait()
        assert terminal.atb("open", **environ).error["code"] == "not_found", "what a killed server left counts no more"
    with process(tmp_path / "data") as server:
        data = eventually(lambda: _opened(terminal, environ), "the announcement")
        assert data == {"url": server.url, "link": server.url, "auth": False}
        assert server.envelope["data"]["link"] is None
    assert terminal.atb("open", **environ).error["code"] == "not_found"
    assert terminal.atb("open", "--url", "javascript:alert(1)", **environ).error["code"] == "invalid_input"


def _opened(terminal: Terminal, environ: dict[str, str]) -> dict[str, Any]:
    answer = terminal.atb("open", **environ)
    return answer.data if answer.envelope["ok"] else {}


def test_a_request_that_waits_ends_with_its_key(own: InThread) -> None:
    ada = key(own)
    with own.wire() as client:
        client.send(client.posting("/api/claim?wait=50", {}, ada))
        eventually(lambda: own.server._waiting._value < own.server.waiting_limit, "the wait")
        own.server.access.credentials.revoke_keys("ada")
        answer = client.read()
        assert (answer.status, answer.code) == (401, "not_permitted")
