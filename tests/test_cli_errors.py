"""Every refusal of the command line, produced for real: its code, its exit code, and that nothing was changed."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.transfer.formats import FORMATS as IMPORT_FORMATS
from tests.command_line import EXIT_CODES, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

UNKNOWN = "01JDXAAAAAAAAAAAAAAAAA7Q2Z"
ACTUAL = ["status", "version", "claimed_by", "claimed_at", "lease_expires_at"]
SABOTAGED = """
from agent_task_board import Board
def stats(*_, **__):
    raise ZeroDivisionError("a fault of our own")
Board.stats = stats
from agent_task_board.cli import run
run()
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


# Each code with its exit code


def test_fault_of_our_own_is_internal_and_its_traceback_stays_off_standard_output(terminal: Terminal) -> None:
    terminal.add()
    answer = terminal.process("stats", code=SABOTAGED)
    assert answer.code == 1
    assert answer.error["code"] == "internal"
    assert "Traceback" not in answer.text
    assert "Traceback" in answer.err
    assert terminal.process("stats", "--quiet", code=SABOTAGED).err == ""
    table = terminal.process("stats", "--format", "table", "--quiet", code=SABOTAGED)
    assert (table.code, table.out) == (1, b"")
    assert "Traceback" not in table.err


def test_not_found(terminal: Terminal) -> None:
    terminal.add()
    answer = terminal.process("show", UNKNOWN)
    assert (answer.code, answer.error["code"]) == (3, "not_found")
    before = terminal.snapshot()
    for words in (
        ["show", "7Q2Z"],
        ["claim", UNKNOWN, "--agent", "ada"],
        ["complete", UNKNOWN, "--token", "x"],
        ["update", UNKNOWN, "--title", "t"],
        ["add", "t", "--depends-on", UNKNOWN],
        ["events", "--task", UNKNOWN],
        ["comment", UNKNOWN, "text"],
    ):
        terminal.refused("not_found", *words)
    assert terminal.snapshot() == before


def test_conflict_of_a_claim_names_state_and_holder(terminal: Terminal) -> None:
    id_ = terminal.add()
    terminal.claim(id_)
    answer = terminal.process("claim", id_, "--agent", "bob")
    assert (answer.code, answer.error["code"]) == (4, "conflict")
    details = answer.error["details"]
    assert details["reason"] == "status"
    assert list(details["actual"]) == ACTUAL
    task = terminal.data("show", id_)["task"]
    assert details["actual"] == {key: task[key] for key in ACTUAL}
    assert (details["actual"]["status"], details["actual"]["claimed_by"]) == ("claimed", "ada")
    assert answer.error["message"].startswith(f'task {id_} is "claimed", not "queued"')


def reason(terminal: Terminal, *words: str) -> str:
    """Run a command that is a conflict, see that it changed nothing, and return the reason."""
    before = terminal.snapshot()
    details = terminal.refused("conflict", *words)["details"]
    assert terminal.snapshot() == before
    return str(details["reason"])


def test_every_reason_of_a_conflict(terminal: Terminal) -> None:
    first = terminal.add("first", "--dedupe-key", "k")
    second = terminal.add("second", "--depends-on", first)
    later = terminal.add("later", "--not-before", "2126-01-01")
    hers = terminal.add("hers", "--assignee", "eve")
    terminal.data("add", "asked", "--request-id", "r1")
    ada = ["--agent", "ada"]
    assert reason(terminal, "approve", first) == "status"
    assert reason(terminal, "retry", first) == "status"
    assert reason(terminal, "resume", first, *ada) == "status"
    assert reason(terminal, "claim", first, *ada, "--if-status", "running") == "status"
    assert reason(terminal, "update", first, "--title", "t", "--if-status", "claimed") == "status"
    assert reason(terminal, "update", first, "--title", "t", "--if-version", "7") == "version"
    assert reason(terminal, "claim", second, *ada) == "blocked"
    assert reason(terminal, "claim", later, *ada) == "delayed"
    assert reason(terminal, "claim", hers, *ada) == "assigned"
    assert reason(terminal, "update", first, "--depends-on", second) == "cycle"
    assert reason(terminal, "update", first, "--depends-on", first) == "cycle"
    assert reason(terminal, "update", hers, "--dedupe-key", "k") == "dedupe"
    assert reason(terminal, "add", "t", "--dedupe-key", "k", "--claim", *ada) == "dedupe"
    assert reason(terminal, "add", "other words", "--request-id", "r1") == "request_id"
    assert reason(terminal, "claim", *ada, "--request-id", "r1") == "request_id"
    assert reason(terminal, "add", "t", "--depends-on", first, "--claim", *ada) == "blocked"
    assert reason(terminal, "add", "t", "--not-before", "2126-01-01", "--claim", *ada) == "delayed"
    assert reason(terminal, "add", "t", "--assignee", "eve", "--claim", *ada) == "assigned"
    terminal.claim(first)
    assert reason(terminal, "resume", first, "--agent", "bob") == "assigned"
    assert reason(terminal, "update", first, "--assignee", "bob") == "status"
    terminal.data("cancel", first)
    assert reason(terminal, "cancel", first) == "status"
    assert reason(terminal, "reassign", first, "--to", "bob") == "status"
    assert reason(terminal, "update", first, "--title", "t") == "status"
    terminal.add("new holder", "--dedupe-key", "k")
    assert reason(terminal, "retry", first) == "dedupe"


def test_conflict_of_a_cycle_names_it(terminal: Terminal) -> None:
    ids = [terminal.add("0")]
    for number in range(1, 20):
        ids.append(terminal.add(str(number), "--depends-on", ids[-1]))
    error = terminal.refused("conflict", "update", ids[0], "--depends-on", ids[-1])
    assert error["details"]["cycle"] == [ids[0], *reversed(ids)][:12]
    assert error["details"]["more"] == 8


def test_lease_lost_says_what_is(terminal: Terminal) -> None:
    replaced = terminal.add("replaced")
    _, old = terminal.claim(replaced)
    terminal.data("resume", replaced, "--agent", "ada")
    spent = terminal.add("spent")
    _, used = terminal.claim(spent)
    terminal.data("release", spent, "--token", used)
    expired = terminal.add("expired")
    late = terminal.claim_long_ago(expired)
    before = terminal.snapshot()
    for id_, token, status in (
        (expired, late, "claimed"),
        (replaced, old, "claimed"),
        (replaced, "0" * 32, "claimed"),
        (spent, used, "queued"),
    ):
        for verb in (
            ["heartbeat"],
            ["complete", "--result", "1"],
            ["fail", "--error", "e"],
            ["handoff", "--to", "bob"],
            *([] if id_ == spent else [["release"]]),
        ):
            error = terminal.refused("lease_lost", verb[0], id_, "--token", token, *verb[1:])
            assert list(error["details"]["actual"]) == ACTUAL
            assert error["details"]["actual"]["status"] == status
    assert terminal.process("heartbeat", expired, "--token", late).code == 5
    terminal.refused("lease_lost", "resume", expired, "--agent", "ada")
    assert terminal.snapshot() == before


def test_people_only_verbs_refuse_whoever_says_or_showed_to_be_an_agent(terminal: Terminal) -> None:
    id_ = terminal.add("t", "--needs-approval")
    _, token = terminal.claim(id_)
    terminal.data("complete", id_, "--token", token)
    before = terminal.snapshot()
    assert terminal.process("approve", id_, ATB_AGENT="bob").code == 6
    for words in (["approve", id_], ["reject", id_, "--note", "n"], ["update", id_, "--no-needs-approval"]):
        hint = terminal.refused("not_permitted", *words, ATB_AGENT="bob")["hint"]
        assert "a person" in hint
        assert "atb" not in hint
        terminal.refused("not_permitted", *words, "--actor", "maria", ATB_AGENT="bob")
        terminal.refused("not_permitted", *words, "--actor", "ADA")
        terminal.refused("not_permitted", *words, ATB_ACTOR="ada")
    assert terminal.snapshot() == before
    terminal.data("approve", id_)


@pytest.fixture
def locked(terminal: Terminal) -> Iterator[Terminal]:
    """Yield a terminal whose board another program has locked for writing."""
    terminal.write("atb.toml", 'busy_timeout = "0s"\n')
    terminal.add()
    other = sqlite3.connect(terminal.directory / "data" / "tasks.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield terminal
    other.close()


def test_locked_board_is_busy_for_writers_and_open_for_readers(locked: Terminal) -> None:
    before = locked.snapshot()
    answer = locked.process("claim", "--agent", "ada")
    assert (answer.code, answer.error["code"]) == (7, "busy")
    assert locked.process("list").data["tasks"][0]["status"] == "queued"
    assert locked.snapshot() == before


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.close()


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def prose(path: Path) -> None:
    path.write_text("dear diary, " * 100)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [foreign, newer, prose, folder])
def test_file_that_is_no_board_of_ours_is_unusable_and_stays_as_it_is(terminal: Terminal, spoil: Any) -> None:
    terminal.add()
    path = terminal.directory / "data" / "tasks.db"
    if spoil is not newer:
        path.unlink()
        for name in ("tasks.db-wal", "tasks.db-shm"):
            path.with_name(name).unlink(missing_ok=True)
        path.touch()
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    for words in (["list"], ["add", "t"], ["claim", "--agent", "ada"], ["tick"], ["show", UNKNOWN]):
        answer = terminal.process(*words)
        assert (answer.code, answer.error["code"]) == (8, "unusable"), words
        assert str(path) in answer.error["message"]
    assert (path.read_bytes() if path.is_file() else None) == before


def test_data_directory_that_is_a_file_is_unusable(terminal: Terminal) -> None:
    terminal.write("data", "a file")
    answer = terminal.process("add", "t", "--data-dir", "data")
    assert (answer.code, answer.error["code"]) == (8, "unusable")
    assert terminal.files() == {"data"}


def test_every_code_has_been_met_with_its_own_exit_code() -> None:
    assert sorted(EXIT_CODES.values()) == list(range(1, 10))


# Bad input


class Scene:
    """A board with a queued task, one held by ada and one in review, before the first bad call."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.ids = {"ID": terminal.add("queued", "--tag", "a"), "REVIEW": terminal.add("review", "--needs-approval")}
        _, token = terminal.claim(self.ids["REVIEW"])
        terminal.data("complete", self.ids["REVIEW"], "--token", token)
        self.ids["HELD"] = terminal.add("held")
        _, self.ids["TOKEN"] = terminal.claim(self.ids["HELD"])
        self.ids["LONG"] = "x" * 20_001
        terminal.write("nul", b"a\x00b")
        terminal.write("latin", "Grüße".encode("latin-1"))
        terminal.write("long", "x" * 20_001)
        terminal.write("longer", "x" * 200_001)
        terminal.write("huge", b"x" * 5_000_000)
        terminal.write("large.json", json.dumps({"a": "x" * 1_048_576}))
        terminal.write("deep.json", '{"a":' * 5_000 + "1" + "}" * 5_000)
        terminal.write("latin.json", b'{"a": "\xfc"}')
        (terminal.directory / "folder").mkdir()

    def words(self, line: str) -> list[str]:
        """Return a command line with the names of ``ids`` filled in; words are parted by ``|``."""
        return [self.ids.get(word, word) for word in line.split("|")]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(Terminal(tmp_path_factory.mktemp("scene")))


NUMBER = str(10**30)
ADA = "--agent|ada"
HELD = "HELD|--token|TOKEN"


REFUSED_BY_FIELD = {
    # what each option is called in a refusal, and that the refusal of the board comes through: one case an option
    f"add|{'x' * 501}": "title",
    "add|t|--body-file|nul": "body",
    "add|t|--queue|a\tb": "queue",
    "add|t|--priority|1000001": "priority",
    "add|t|--max-attempts|0": "max_attempts",
    f"add|t|--assignee|{'a' * 101}": "assignee",
    "add|t|--due|never": "due_at",
    "add|t|--not-before|0000-01-01": "not_before",
    f"add|t|--tag|{'x' * 65}": "tags",
    "add|t|--depends-on|xyz": "depends_on",
    f"add|t|--dedupe-key|{'k' * 201}": "dedupe_key",
    f"add|t|--request-id|{'k' * 201}": "request_id",
    "add|t|--actor|bell\x07": "actor",
    "add|t|--params|[1]": "params",
    'add|t|--params|{"a": 1, "a": 2}': "params",
    'add|t|--params|{"a": "\\ud800"}': "params",
    "add|t|--params|@deep.json": "params",
    "add|t|--params|@large.json": "params",
    "add|t|--claim": "agent",
    "add|t|--lease|5m": "lease",
    f"add|t|--claim|{ADA}|--lease|8d": "lease",
    "claim": "agent",
    "claim|--agent|NONE": "agent",
    f"claim|{ADA}|--lease|soon": "lease",
    f"claim|{ADA}|--queue|": "queue",
    f"claim|{ADA}|--tag|": "tags",
    f"claim|{ADA}|--if-status|done": "if_status",
    f"claim|ID|{ADA}|--comment|LONG": "comment",
    f"claim|{ADA}|--request-id|a\nb": "request_id",
    "resume|HELD": "agent",
    "resume|HELD|--agent|none": "agent",
    "heartbeat|HELD": "token",
    f"resume|HELD|{ADA}|--lease|8d": "lease",
    f"heartbeat|HELD|--token|{'0' * 201}": "token",
    f"heartbeat|{HELD}|--progress|101": "progress",
    f"heartbeat|{HELD}|--lease|0s": "lease",
    f"heartbeat|{HELD}|--note|LONG": "note",
    f"complete|{HELD}|--result|NaN": "result",
    f"complete|{HELD}|--result|@deep.json": "result",
    f"complete|{HELD}|--artifact|": "artifacts",
    f"complete|{HELD}|--note-file|long": "note",
    f"fail|{HELD}|--error|LONG": "error",
    f"fail|{HELD}|--error|e|--retry-in|367d": "retry_in",
    f"release|{HELD}|--after|soon": "after",
    f"release|{HELD}|--note|LONG": "note",
    f"handoff|{HELD}|--to|none": "to",
    "approve|REVIEW|--note|LONG": "note",
    "reject|REVIEW|--note|  ": "note",
    f"reassign|HELD|--to|{'a' * 101}": "to",
    "cancel|HELD|--note-file|nul": "note",
    "comment|ID|LONG": "text",
    f"update|ID|--title|{'x' * 501}": "title",
    "update|ID|--priority|1000001": "priority",
    "update|ID|--max-attempts|0": "max_attempts",
    "update|ID|--tag|b\n": "tags",
    "update|ID|--drop-tag|": "tags",
    "update|ID|--depends-on|xyz": "depends_on",
    "update|ID|--params|[1]": "params",
    "update|ID|--assignee|two\nlines": "assignee",
    "update|ID|--due|never": "due_at",
    "update|ID|--title|t|--if-status|open": "if_status",
    "update|ID|--title|t|--if-version|-1": "if_version",
    "list|--limit|0": "limit",
    "list|--order|size": "order",
    "list|--status|open": "status",
    "list|--after|somewhere": "after",
    "list|--queue|": "queue",
    "list|--tag|": "tags",
    "list|--claimed-by|none": "claimed_by",
    f"list|--search|{'x' * 501}": "search",
    "show|xyz": "id",
    "events|--after|-1": "after",
    "events|--limit|0": "limit",
    "events|--task|xyz": "id",
    "stats|--days|0": "days",
}
"""Command lines with a value that the board refuses, and the name of its field; ``test_inputs.py`` has the limits."""

REFUSED_BY_THE_COMMAND_LINE = {
    "words that are missing, too many or unknown": [
        *("add", "add|t|t", "add|t|--body", "add|t|--body|b|--body-file|latin", f"claim|ID|REVIEW|{ADA}"),
        *(f"claim||{ADA}", f"claim|ID|{ADA}|--queue|default", f"fail|{HELD}"),
        *(f"heartbeat|{HELD}|--note|a|--note-file|latin", f"fail|{HELD}|--error|e|--error-file|long"),
        *(f"fail|{HELD}|--error|e|--retry-in|5m|--no-retry", f"handoff|{HELD}", "approve", "reject|REVIEW"),
        *("reassign|HELD", "comment|ID", "update|ID", "update|ID|--if-status|queued", "update|ID|--status|done"),
        *("update|ID|--needs-approval|--no-needs-approval", "update|ID|--body|b|--body-file|long", "list|queued"),
        *("show", "show|ID|REVIEW", "agents|ada", "tick|now", "import", "config", "config|edit", "config|show|file"),
        *("demo|now", "list|--data-dir", "list|--json=yes", "list|--quiet=yes", "--nonsense|list", "-x|list"),
        *("list|-x", "List", "", "import-csv"),
    ],
    "values that are empty": [
        *("add|", "add|   ", "add|t|--queue|", "add|t|--priority|", "add|t|--tag|", "add|t|--depends-on|"),
        *("add|t|--params|", "claim|--agent|", f"claim|ID|{ADA}|--comment|", "heartbeat|HELD|--token|"),
        *(f"complete|{HELD}|--result|", f"fail|{HELD}|--error|", f"handoff|{HELD}|--to|", "reject|REVIEW|--note|"),
        *("comment|ID|", "update|ID|--title|", "list|--data-dir|", "list|--config|"),
    ],
    "what is no number": [
        *(f"add|t|--priority|{text}" for text in ("1.5", "1e3", "1_000", "+1", "٣", "high", NUMBER, f"-{NUMBER}")),
        *(f"heartbeat|{HELD}|--progress|{text}" for text in ("half", "12.5")),
        *("update|ID|--priority|many", "update|ID|--title|t|--if-version|latest"),
    ],
    "what is no length of time": [
        *(f"claim|{ADA}|--lease|{text}" for text in ("0", "7d1s", "-5", "1h 5m", "1w", NUMBER)),
        f"fail|{HELD}|--error|e|--retry-in|-1",
    ],
    "what is no JSON": [
        *(f"add|t|--params|{text}" for text in ("{", '{"a": NaN}', '{"a": 1} {}', "{'a': 1}", "9" * 5_000)),
        f"complete|{HELD}|--result|plain words",
    ],
    "files that are not there or no text": [
        *(f"add|t|--body-file|{name}" for name in ("latin", "longer", "huge", "missing", "folder", "")),
        *(f"add|t|--params|@{name}" for name in ("latin.json", "nul", "missing", "folder", "")),
        *("add|t|--params|-", "heartbeat|HELD|--token-file|missing", "heartbeat|HELD|--token-file|latin"),
        *(f"heartbeat|{HELD}|--note-file|nul", f"fail|{HELD}|--error-file|nul"),
        *(f"import|{name}" for name in ("missing", "folder", "latin", "nul", "deep.json")),
        *("config|show|--config|missing", "config|init|nowhere/atb.toml", f"list|--data-dir|{'x' * 4_097}"),
    ],
    "what means nothing here": [f"handoff|{HELD}|--to|Ada", "list|--status|waiting", "list|--after|age~1"],
}
"""Command lines that do not get as far as the board, or whose reading is the command line's own."""


def expect_nothing_changed(scene: Scene, lines: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run command lines that are refused, and yield each with its error; board and files must stay as they are."""
    terminal = scene.terminal
    board, files = terminal.snapshot(), terminal.files()
    for line in lines:
        error = terminal.refused("invalid_input", *scene.words(line))
        assert error["message"], line
        assert error["hint"], line
        assert (terminal.snapshot(), terminal.files()) == (board, files), line
        yield line, error


@pytest.mark.parametrize("lines", REFUSED_BY_THE_COMMAND_LINE.values(), ids=REFUSED_BY_THE_COMMAND_LINE)
def test_bad_call_is_refused_and_nothing_is_changed(scene: Scene, lines: list[str]) -> None:
    assert len(list(expect_nothing_changed(scene, lines))) == len(lines)


@pytest.mark.parametrize("command", dict.fromkeys(line.partition("|")[0] for line in REFUSED_BY_FIELD))
def test_refusal_names_the_field_and_nothing_is_changed(scene: Scene, command: str) -> None:
    lines = [line for line in REFUSED_BY_FIELD if line.partition("|")[0] == command]
    for line, error in expect_nothing_changed(scene, lines):
        assert error["details"].get("field") == REFUSED_BY_FIELD[line], line[:80]
        assert REFUSED_BY_FIELD[line] in error["message"], line[:80]


def test_bytes_that_are_no_text_are_refused_wherever_they_stand(scene: Scene) -> None:
    terminal, bad = scene.terminal, b"bad \xff\xfe"
    board, files = terminal.snapshot(), terminal.files()
    id_ = scene.ids["ID"]
    calls: list[list[str | bytes]] = [
        ["add", bad],
        ["add", "t", "--body", bad],
        ["add", "t", "--tag", bad],
        ["add", "t", "--params", b'{"a": "\xff"}'],
        ["comment", id_, bad],
        ["claim", "--agent", bad],
        ["list", "--search", bad],
        ["list", "--data-dir", bad],
        ["complete", scene.ids["HELD"], "--token", bad],
    ]
    for words in calls:
        answer = terminal.process(*words)
        assert answer.code == 2, words
        assert answer.error["code"] == "invalid_input"
    assert terminal.process("add", "t", ATB_ACTOR="\udcff").error["code"] == "invalid_input"
    assert terminal.snapshot() == board
    assert terminal.files() == files


MALFORMED = [
    *("", "{", "1", "null", "{}", '{"tasks": 1}', '{"tasks": null}', "[1]", "[null]", "[{}]"),
    *('[{"title": ""}]', '[{"title": "t", "nonsense": 1}]', '[{"title": "t", "token": "x"}]'),
    *('[{"title": "t", "title": "t"}]', '[{"title": "\\u0000"}]', '[{"title": "\\ud800"}]'),
    *('[{"title": "t", "priority": NaN}]', '[{"title": "t", "priority": 1.0}]', '[{"title": "t", "status": "open"}]'),
    *('[{"title": "t", "due_at": "never"}]', '[{"title": "t", "created_at": 5}]', '[{"title": "t", "id": "short"}]'),
    f'[{{"title": "t", "blocked_by": ["{UNKNOWN}"]}}]',
    f'[{{"title": "t", "id": "{UNKNOWN}", "blocked_by": ["{UNKNOWN}"]}}]',
    f'[{{"title": "t", "params": {"[" * 5_000}{"]" * 5_000}}}]',
    "[" * 5_000 + "]" * 5_000,
    '[{"title": "good"}, {"title": "t", "nonsense": 1}]',
    f'[{{"title": "good"}}, {{"title": "t", "blocked_by": ["{UNKNOWN}"]}}]',
    '{"ok": false, "error": {}, "warnings": []}',
]
"""Files that import takes nothing of; ``test_inputs.py`` has the limits of each field, ``test_import.py`` the rest."""


def test_malformed_import_is_refused_as_a_whole(scene: Scene) -> None:
    terminal = scene.terminal
    board, files = terminal.snapshot(), terminal.files()
    for content in MALFORMED:
        terminal.refused("invalid_input", "import", "-", stdin=content.encode())
        assert (terminal.snapshot(), terminal.files()) == (board, files), content[:80]


def test_following_without_an_end_is_not_asked_for_by_a_limit_of_zero(scene: Scene) -> None:
    for limit in ("0", "-1"):
        assert scene.terminal.process("events", "--follow", "--limit", limit).error["code"] == "invalid_input"


def test_import_that_is_no_utf_8_is_refused(scene: Scene) -> None:
    scene.terminal.refused("invalid_input", "import", "-", stdin='[{"title": "ü"}]'.encode("latin-1"))
    scene.terminal.refused("invalid_input", "import", "-", stdin='[{"title": "u"}]'.encode("utf-16"))


def test_malformed_task_of_an_import_is_named_by_place_and_field(terminal: Terminal) -> None:
    file = terminal.write_json("tasks.json", [{"title": "good"}, {"title": "t", "nonsense": 1}])
    details = terminal.refused("invalid_input", "import", file)["details"]
    assert (details["place"], details["field"]) == ("tasks[1]", "nonsense")


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"lease = ", None),
        (b"lease = \xff", None),
        (b'timezone = "Mars/Olympus"', "timezone"),
        (b'leese = "5m"', "leese"),
        (b"max_attempts = true", "max_attempts"),
        (b'busy_timeout = "long"', "busy_timeout"),
        (b"[serve]\nport = 99999", "serve.port"),
    ],
)
def test_bad_configuration_stops_every_command(terminal: Terminal, content: bytes, key: str | None) -> None:
    terminal.write("atb.toml", content)
    for words in (["list"], ["add", "t"], ["config", "show"], ["claim", "--agent", "ada"]):
        details = terminal.refused("invalid_input", *words)["details"]
        assert details["file"] == str(terminal.directory / "atb.toml")
        assert details.get("key") == key
    assert terminal.files() == {"atb.toml"}


def test_attempts_used_already_cannot_be_taken_back(terminal: Terminal) -> None:
    id_ = terminal.add()
    for _ in range(2):
        _, token = terminal.claim(id_)
        terminal.data("fail", id_, "--token", token, "--error", "e", "--retry-in", "0")
    before = terminal.snapshot()
    terminal.refused("invalid_input", "update", id_, "--max-attempts", "2")
    assert terminal.snapshot() == before


def test_stale_fail_is_answered_although_the_new_budget_has_no_attempt_yet(terminal: Terminal) -> None:
    id_ = terminal.add()
    _, token = terminal.claim()
    terminal.data("fail", id_, "--token", token, "--error", "e", "--no-retry")
    terminal.data("retry", id_)
    assert terminal.data("fail", id_, "--token", token, "--error", "e", "--no-retry")["replayed"] is True
    terminal.refused("lease_lost", "fail", id_, "--token", "0" * 32, "--error", "e")


@pytest.mark.parametrize("words", ["add t --body-file -", "add t --params -", "import -"])
def test_closed_standard_input_is_refused(tmp_path: Path, words: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m agent_task_board {words} <&-"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "invalid_input"
    assert not done.stderr


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["show"], "id: missing", "See `atb show --help`."),
        (["completion"], "shell: missing", "Values: bash, zsh, fish."),
        (["completion", "tcsh"], "shell: unknown value: 'tcsh'", "Values: bash, zsh, fish."),
        (["import", "x", "--format", "ods"], "format: unknown value: 'ods'", f"Values: {', '.join(IMPORT_FORMATS)}."),
        (["import", "x", "--format"], "format: no value given", f"Values: {', '.join(IMPORT_FORMATS)}."),
        (["list", "--limit", "x"], "limit: not a whole number: 'x'", "See `atb list --help`."),
        (["claim", "--lease"], "lease: no value given", "See `atb claim --help`."),
        (["list", "--lim", "3"], "unknown option: '--lim'", "Did you mean '--limit'?"),
        (["list", "two", "words"], "unexpected argument: 'two words'", "Quote a value of several words. See"),
    ],
)
def test_misspelt_call_is_refused_in_the_words_of_every_other_refusal(
    terminal: Terminal, words: list[str], message: str, hint: str
) -> None:
    error = terminal.refused("invalid_input", *words)
    assert (error["message"], error["hint"][: len(hint)]) == (message, hint)
