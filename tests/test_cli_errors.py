"""Every refusal of the command line, produced for real: its code, its exit code, and that nothing was changed."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.command_line import EXIT_CODES, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNKNOWN = "01JDXAAAAAAAAAAAAAAAAA7Q2Z"
ACTUAL = ["status", "version", "claimed_by", "claimed_at", "lease_expires_at"]
SABOTAGED = """
import agent_task_board.board.queries
def stats(*_, **__):
    raise ZeroDivisionError("a fault of our own")
agent_task_board.queries.Queries.stats = stats
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
        assert f"atb {words[0]}" in hint
        terminal.refused("not_permitted", *words, "--actor", "maria", ATB_AGENT="bob")
        terminal.refused("not_permitted", *words, "--actor", "ADA")
        terminal.refused("not_permitted", *words, ATB_ACTOR="ada")
    assert terminal.snapshot() == before
    terminal.data("approve", id_)


@pytest.fixture
def locked(terminal: Terminal) -> Iterator[Terminal]:
    """Yield a terminal whose board another program has locked for writing."""
    terminal.write("atb.toml", 'busy_timeout = "1s"\n')
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
    answer = terminal.process("add", "t")
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


@pytest.mark.parametrize(
    "line",
    [
        # titles and texts
        "add",
        "add|",
        "add|   ",
        f"add|{'x' * 501}",
        "add|two\nlines",
        "add|bell\x07",
        "add|escape\x9b31m",
        "add|t|t",
        "add|t|--body-file|nul",
        "add|t|--body-file|latin",
        "add|t|--body-file|longer",
        "add|t|--body-file|huge",
        "add|t|--body-file|missing",
        "add|t|--body-file|folder",
        "add|t|--body-file|",
        "add|t|--body|b|--body-file|latin",
        "add|t|--body",
        # names, numbers, instants
        "add|t|--queue|",
        f"add|t|--queue|{'q' * 101}",
        "add|t|--queue|a\tb",
        "add|t|--priority|1000001",
        "add|t|--priority|-1000001",
        f"add|t|--priority|{NUMBER}",
        f"add|t|--priority|-{NUMBER}",
        "add|t|--priority|1.5",
        "add|t|--priority|1e3",
        "add|t|--priority|1_000",
        "add|t|--priority|+1",
        "add|t|--priority|٣",
        "add|t|--priority|",
        "add|t|--priority|high",
        "add|t|--max-attempts|0",
        "add|t|--max-attempts|1001",
        f"add|t|--assignee|{'a' * 101}",
        "add|t|--due|tomorrow",
        "add|t|--due|2026-02-30",
        "add|t|--due|2026-01-01T25:00",
        "add|t|--not-before|1796000000",
        "add|t|--not-before|0000-01-01",
        "add|t|--tag|",
        f"add|t|--tag|{'x' * 65}",
        "add|t" + "".join(f"|--tag|t{number}" for number in range(51)),
        "add|t|--depends-on|",
        "add|t|--depends-on|xyz",
        "add|t|--depends-on|not an id",
        f"add|t|--dedupe-key|{'k' * 201}",
        f"add|t|--request-id|{'k' * 201}",
        "add|t|--actor|bell\x07",
        # JSON
        "add|t|--params|",
        "add|t|--params|{",
        "add|t|--params|[1]",
        'add|t|--params|"text"',
        'add|t|--params|{"a": NaN}',
        'add|t|--params|{"a": Infinity}',
        'add|t|--params|{"a": -Infinity}',
        'add|t|--params|{"a": 1e999}',
        f'add|t|--params|{{"a": {NUMBER}}}',
        f'add|t|--params|{{"a": {2**63}}}',
        f'add|t|--params|{{"a": {"9" * 5_000}}}',
        'add|t|--params|{"a": 1, "a": 2}',
        'add|t|--params|{"x": {"a": 1, "a": 1}}',
        'add|t|--params|{"a": "\\ud800"}',
        'add|t|--params|{"\\udfff": 1}',
        "add|t|--params|{'a': 1}",
        'add|t|--params|{"a": 1} {}',
        "add|t|--params|" + '{"a":' * 101 + "1" + "}" * 101,
        "add|t|--params|" + '{"a":' * 5_000 + "1" + "}" * 5_000,
        "add|t|--params|@deep.json",
        "add|t|--params|@large.json",
        "add|t|--params|@latin.json",
        "add|t|--params|@nul",
        "add|t|--params|@missing",
        "add|t|--params|@folder",
        "add|t|--params|@",
        "add|t|--params|-",
        # add with a claim
        "add|t|--claim",
        "add|t|--claim|--agent|none",
        "add|t|--lease|5m",
        f"add|t|--claim|{ADA}|--lease|0s",
        f"add|t|--claim|{ADA}|--lease|8d",
        f"add|t|--claim|{ADA}|--lease|soon",
        # claim
        "claim",
        "claim|--agent|",
        "claim|--agent|NONE",
        f"claim|--agent|{'a' * 101}",
        f"claim|{ADA}|--lease|0",
        f"claim|{ADA}|--lease|7d1s",
        f"claim|{ADA}|--lease|-5",
        f"claim|{ADA}|--lease|1h 5m",
        f"claim|{ADA}|--lease|1w",
        f"claim|{ADA}|--lease|{NUMBER}",
        f"claim|{ADA}|--queue|",
        f"claim|{ADA}|--tag|",
        f"claim|{ADA}" + "".join(f"|--queue|q{number}" for number in range(101)),
        f"claim|{ADA}|--if-status|done",
        f"claim|ID|{ADA}|--if-status|open",
        f"claim|ID|{ADA}|--queue|default",
        f"claim|ID|{ADA}|--comment|",
        f"claim|ID|{ADA}|--comment|LONG",
        f"claim|ID|REVIEW|{ADA}",
        f"claim||{ADA}",
        f"claim|{ADA}|--request-id|a\nb",
        # under a lease
        "resume|HELD",
        "resume|HELD|--agent|none",
        f"resume|HELD|{ADA}|--lease|8d",
        "heartbeat|HELD",
        "heartbeat|HELD|--token|",
        "heartbeat|HELD|--token-file|missing",
        "heartbeat|HELD|--token-file|latin",
        f"heartbeat|HELD|--token|{'0' * 201}",
        f"heartbeat|{HELD}|--progress|-1",
        f"heartbeat|{HELD}|--progress|101",
        f"heartbeat|{HELD}|--progress|half",
        f"heartbeat|{HELD}|--progress|12.5",
        f"heartbeat|{HELD}|--lease|0s",
        f"heartbeat|{HELD}|--note|LONG",
        f"heartbeat|{HELD}|--note-file|nul",
        f"heartbeat|{HELD}|--note|a|--note-file|latin",
        f"complete|{HELD}|--result|NaN",
        f"complete|{HELD}|--result|",
        f"complete|{HELD}|--result|plain words",
        f"complete|{HELD}|--result|{NUMBER}",
        f"complete|{HELD}|--result|@deep.json",
        f"complete|{HELD}|--result|@large.json",
        f"complete|{HELD}|--artifact|",
        f"complete|{HELD}|--artifact|{'x' * 4_097}",
        f"complete|{HELD}|--artifact|a\nb",
        f"complete|{HELD}|--note-file|long",
        f"fail|{HELD}",
        f"fail|{HELD}|--error|",
        f"fail|{HELD}|--error|LONG",
        f"fail|{HELD}|--error-file|nul",
        f"fail|{HELD}|--error|e|--error-file|long",
        f"fail|{HELD}|--error|e|--retry-in|5m|--no-retry",
        f"fail|{HELD}|--error|e|--retry-in|367d",
        f"fail|{HELD}|--error|e|--retry-in|-1",
        f"release|{HELD}|--after|soon",
        f"release|{HELD}|--after|367d",
        f"release|{HELD}|--note|LONG",
        f"handoff|{HELD}",
        f"handoff|{HELD}|--to|",
        f"handoff|{HELD}|--to|none",
        f"handoff|{HELD}|--to|Ada",
        # people
        "approve",
        "approve|REVIEW|--note|LONG",
        "reject|REVIEW",
        "reject|REVIEW|--note|",
        "reject|REVIEW|--note|  ",
        "reassign|HELD",
        f"reassign|HELD|--to|{'a' * 101}",
        "cancel|HELD|--note-file|nul",
        "comment|ID",
        "comment|ID|",
        "comment|ID|LONG",
        # update
        "update|ID",
        "update|ID|--if-status|queued",
        "update|ID|--title|",
        f"update|ID|--title|{'x' * 501}",
        "update|ID|--priority|1000001",
        "update|ID|--priority|many",
        "update|ID|--max-attempts|0",
        "update|ID|--tag|b\n",
        "update|ID|--drop-tag|",
        "update|ID|--depends-on|xyz",
        "update|ID|--params|[1]",
        "update|ID|--assignee|two\nlines",
        "update|ID|--due|never",
        "update|ID|--title|t|--if-status|open",
        "update|ID|--title|t|--if-version|-1",
        "update|ID|--title|t|--if-version|latest",
        "update|ID|--needs-approval|--no-needs-approval",
        "update|ID|--body|b|--body-file|long",
        "update|ID|--status|done",
        # looking
        "list|--limit|0",
        "list|--limit|100001",
        "list|--limit|-1",
        "list|--order|size",
        "list|--status|open",
        "list|--status|waiting",
        "list|--after|somewhere",
        "list|--after|age~1",
        "list|--after|priority~x~1|--order|priority",
        "list|--queue|",
        "list|--tag|",
        "list|--claimed-by|none",
        "list|queued",
        f"list|--search|{'x' * 501}",
        "show",
        "show|ID|REVIEW",
        "events|--after|-1",
        "events|--limit|0",
        "events|--limit|10001",
        "events|--task|xyz",
        "stats|--days|0",
        "stats|--days|367",
        "agents|ada",
        # upkeep
        "tick|now",
        "import",
        "import|missing",
        "import|folder",
        "import|latin",
        "import|nul",
        "import|deep.json",
        "config",
        "config|edit",
        "config|show|file",
        "config|show|--config|missing",
        "config|init|nowhere/atb.toml",
        "demo|now",
        # every command
        "list|--data-dir|",
        f"list|--data-dir|{'x' * 4_097}",
        "list|--config|",
        "list|--data-dir",
        "list|--json=yes",
        "list|--quiet=yes",
        "--nonsense|list",
        "-x|list",
        "list|-x",
        "List",
        "",
        "import-csv",
    ],
)
def test_bad_input_is_refused_and_nothing_is_changed(scene: Scene, line: str) -> None:
    terminal = scene.terminal
    board, files = terminal.snapshot(), terminal.files()
    error = terminal.refused("invalid_input", *scene.words(line))
    assert error["message"]
    assert error["hint"]
    assert terminal.snapshot() == board
    assert terminal.files() == files


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (f"add|{'x' * 501}", "title"),
        ("add|t|--body-file|nul", "body"),
        ("add|t|--priority|1000001", "priority"),
        ("add|t|--due|never", "due_at"),
        ("add|t|--not-before|never", "not_before"),
        ("add|t|--params|[1]", "params"),
        ('add|t|--params|{"a": 1, "a": 2}', "params"),
        ('add|t|--params|{"a": "\\ud800"}', "params"),
        (f"complete|{HELD}|--result|NaN", "result"),
        (f"complete|{HELD}|--result|@deep.json", "result"),
        (f"complete|{HELD}|--artifact|", "artifacts"),
        (f"heartbeat|{HELD}|--progress|101", "progress"),
        (f"claim|{ADA}|--lease|soon", "lease"),
        ("list|--status|open", "status"),
        ("show|xyz", "id"),
        ("add|t|--depends-on|xyz", "depends_on"),
    ],
)
def test_refusal_names_the_field(scene: Scene, line: str, field: str) -> None:
    error = scene.terminal.refused("invalid_input", *scene.words(line))
    assert error["details"]["field"] == field
    assert field in error["message"]


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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "1",
        "null",
        "{}",
        '{"tasks": 1}',
        '{"tasks": null}',
        "[1]",
        "[null]",
        "[{}]",
        '[{"title": ""}]',
        '[{"title": 7}]',
        f'[{{"title": "{"x" * 501}"}}]',
        '[{"title": "t", "nonsense": 1}]',
        '[{"title": "t", "token": "x"}]',
        '[{"title": "t", "title": "t"}]',
        '[{"title": "\\u0000"}]',
        '[{"title": "t", "body": "\\u0000"}]',
        '[{"title": "\\ud800"}]',
        '[{"title": "t", "priority": NaN}]',
        '[{"title": "t", "priority": 1.0}]',
        '[{"title": "t", "priority": true}]',
        f'[{{"title": "t", "priority": {NUMBER}}}]',
        '[{"title": "t", "priority": 1000001}]',
        '[{"title": "t", "status": "open"}]',
        '[{"title": "t", "status": "waiting"}]',
        '[{"title": "t", "tags": "core"}]',
        '[{"title": "t", "tags": [1]}]',
        '[{"title": "t", "params": []}]',
        '[{"title": "t", "needs_approval": 1}]',
        '[{"title": "t", "due_at": 5}]',
        '[{"title": "t", "due_at": false}]',
        '[{"title": "t", "not_before": []}]',
        '[{"title": "t", "due_at": "never"}]',
        '[{"title": "t", "created_at": 5}]',
        '[{"title": "t", "id": "short"}]',
        '[{"title": "t", "id": 5}]',
        '[{"title": "t", "max_attempts": 0}]',
        '[{"title": "t", "blocked_by": "x"}]',
        '[{"title": "t", "blocked_by": ["xyz"]}]',
        f'[{{"title": "t", "blocked_by": ["{UNKNOWN}"]}}]',
        f'[{{"title": "t", "id": "{UNKNOWN}", "blocked_by": ["{UNKNOWN}"]}}]',
        f'[{{"title": "t", "params": {"[" * 5_000}{"]" * 5_000}}}]',
        "[" * 5_000 + "]" * 5_000,
        '[{"title": "good"}, {"title": "t", "nonsense": 1}]',
        '[{"title": "good"}, {"title": "t", "blocked_by": ["01JDXAAAAAAAAAAAAAAAAA7Q2Z"]}]',
        '{"ok": false, "error": {}, "warnings": []}',
    ],
)
def test_malformed_import_is_refused_as_a_whole(scene: Scene, content: str) -> None:
    terminal = scene.terminal
    board, files = terminal.snapshot(), terminal.files()
    terminal.refused("invalid_input", "import", "-", stdin=content.encode())
    assert terminal.snapshot() == board
    assert terminal.files() == files


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
