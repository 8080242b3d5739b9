"""Keys, sign-in codes and sessions: what opens a board, how long, how often, and what is stored of it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from threading import Barrier, Thread

import pytest

from agent_task_board import credentials, instants, state
from agent_task_board.credentials import Credentials
from tests.support import Clock, refused

BOARD = "0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def ours(home: dict[str, str], clock: Clock) -> Credentials:
    return Credentials(BOARD, clock=clock, environ=home)


def file_of(home: dict[str, str]) -> Path:
    return Path(state.directory(home), "access", f"{BOARD}.json")


def test_a_key_names_its_agent_until_it_is_revoked(ours: Credentials) -> None:
    entry, key = ours.add_key("Ada")
    assert key.startswith("atb_")
    assert len(key) == len("atb_") + 64
    assert ours.key_of(key) is not None
    assert ours.keys() == [entry]
    assert entry["name"] == "Ada"
    for wrong in ("", key[:-1], key + "0", key.upper(), key[4:], entry["id"], "Ada", "\ud800"):
        assert ours.key_of(wrong) is None
    assert ours.revoke_keys("ada") == [entry], "names are compared as everywhere"
    assert ours.key_of(key) is None
    assert ours.keys() == []
    with refused("not_found"):
        ours.revoke_keys("ada")


def test_one_of_several_keys_of_an_agent_is_revoked_by_its_id(ours: Credentials) -> None:
    (first, old), (_, new) = ours.add_key("ada"), ours.add_key("ada")
    assert old != new
    ours.revoke_keys(first["id"])
    assert ours.key_of(old) is None
    assert ours.key_of(new) is not None


@pytest.mark.parametrize("name", ["", "none", "me", "system", "a\nb", "ad\u200ba", "x" * 101])
def test_a_key_is_for_a_name_that_an_agent_can_have(ours: Credentials, home: dict[str, str], name: str) -> None:
    with refused("invalid_input"):
        ours.add_key(name)
    assert not file_of(home).exists()


def test_nothing_that_is_stored_opens_anything(ours: Credentials, home: dict[str, str]) -> None:
    _, key = ours.add_key("ada")
    code, spent = ours.new_code(), ours.new_code()
    session = ours.redeem(spent)
    assert session is not None
    text = file_of(home).read_text()
    for secret in (key, code, session):
        assert secret not in text
        assert secret.removeprefix("atb_") not in text
        assert hashlib.sha256(secret.encode()).hexdigest() in text
        assert ours.key_of(hashlib.sha256(secret.encode()).hexdigest()) is None
    assert stat.S_IMODE(file_of(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(home).parent.stat().st_mode) == 0o700


def test_secrets_of_one_kind_are_none_of_another(ours: Credentials) -> None:
    _, key = ours.add_key("ada")
    code = ours.new_code()
    session = ours.redeem(ours.new_code())
    assert session is not None
    assert ours.redeem(key) is None
    assert ours.redeem(session) is None
    assert not ours.is_session(key)
    assert not ours.is_session(code)
    assert ours.key_of(code) is None
    assert ours.key_of(session) is None


def test_a_code_works_once_and_for_ten_minutes(ours: Credentials, clock: Clock) -> None:
    code, late = ours.new_code(), ours.new_code()
    session = ours.redeem(code)
    assert session is not None
    assert ours.is_session(session)
    assert ours.redeem(code) is None
    clock.advance(minutes=10)
    assert ours.redeem(late) is None


def test_a_code_that_many_present_at_once_makes_one_session(ours: Credentials, home: dict[str, str]) -> None:
    code, barrier = ours.new_code(), Barrier(8)
    made: list[str | None] = []

    def present() -> None:
        one = Credentials(BOARD, clock=Clock(), environ=home)
        barrier.wait()
        made.append(one.redeem(code))

    threads = [Thread(target=present) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([session for session in made if session]) == 1
    assert len(ours.sessions()) == 1


def test_a_session_ends_after_90_days_by_signing_out_and_by_signing_in_again(ours: Credentials, clock: Clock) -> None:
    old = ours.redeem(ours.new_code())
    assert old is not None
    new = ours.redeem(ours.new_code(), instead_of=old)
    assert new is not None
    assert not ours.is_session(old)
    left = ours.redeem(ours.new_code())
    assert left is not None
    ours.end_session(left)
    assert not ours.is_session(left)
    clock.advance(days=90, seconds=-1)
    assert ours.is_session(new)
    clock.advance(seconds=1)
    assert not ours.is_session(new)
    assert ours.sessions() == []


def test_signing_out_everywhere_voids_codes_too(ours: Credentials) -> None:
    session, code = ours.redeem(ours.new_code()), ours.new_code()
    assert session is not None
    assert ours.end_sessions() == 1
    assert not ours.is_session(session)
    assert ours.redeem(code) is None


def test_another_board_has_other_keys(ours: Credentials, home: dict[str, str], clock: Clock) -> None:
    _, key = ours.add_key("ada")
    other = Credentials("f" * 16, clock=clock, environ=home)
    assert other.key_of(key) is None
    assert other.redeem(ours.new_code()) is None


def test_what_another_process_revokes_counts_at_once(ours: Credentials, home: dict[str, str], clock: Clock) -> None:
    _, key = ours.add_key("ada")
    assert ours.key_of(key) is not None
    Credentials(BOARD, clock=clock, environ=home).revoke_keys("ada")
    assert ours.key_of(key) is None


def test_old_codes_and_sessions_make_room_and_keys_do_not(ours: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("CODES", "SESSIONS", "KEYS"):
        monkeypatch.setattr(credentials, kind, 2)
    codes = [ours.new_code() for _ in range(3)]
    assert ours.redeem(codes[0]) is None
    sessions = [ours.redeem(codes[1]), ours.redeem(codes[2]), ours.redeem(ours.new_code())]
    assert [bool(one and ours.is_session(one)) for one in sessions] == [False, True, True]
    keys = [ours.add_key(name)[1] for name in ("ada", "bob")]
    with refused("conflict"):
        ours.add_key("eve")
    assert all(ours.key_of(key) for key in keys)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"keys": 1}', b'{"keys": [1]}', b'{"keys": [{}]}', b"\xff", b"null"]
)
def test_a_damaged_file_opens_nothing(ours: Credentials, home: dict[str, str], content: bytes) -> None:
    _, key = ours.add_key("ada")
    file_of(home).write_bytes(content)
    assert ours.key_of(key) is None
    assert ours.keys() == []


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root: it changes owners")
def test_a_file_that_others_wrote_or_may_write_opens_nothing(ours: Credentials, home: dict[str, str]) -> None:
    _, key = ours.add_key("ada")
    file = file_of(home)
    file.chmod(0o666)
    assert ours.key_of(key) is None
    file.chmod(0o600)
    assert ours.key_of(key) is not None
    os.chown(file, 65_534, 65_534)
    assert ours.key_of(key) is None


def test_an_expiry_in_the_file_is_in_milliseconds(ours: Credentials, home: dict[str, str], clock: Clock) -> None:
    ours.new_code()
    stored = json.loads(file_of(home).read_text())
    assert stored["codes"][0]["expires_at"] == clock.now + 10 * instants.MINUTE
