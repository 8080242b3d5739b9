"""The data directory, the file that applies, and what is valid in a file."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, Settings, config, instants, settings
from tests.support import MARIA, refused

if TYPE_CHECKING:
    from agent_task_board.config import Config

SOMEBODY = 65_534
ROOT = Path(__file__).parent.parent
HOOKS = '[hooks]\nenabled = true\ncommand = ["/bin/true"]\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """End every walk upwards in the directory of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))


def load(cwd: Path, *, data_dir: object = None, file: object = None, environ: dict[str, str] | None = None) -> Config:
    return config.load(
        data_dir=None if data_dir is None else str(data_dir),
        config=None if file is None else str(file),
        environ=environ or {},
        cwd=str(cwd),
    )


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load_text(tmp_path: Path, text: str) -> Config:
    return load(tmp_path, file=write(tmp_path / "given.toml", text))


def as_dict(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in Settings.__slots__}


def plain(found: Config) -> dict[str, Any]:
    return {key: value for key, (value, _) in found.values.items()}


# Which data directory


def test_without_anything_the_board_is_in_data_below_the_working_directory(tmp_path: Path) -> None:
    found = load(tmp_path)
    assert found.data_dir == str(tmp_path / "data")
    assert found.file is None
    assert found.warnings == []
    assert found.values["data_dir"] == (str(tmp_path / "data"), "default")
    assert {source for _, source in found.values.values()} == {"default"}
    assert as_dict(found.settings) == as_dict(Settings())


def test_data_directory_option_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = write(tmp_path / "atb.toml", 'data_dir = "from-file"')
    environ = {"ATB_DATA_DIR": "from-environment"}

    found = load(tmp_path, data_dir="from-option", environ=environ)
    assert found.values["data_dir"] == (str(tmp_path / "from-option"), "option --data-dir")
    found = load(tmp_path, environ=environ)
    assert found.values["data_dir"] == (str(tmp_path / "from-environment"), "environment ATB_DATA_DIR")
    found = load(tmp_path)
    assert found.values["data_dir"] == (str(tmp_path / "from-file"), f"file {file}")
    assert found.data_dir == str(tmp_path / "from-file")
    file.unlink()
    assert load(tmp_path).values["data_dir"] == (str(tmp_path / "data"), "default")


def test_relative_data_dir_in_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "etc" / "board.toml", 'data_dir = "../boards/one"')
    (tmp_path / "work" / "deep").mkdir(parents=True)
    assert load(tmp_path / "work" / "deep", file=file).data_dir == str(tmp_path / "boards" / "one")
    assert load(tmp_path / "work" / "deep", file="../../etc/board.toml").data_dir == str(tmp_path / "boards" / "one")


def test_file_without_data_dir_leaves_the_default_at_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "atb.toml", 'lease = "1m"')
    (tmp_path / "deep").mkdir()
    assert load(tmp_path / "deep").data_dir == str(tmp_path / "deep" / "data")


def test_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    file = write(tmp_path / "home" / "board.toml", 'data_dir = "~/board"')
    assert load(tmp_path, file="~/board.toml").file == str(file)
    assert load(tmp_path, file=file).data_dir == str(tmp_path / "home" / "board")
    assert load(tmp_path, environ={"ATB_DATA_DIR": "~/other"}).data_dir == str(tmp_path / "home" / "other")


def test_empty_variables_count_as_not_set(tmp_path: Path) -> None:
    found = load(tmp_path, environ={"ATB_DATA_DIR": "", "ATB_CONFIG": ""})
    assert found.values["data_dir"] == (str(tmp_path / "data"), "default")
    assert found.file is None


@pytest.mark.parametrize("name", ["data_dir", "file"])
@pytest.mark.parametrize("path", ["", "  ", "a\nb", "a\udc80", "x" * 4_097])
def test_impossible_path_is_refused(tmp_path: Path, name: str, path: str) -> None:
    with refused("invalid_input"):
        load(tmp_path, **{name: path})  # type: ignore[arg-type]


def test_deleted_working_directory_is_refused_unless_the_data_directory_is_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with refused("invalid_input"):
        config.load(data_dir=None, config=None, environ={})
    found = config.load(data_dir=str(tmp_path / "data"), config=None, environ={})
    assert found.data_dir == str(tmp_path / "data")


def test_working_directory_is_asked_for_when_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = config.load(data_dir="board", config=None, environ={})
    assert found.data_dir == str(tmp_path.resolve() / "board")


# Which file


def test_first_file_of_option_environment_data_directory_way_up_and_own_is_the_only_one_that_applies(
    tmp_path: Path,
) -> None:
    work = tmp_path / "project" / "src" / "deep"
    work.mkdir(parents=True)
    own = write(tmp_path / ".config" / "agent-task-board" / "config.toml", "max_attempts = 4\n")
    assert (load(work).file, load(work).settings.max_attempts) == (str(own), 4)
    moved = write(tmp_path / "xdg" / "agent-task-board" / "config.toml", "max_attempts = 9\n")
    assert load(work, environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).file == str(moved)

    far = write(tmp_path / "project" / "atb.toml", "catch_up = 5\n")
    assert (load(work).file, load(work).settings.max_attempts) == (str(far), 3)
    near = write(tmp_path / "project" / "src" / "atb.toml", "max_attempts = 6\n")
    assert (load(work).file, load(work).values["catch_up"]) == (str(near), (10, "default"))
    inside = write(work / "data" / "config.toml", "max_attempts = 5\n")
    assert (load(work).file, load(work).settings.max_attempts) == (str(inside), 5)

    variable = {"ATB_CONFIG": str(write(tmp_path / "variable.toml", "max_attempts = 7\n"))}
    assert load(work, environ=variable).values["max_attempts"] == (7, f"file {tmp_path / 'variable.toml'}")
    option = write(tmp_path / "option.toml", "max_attempts = 8\n")
    assert load(work, environ=variable, file=option).values["max_attempts"] == (8, f"file {option}")


def test_file_on_the_way_up_settles_nothing_for_a_board_that_was_named(tmp_path: Path) -> None:
    write(tmp_path / "atb.toml", "max_attempts = 6\ndata_dir = 'tasks'\n")
    assert load(tmp_path).settings.max_attempts == 6
    for found in (load(tmp_path, data_dir="tasks"), load(tmp_path, environ={"ATB_DATA_DIR": "tasks"})):
        assert (found.data_dir, found.file, found.settings.max_attempts) == (str(tmp_path / "tasks"), None, 3)
    named = write(tmp_path / "named.toml", "data_dir = 'other'\n")
    found = load(tmp_path, file=named)
    assert (found.data_dir, found.file, found.settings.max_attempts) == (str(tmp_path / "other"), str(named), 3)


def test_data_directory_of_the_own_file_is_used_only_where_the_way_up_has_none(tmp_path: Path) -> None:
    own = write(tmp_path / ".config" / "agent-task-board" / "config.toml", f"data_dir = '{tmp_path / 'mine'}'\n")
    work = tmp_path / "work"
    work.mkdir()
    assert load(work).values["data_dir"] == (str(tmp_path / "mine"), f"file {own}")
    with Board(work / ".atb", actor=MARIA) as board:
        board.create()
    assert load(work).data_dir == str(work / ".atb")


def test_file_of_the_data_directory_is_found_through_option_and_environment(tmp_path: Path) -> None:
    file = write(tmp_path / "board" / "config.toml", 'lease = "2h"')
    for found in (
        load(tmp_path, data_dir=tmp_path / "board"),
        load(tmp_path, environ={"ATB_DATA_DIR": str(tmp_path / "board")}),
    ):
        assert found.file == str(file)
        assert found.values["lease"] == ("2h", f"file {file}")
        assert found.settings.lease == 7_200_000


def test_data_dir_in_the_file_of_the_data_directory_is_ignored_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path / "data" / "config.toml", 'data_dir = "/elsewhere"\nmax_attempts = 9\n')
    found = load(tmp_path)
    assert found.values["data_dir"] == (str(tmp_path / "data"), "default")
    assert found.settings.max_attempts == 9
    assert [("data_dir" in warning, found.file in warning) for warning in found.warnings if found.file] == [
        (True, True)
    ]


def test_data_dir_counts_when_that_same_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "data" / "config.toml", f'data_dir = "{tmp_path / "elsewhere"}"')
    found = load(tmp_path, file=file)
    assert (found.data_dir, found.warnings) == (str(tmp_path / "elsewhere"), [])


@pytest.mark.parametrize("way", ["option", "variable"])
def test_named_file_that_does_not_exist_is_refused_by_its_name(tmp_path: Path, way: str) -> None:
    write(tmp_path / "atb.toml", "max_attempts = 5")
    missing = str(tmp_path / "missing.toml")
    with refused("invalid_input") as caught:
        if way == "option":
            load(tmp_path, file="missing.toml")
        else:
            load(tmp_path, environ={"ATB_CONFIG": "missing.toml"})
    assert caught.value.details["file"] == missing
    assert missing in caught.value.message


def test_named_directory_is_refused(tmp_path: Path) -> None:
    with refused("invalid_input") as caught:
        load(tmp_path, file=tmp_path)
    assert caught.value.details["file"] == str(tmp_path)


def test_directory_that_is_called_like_a_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "atb.toml").mkdir()
    (tmp_path / "data" / "config.toml").mkdir(parents=True)
    assert load(tmp_path).file is None


def test_file_that_may_not_be_read_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "atb.toml", "")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(config, "open", denied, raising=False)  # root can read everything
    with refused("unusable") as caught:
        load(tmp_path)
    assert caught.value.details["file"] == str(file)


# What is valid in a file


def test_every_setting_of_a_file_reaches_the_core(tmp_path: Path) -> None:
    found = load_text(
        tmp_path,
        """
        timezone = "Europe/Berlin"
        lease = "1h30m"
        max_attempts = 5
        backoff_base = 2
        backoff_cap = "1m"
        busy_timeout = "0s"
        catch_up = 7
        archive_after = "90d"
        """,
    )
    assert as_dict(found.settings) == {
        "timezone": "Europe/Berlin",
        "lease": 5_400_000,
        "max_attempts": 5,
        "backoff_base": 2_000,
        "backoff_cap": 60_000,
        "busy_timeout": 0,
        "catch_up": 7,
        "archive_after": 90 * instants.DAY,
        "hooks": None,
    }
    board = Board(tmp_path / "data", settings=found.settings, actor=MARIA)
    task = board.add("pack the boxes", due_at="2026-12-01T09:00").task
    assert task.max_attempts == 5
    assert task.due_at == "2026-12-01T08:00:00.000+00:00"
    board.close()


def test_settings_of_later_parts_are_checked_and_shown(tmp_path: Path) -> None:
    text = """
        catch_up = 1000
        [serve]
        host = "::1"
        port = 0
        allow_hosts = ["board.example", "box.example:8443"]
        read_only = true
        [hooks]
        enabled = true
        command = ["/usr/bin/logger", "", "two\\nlines"]
        events = ["done", "review"]
        webhook_url = "https://hook.example/board"
        webhook_secret = "hush"
        allow_network = true
        """
    found = load_text(tmp_path, text)
    given = tomllib.loads(text)
    sections = {f"{name}.{key}": value for name in ("serve", "hooks") for key, value in given.pop(name).items()}
    assert {key: found.values[key][0] for key in (*given, *sections)} == given | sections
    assert {found.values[key][1] for key in (*given, *sections)} == {f"file {found.file}"}
    assert found.warnings == []


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('"90s"', "1m30s"),
        ("5400", "1h30m"),
        ('"1d1h1m1s"', "90061s"),
        ('" 2h "', "2h"),
        ('"7d"', "7d"),
        ("1", "1s"),
    ],
)
def test_length_is_shown_as_text_that_reads_as_the_same_length(tmp_path: Path, given: str, shown: str) -> None:
    found = load_text(tmp_path, f"lease = {given}")
    assert found.values["lease"][0] == shown
    assert load_text(tmp_path, f'lease = "{shown}"').settings.lease == found.settings.lease


def test_lease_has_the_bounds_of_a_claim(tmp_path: Path) -> None:
    for bound, beyond in ((settings.LEASE_LOW, -1), (settings.LEASE_HIGH, 1)):
        seconds = bound // 1_000
        assert load_text(tmp_path, f"lease = {seconds}").settings.lease == bound
        with refused("invalid_input"):
            load_text(tmp_path, f"lease = {seconds + beyond}")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        # unknown
        ("colour = 1", "colour"),
        ("Lease = '15m'", "Lease"),
        ("[serve]\nprot = 1", "serve.prot"),
        ("[server]\nport = 1", "server"),
        ("[serve.port]\nx = 1", "serve.port"),
        ("'serve.port' = 1", "serve.port"),
        ("[serve]\n'a.b' = 1", "serve.a.b"),
        ("port = 1", "port"),
        ("'' = 1", ""),
        # of the wrong type
        ("data_dir = 1", "data_dir"),
        ("data_dir = ''", "data_dir"),
        ("data_dir = 'a\\u0000b'".replace("'", '"'), "data_dir"),
        ("timezone = 8", "timezone"),
        ("lease = true", "lease"),
        ("lease = 1.5", "lease"),
        ("lease = nan", "lease"),
        ("lease = ['15m']", "lease"),
        ("lease.length = 15", "lease"),
        ("lease = 07:00:00", "lease"),
        ("max_attempts = '3'", "max_attempts"),
        ("max_attempts = 3.0", "max_attempts"),
        ("max_attempts = true", "max_attempts"),
        ("catch_up = '10'", "catch_up"),
        ("serve = 1", "serve"),
        ("[[serve]]\nport = 1", "serve"),
        ("[serve]\nhost = 127", "serve.host"),
        ("[serve]\nport = '8765'", "serve.port"),
        ("[serve]\nallow_hosts = 'board.example'", "serve.allow_hosts"),
        ("[serve]\nallow_hosts = [1]", "serve.allow_hosts"),
        ("[serve]\nread_only = 'yes'", "serve.read_only"),
        ("[hooks]\nenabled = 1", "hooks.enabled"),
        ("[hooks]\ncommand = 'rm -r x'", "hooks.command"),
        ("[hooks]\ncommand = ['']", "hooks.command"),
        ("[hooks]\ncommand = ['a', 1]", "hooks.command"),
        ("[hooks]\nevents = 'done'", "hooks.events"),
        ("[hooks]\nwebhook_url = 1", "hooks.webhook_url"),
        ("[hooks]\nwebhook_secret = 1", "hooks.webhook_secret"),
        ("[hooks]\nallow_network = 'true'", "hooks.allow_network"),
        # out of range
        ("timezone = 'Mars/Olympus'", "timezone"),
        ("timezone = 'Asia'", "timezone"),
        ("timezone = '../../etc/passwd'", "timezone"),
        ("timezone = ''", "timezone"),
        ("lease = 'soon'", "lease"),
        ("lease = ''", "lease"),
        ("lease = 0", "lease"),
        ("lease = '8d'", "lease"),
        ("lease = -1", "lease"),
        (f"lease = 0x{'f' * 5_000}", "lease"),
        ("max_attempts = 0", "max_attempts"),
        ("max_attempts = 1001", "max_attempts"),
        ("backoff_base = '367d'", "backoff_base"),
        ("backoff_cap = -1", "backoff_cap"),
        ("busy_timeout = '61m'", "busy_timeout"),
        ("catch_up = 0", "catch_up"),
        ("[serve]\nport = -1", "serve.port"),
        ("[serve]\nport = 65536", "serve.port"),
        ("[serve]\nhost = ''", "serve.host"),
        ("[serve]\nhost = 'http://localhost'", "serve.host"),
        ("[serve]\nallow_hosts = ['https://board.example']", "serve.allow_hosts"),
        ("[serve]\nallow_hosts = ['']", "serve.allow_hosts"),
        ("[hooks]\nevents = ['claimed']", "hooks.events"),
        ("[hooks]\nwebhook_url = 'ftp://hook.example'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http:///path'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http://a:port/'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http://ada:pw@hook.example/'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http://hook.example/a b'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http://hook.example/#a'", "hooks.webhook_url"),
        ("[hooks]\nwebhook_url = 'http://hook.example/\u00e9'", "hooks.webhook_url"),
        ("archive_after = 'old'", "archive_after"),
        ("archive_after = -1", "archive_after"),
        ("archive_after = '36601d'", "archive_after"),
        ("archive_after = false", "archive_after"),
        (f"[hooks]\nwebhook_secret = '{'s' * 201}'", "hooks.webhook_secret"),
    ],
)
def test_bad_key_or_value_is_refused_naming_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    with refused("invalid_input") as caught:
        load_text(tmp_path, text)
    file = str(tmp_path / "given.toml")
    assert caught.value.details == {"file": file, "key": key}
    assert caught.value.message.startswith(f"{file}: ")
    assert key in caught.value.message


@pytest.mark.parametrize(
    ("text", "meant"), [("leese = 1", "lease"), ("port = 1", "serve.port"), ("[serve]\nprot = 1", "serve.port")]
)
def test_unknown_key_is_refused_with_the_one_that_was_meant(tmp_path: Path, text: str, meant: str) -> None:
    with refused("invalid_input") as caught:
        load_text(tmp_path, text)
    assert meant in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"lease = ",
        b"lease = '1m'\nlease = '2m'\n",
        b"lease 15m",
        b"# caf\xe9\n",
        b"\xff\xfel\x00e\x00a\x00s\x00e\x00",
        b"lease = '\x00'",
        b"x = " + b"[" * 30_000,
        b"max_attempts = " + b"9" * 5_000,
        b"#" * 65_537,
    ],
    ids=["no value", "key twice", "no sign", "latin-1", "utf-16", "NUL", "deep", "digits", "large"],
)
def test_file_that_is_not_toml_in_utf8_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "atb.toml"
    file.write_bytes(content)
    with refused("invalid_input") as caught:
        load(tmp_path)
    assert caught.value.details == {"file": str(file)}
    assert str(file) in caught.value.message


def test_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "atb.toml"
    file.write_bytes(b"\xef\xbb\xbfmax_attempts = 5\r\n[serve]\r\nport = 1\r\n")
    found = load(tmp_path, file=file)
    assert (found.settings.max_attempts, found.values["serve.port"][0]) == (5, 1)


def test_broken_file_of_another_place_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "atb.toml", "broken")
    write(tmp_path / ".config" / "agent-task-board" / "config.toml", "broken")
    assert load_text(tmp_path, "max_attempts = 5\ndata_dir = 'board'").settings.max_attempts == 5
    write(tmp_path / "board" / "config.toml", "max_attempts = 6")
    assert load(tmp_path, data_dir="board").settings.max_attempts == 6


# Hooks


def hooks(found: Config) -> tuple[object, object]:
    return found.values["hooks.enabled"][0], found.values["hooks.command"][0]


ON = (True, ["/bin/true"])
OFF = (False, None)


def test_hooks_of_a_file_found_on_the_way_up_are_ignored_with_a_warning(tmp_path: Path) -> None:
    file = write(tmp_path / "atb.toml", f"max_attempts = 5\n{HOOKS}")
    (tmp_path / "deep").mkdir()
    for cwd in (tmp_path, tmp_path / "deep"):
        found = load(cwd)
        assert hooks(found) == OFF
        assert {found.values[key][1] for key in found.values if key.startswith("hooks.")} == {"default"}
        assert len(found.warnings) == 1
        assert str(file) in found.warnings[0]
        assert "[hooks]" in found.warnings[0]
        assert found.settings.max_attempts == 5


def test_hooks_of_a_named_file_count(tmp_path: Path) -> None:
    file = write(tmp_path / "atb.toml", HOOKS)
    for found in (load(tmp_path, file=file), load(tmp_path, environ={"ATB_CONFIG": str(file)})):
        assert hooks(found) == ON
        assert found.values["hooks.enabled"][1] == f"file {file}"
        assert found.warnings == []


def test_hooks_reach_the_core_only_if_they_are_on_and_have_somebody_to_tell(tmp_path: Path) -> None:
    address = "webhook_url = 'http://127.0.0.1:1/'\nwebhook_secret = 'hush'\nevents = ['failed']\n"
    for text in (
        "command = ['/bin/true']",
        "enabled = true",
        "enabled = true\nallow_network = true",
        f"enabled = true\n{address}",
    ):
        assert load_text(tmp_path, f"[hooks]\n{text}").settings.hooks is None
    found = load_text(tmp_path, f"[hooks]\nenabled = true\nallow_network = true\n{address}").settings.hooks
    assert found is not None
    assert (found.targets(), found.webhook, found.secret) == (["webhook"], "http://127.0.0.1:1/", "hush")
    assert found.command is None
    assert found.events == {"failed"}
    found = load_text(tmp_path, f"[hooks]\nenabled = true\ncommand = ['a', 'b']\n{address}").settings.hooks
    assert found is not None
    assert (found.targets(), found.command, found.webhook) == (["command"], ["a", "b"], None)


def test_calls_of_a_hook_have_no_hooks(tmp_path: Path) -> None:
    file = write(tmp_path / "board.toml", HOOKS)
    assert load(tmp_path, file=file).settings.hooks is not None
    assert load(tmp_path, file=file, environ={"ATB_DELIVERY": "0" * 32}).settings.hooks is None


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://hook.example:8443/board?x=1&y=%20",
        "HTTPS://Hook.Example/",
        "http://[::1]:8080/x",
        "http://127.0.0.1?x",
    ],
)
def test_address_of_a_hook_is_taken_as_it_is(tmp_path: Path, url: str) -> None:
    assert plain(load_text(tmp_path, f"[hooks]\nwebhook_url = '{url}'"))["hooks.webhook_url"] == url


def test_empty_hooks_section_on_the_way_up_is_no_warning(tmp_path: Path) -> None:
    write(tmp_path / "atb.toml", "[hooks]\n")
    assert load(tmp_path).warnings == []


def test_ignored_hooks_are_checked_all_the_same(tmp_path: Path) -> None:
    write(tmp_path / "atb.toml", "[hooks]\nenabled = 'yes'\n")
    with refused("invalid_input") as caught:
        load(tmp_path)
    assert caught.value.details["key"] == "hooks.enabled"


# Showing


def test_show_tells_the_file_and_for_every_key_its_value_and_source(tmp_path: Path) -> None:
    file = write(tmp_path / "board" / "config.toml", 'lease = "30m"\n')
    shown = config.show(load(tmp_path, data_dir="board"))
    assert shown["file"] == str(file)
    assert list(shown["values"]) == list(config.KEYS)
    assert shown["values"]["data_dir"] == {"value": str(tmp_path / "board"), "source": "option --data-dir"}
    assert shown["values"]["lease"] == {"value": "30m", "source": f"file {file}"}
    assert shown["values"]["max_attempts"] == {"value": 3, "source": "default"}
    file.unlink()
    assert config.show(load(tmp_path))["file"] is None


def test_show_never_tells_the_secret(tmp_path: Path) -> None:
    found = load_text(tmp_path, "[hooks]\nwebhook_secret = 'hush-hush'\n")
    assert found.values["hooks.webhook_secret"][0] == "hush-hush"
    assert "hush-hush" not in repr(config.show(found))
    assert config.show(found)["values"]["hooks.webhook_secret"]["value"] == config.HIDDEN
    assert config.show(load(tmp_path))["values"]["hooks.webhook_secret"]["value"] is None


def test_defaults_of_one_configuration_are_not_those_of_the_next(tmp_path: Path) -> None:
    load(tmp_path).values["hooks.events"][0].append("failed")
    assert load(tmp_path).values["hooks.events"] == (["done"], "default")


# Writing


def uncomment(text: str) -> str:
    """Uncomment every setting; a comment has a space after its ``#``."""
    return re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE)


def test_init_writes_the_example_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = config.init("new.toml")
    assert written == str(tmp_path.resolve() / "new.toml")
    assert Path(written).read_bytes() == (ROOT / "examples" / "config.toml").read_bytes()
    assert stat.S_IMODE(Path(written).stat().st_mode) == 0o600


def test_example_as_it_is_changes_nothing(tmp_path: Path) -> None:
    found = load(tmp_path, file=ROOT / "examples" / "config.toml")
    assert {source for _, source in found.values.values()} == {"default"}
    assert plain(found) == plain(load(tmp_path))


def test_example_with_everything_uncommented_gives_the_defaults(tmp_path: Path) -> None:
    text = uncomment((ROOT / "examples" / "config.toml").read_text(encoding="utf-8"))
    found = load_text(tmp_path, text)
    assert {source for _, source in found.values.values()} == {f"file {found.file}"}
    assert plain(found) == plain(load(tmp_path))
    assert as_dict(found.settings) == as_dict(Settings())
    assert found.warnings == []


def test_init_never_overwrites(tmp_path: Path) -> None:
    there = write(tmp_path / "atb.toml", "mine")
    (tmp_path / "link.toml").symlink_to(tmp_path / "nowhere.toml")
    for path in (there, tmp_path, tmp_path / "link.toml"):
        with refused("invalid_input") as caught:
            config.init(str(path))
        assert caught.value.details["file"] == str(path)
    assert there.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "nowhere.toml").exists()


@pytest.mark.parametrize("path", ["", "no/such/directory/atb.toml", "file/atb.toml"])
def test_init_is_refused_where_a_file_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    write(tmp_path / "file", "")
    monkeypatch.chdir(tmp_path)
    with refused("invalid_input"):
        config.init(path)


def test_init_leaves_nothing_behind_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, *_: object, **__: object) -> None:
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(config, "open", full, raising=False)
    with refused("unusable"):
        config.init(str(tmp_path / "atb.toml"))
    assert list(tmp_path.iterdir()) == []


def test_page_lists_every_key_with_its_default() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([a-z_.]+)` \| `(.*?)` \|", page, flags=re.MULTILINE))
    written = tomllib.loads(uncomment(config.template()))
    sections = {f"{name}.{key}": value for name in ("serve", "hooks") for key, value in written.pop(name).items()}
    assert list(told) == list(config.KEYS)
    assert {key: tomllib.loads(f"x = {value}")["x"] for key, value in told.items()} == written | sections


# Start-up

PROBE = """
import os, sys
from agent_task_board import config
before, seen = set(sys.modules), []
sys.addaudithook(lambda event, _: seen.append(event))
config.load(data_dir=None, config=None, environ={}, cwd=sys.argv[1])
touched = [event for event in seen if event in ("open", "os.listdir", "os.scandir", "import", "sqlite3.connect")]
print(touched, sorted(set(sys.modules) - before))
print({"tomllib", "tomli_w", "zoneinfo", "difflib", "dataclasses", "logging"} & set(sys.modules))
"""


def test_without_a_file_loading_opens_and_imports_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.stdout.splitlines(), done.stderr) == (["[] []", "set()"], "")
    write(tmp_path / "atb.toml", "")
    done = subprocess.run([sys.executable, "-c", PROBE, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert "'open'" in done.stdout  # the probe does see a file that is read
    assert "tomllib" in done.stdout


def test_warning_says_why_hooks_are_off(tmp_path: Path) -> None:
    command, url = 'command = ["/bin/true"]\n', 'webhook_url = "https://hook.example/"\n'
    for text, warning in {
        "": "set enabled = true",
        f"[hooks]\n{command}": "set enabled = true",
        f"[hooks]\nenabled = true\n{url}": "the webhook is off: set allow_network = true",
        f"[hooks]\nenabled = true\n{command}{url}": "the webhook is off: set allow_network = true",
        "[hooks]\nenabled = true\n": "no targets are configured",
    }.items():
        assert warning in (config.hooks_warning(load_text(tmp_path, text), {}) or ""), text
    assert config.hooks_warning(load_text(tmp_path, HOOKS), {}) is None
    everything = f"[hooks]\nenabled = true\nallow_network = true\n{command}{url}"
    assert config.hooks_warning(load_text(tmp_path, everything), {}) is None
    inside = {"ATB_DELIVERY": "1"}
    assert "commands that a hook runs" in (config.hooks_warning(load_text(tmp_path, everything), inside) or "")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example/services/T0/B0/secret", "https://hooks.example/…"),
        ("https://hook.example:8443?token=secret", "https://hook.example:8443/…"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
    ],
)
def test_address_of_a_webhook_is_shown_without_what_may_be_a_secret(tmp_path: Path, url: str, shown: str) -> None:
    found = load_text(tmp_path, f"[hooks]\nwebhook_url = '{url}'\n")
    assert config.show(found)["values"]["hooks.webhook_url"]["value"] == shown
