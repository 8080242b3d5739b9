"""What the documents say, held against the program; and the layout of the program, held against the documents."""

from __future__ import annotations

import ast
import fnmatch
import itertools
import re
import shlex
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agent_task_board
from agent_task_board import errors, inputs, instants, model, settings
from agent_task_board.board import history
from agent_task_board.cli import find, parsing, reference
from agent_task_board.cli.registry import MODULES
from agent_task_board.errors import BoardError
from tests.support import left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board import Board

ROOT = Path(__file__).parent.parent
PACKAGE = "agent_task_board"
SOURCES = ROOT / "src" / PACKAGE
FOLDERS = (".ci", ".github", "docs", "examples", "src", "tests")


def files_of_checkout() -> list[str]:
    """Return the files that belong to the project, tracked or about to be, as paths from ``ROOT``."""
    asked = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *FOLDERS, ":(glob)*"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False) if _has_git() else None
    if listed is not None and listed.returncode == 0:
        return [path for path in sorted(set(listed.stdout.split("\0"))) if path and (ROOT / path).is_file()]
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    found = itertools.chain(ROOT.glob("*"), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    return sorted(
        str(path.relative_to(ROOT))
        for path in found
        if path.is_file()
        and not any(fnmatch.fnmatch(part, mask) for part in path.relative_to(ROOT).parts for mask in ignored)
    )


def _has_git() -> bool:
    return (ROOT / ".git").exists()


FILES = files_of_checkout()
DOCUMENTS = [path for path in FILES if path.endswith(".md")]


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def prose(path: str) -> str:
    """Return a document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", read(path), flags=re.MULTILINE | re.DOTALL)


def blocks(path: str, *languages: str) -> list[str]:
    """Return the blocks of code of a document that are in one of these languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", read(path), re.MULTILINE | re.DOTALL)
    return [code for language, code in found if language in languages]


# Generated pages


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_page_is_what_the_generator_makes(name: str) -> None:
    assert read(f"docs/{name}") == reference.PAGES[name](), "run: python -m agent_task_board.cli.reference"


def test_generator_writes_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    reference.main()
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == sorted(reference.PAGES)
    assert (tmp_path / "docs" / "errors.md").read_text(encoding="utf-8") == reference.errors_page()


def test_page_of_commands_has_every_command_and_every_option() -> None:
    page = reference.commands_page()
    sections = dict(re.findall(r"^### atb (\w+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    every = page.partition("## Options of every command")[2].partition("\n## ")[0]
    assert list(sections) == list(MODULES)
    for name in MODULES:
        command = find(name)
        for action in parsing.parser_of(name, command)._actions:
            for option in action.option_strings:
                assert f"`{option}" in sections[name] or f"`{option}" in every or action.dest == "help", (name, option)
        assert command.summary in sections[name]
        for example in command.examples:
            assert example in sections[name]


def test_page_of_errors_has_every_refusal_with_its_numbers() -> None:
    page = reference.errors_page()
    for refusal in subclasses(BoardError):
        if refusal.__module__ == errors.__name__:
            assert refusal in errors.REFUSALS
            assert f"| `{refusal.code}` | {refusal.exit_code} | {refusal.http_status or 'none'} |" in page


def subclasses(kind: type[BoardError]) -> Iterator[type[BoardError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from subclasses(below)


def test_reasons_of_a_conflict_are_those_that_the_program_gives() -> None:
    assert reasons_given() == set(reference.REASONS)


def reasons_given() -> set[str]:
    """Return what stands after `reason=`, and what the functions return whose results are taken as `reason, …`."""
    nodes = [node for path in SOURCES.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    given = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "reason"]
    makers = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).strip("()").startswith("reason,"):
            assert isinstance(node.value, ast.Call), ast.unparse(node)
            makers.add(ast.unparse(node.value.func).rpartition(".")[2])
    for function in nodes:
        if isinstance(function, ast.FunctionDef) and function.name in makers:
            returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            given += [value.elts[0] for value in returned if isinstance(value, ast.Tuple)]
    return {str(value.value) for value in given if isinstance(value, ast.Constant)}


def test_schema_page_makes_the_very_tables_that_a_board_has(board: Board) -> None:
    board.add("Write the parser")
    asked = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
    made = sqlite3.connect(":memory:")
    there = sqlite3.connect(board.path)
    try:
        made.executescript(read("docs/schema.sql"))
        assert made.execute(asked).fetchall() == there.execute(asked).fetchall()
    finally:
        made.close()
        there.close()


def test_schema_page_keeps_the_comments_of_the_migrations() -> None:
    page = read("docs/schema.sql")
    for migration in (SOURCES / "storage" / "migrations").glob("*.sql"):
        for comment in re.findall(r"--.*", migration.read_text(encoding="utf-8")):
            assert comment in page


# Commands and links in the documents


def commands_in(line: str) -> Iterator[list[str]]:
    """Yield the words of each call of `atb` in a line of shell; ``$(…)``, pipes, conditions may stand around it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    start = True
    for place, word in enumerate(words):
        if start and (word == "atb" or word.endswith("/atb")):
            call = list(itertools.takewhile(lambda word: not is_operator(word), words[place + 1 :]))
            after = words[place + 1 + len(call) :][:1]
            if after and after[0].startswith(">") and call and call[-1].isdigit():
                call.pop()  # the 2 of "2>/dev/null"
            yield call
        keyword = word in ("if", "do", "then", "else", "while", "until", "env", "!", "$", "*")
        start = keyword or (is_operator(word) and word not in (">", ">>")) or re.fullmatch(r"\w+=.*", word) is not None


def is_operator(word: str) -> bool:
    return word != "" and set(word) <= set("();<>|&")


def lines_of(code: str) -> list[str]:
    return code.replace("\\\n", " ").splitlines()


def all_calls() -> list[tuple[str, list[str]]]:
    """Return every call of `atb` in the documents, in blocks of shell and between backticks."""
    found = []
    for path in DOCUMENTS:
        lines = [line for code in blocks(path, "sh", "bash", "crontab") for line in lines_of(code) if "atb" in line]
        spans = re.findall(r"`(atb [a-z-][^`]*)`", prose(path))
        found += [(path, call) for line in lines + spans for call in commands_in(line)]
    return found


def parses(call: list[str]) -> bool:
    """Parse a call as the program does; a refusal goes up."""
    arguments = list(call)
    place = parsing.place_of_command(arguments)
    if place is None:
        return not {"--help", "--version", "-V"}.isdisjoint(arguments)
    name = arguments.pop(place)
    if name == "help":
        return arguments in ([], ["COMMAND"]) or find(arguments[0]) is not None
    if name == "COMMAND" or not arguments:  # a mention: `atb show`
        return name == "COMMAND" or find(name) is not None
    try:
        parsing.parser_of(name, find(name)).parse_args(arguments)
    except SystemExit as stop:  # --help
        return stop.code == 0
    return True


@pytest.mark.parametrize(
    ("path", "call"), all_calls(), ids=lambda value: value if isinstance(value, str) else shlex.join(value)
)
def test_every_command_in_the_documents_is_one_that_the_program_takes(path: str, call: list[str]) -> None:
    assert parses(call), (path, call)


def test_commands_are_found_wherever_a_shell_has_them() -> None:
    line = (
        'A=1 X=$(atb add "a b" --due "" | pick id) && if ! .venv/bin/atb tick 2>/dev/null; then atb list; fi # atb no'
    )
    assert list(commands_in(line)) == [["add", "a b", "--due", ""], ["tick"], ["list"]]
    assert list(commands_in("echo atb is no call")) == []
    assert {path for path, _ in all_calls()} >= {"README.md", "docs/agents.md", "docs/cli.md", "docs/tour.md"}
    with pytest.raises(BoardError):
        parses(["claim", "--agnet", "ada"])


def slugs(path: str) -> set[str]:
    """Return the anchors of a document's headings, as its readers on the web have them."""
    heads = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_links_between_documents_lead_somewhere() -> None:
    followed = 0
    for path in DOCUMENTS:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
            if re.match(r"\w+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (ROOT / path).parent / file if file else ROOT / path
            assert target.is_file(), (path, link)
            if anchor:
                assert anchor in slugs(str(target.resolve().relative_to(ROOT))), (path, link)
            followed += 1
    assert followed > 20


def test_blocks_say_whether_they_are_for_pasting() -> None:
    """What is marked `sh` is pasted by test_pasting.py; a prompt cannot be pasted, so there are no transcripts."""
    others = {"abnf", "bash", "crontab", "fish", "ini", "json", "python", "text", "toml", "xml", "zsh"}
    for path in DOCUMENTS:
        marks = set(re.findall(r"^```(\w*)\n.*?^```$", read(path), re.MULTILINE | re.DOTALL))
        assert marks <= {"sh", *others, *([""] if path == "docs/cli.md" else [])}, path


def test_each_defence_names_a_test_that_there_is() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", read("docs/security.md"))
    assert len(named) > 40
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_readme_leads_to_every_document() -> None:
    for path in DOCUMENTS:
        if path.startswith("docs/"):
            assert f"]({path})" in read("README.md"), path


# Words


def test_lifecycle_names_every_word_that_the_program_uses() -> None:
    page = read("docs/lifecycle.md")
    words = {*model.STATUSES, *model.OUTCOMES, *model.EVENT_KINDS, *model.ACTOR_KINDS}
    assert {word for word in words if f"`{word}`" not in page} == set()
    keys = re.search(r"^`(id title [^`]*)`, then `([^`]*)`", page, re.MULTILINE)
    assert keys is not None
    assert tuple(" ".join(keys.groups()).split()) == model.JSON_KEYS


def test_lifecycle_defines_the_words_of_the_glossary() -> None:
    table = read("docs/lifecycle.md").partition("## Terms")[2].partition("\n## ")[0]
    defined = re.findall(r"^\| (?!term|---)([^|]+?) \|", table, re.MULTILINE)
    assert set(defined) >= {
        *("task", "queue", "agent", "actor", "claim", "lease", "lease token", "fence", "heartbeat", "attempt"),
        *(
            "outcome",
            "backoff",
            "ready",
            "blocked",
            "review",
            "dedupe key",
            "request id",
            "event",
            "version",
            "revision",
        ),
    }


def test_lifecycle_has_every_verb_of_the_board() -> None:
    table = read("docs/lifecycle.md").partition("## Transitions")[2].partition("\n## ")[0]
    others = """
    list show events agents stats watch wait why run completion prime setup tick config demo serve mcp
    schedule hooks backup restore doctor export import edit init where trust open key
    """
    verbs = set(MODULES) - {*others.split()}
    assert {verb for verb in verbs if f"| `{verb}` |" not in table} == set()


@pytest.mark.parametrize(
    "word",
    [r"jobs?", r"lanes?", r"visibility timeout", r"cooldowns?", r"idempotency key", r"consumers?", r"work items?"],
)
def test_one_word_for_one_thing(word: str) -> None:
    for path in DOCUMENTS:
        found = re.search(rf"(?<!--)\b{word}\b", prose(path), re.IGNORECASE)  # but for the option --jobs
        assert found is None, (path, found)


def test_lifecycle_tells_the_limits_that_are_enforced() -> None:
    table = read("docs/lifecycle.md").partition("## Limits")[2]
    told = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE))
    assert told["title"] == f"1 to {inputs.TITLE} characters"
    assert told["body"] == f"{inputs.BODY:,} characters"
    assert told["note, comment, error"] == f"{inputs.TEXT:,} characters"
    assert told["name of an agent, actor or queue"] == f"{inputs.NAME} characters"
    assert told["dedupe key, request id"] == f"{inputs.KEY} characters"
    assert told["path of an artifact"] == f"{inputs.PATH:,} characters"
    assert told["tag"] == f"{inputs.TAG} characters"
    assert told["tags"] == str(inputs.TAGS)
    assert told["dependencies, artifacts"] == f"{inputs.DEPENDENCIES:,} each" == f"{inputs.ARTIFACTS:,} each"
    assert told["`params`, `result`"].startswith(
        f"{inputs.JSON_BYTES:,} bytes of JSON each, {inputs.JSON_DEPTH} levels"
    )
    assert told["priority"] == f"-{inputs.PRIORITY:,} to {inputs.PRIORITY:,}"
    assert told["`max_attempts`"] == f"1 to {inputs.MAX_ATTEMPTS:,}"
    assert settings.LEASE_LOW == instants.SECOND
    assert told["lease"] == f"1 second to {settings.LEASE_HIGH // instants.DAY} days"
    assert told["wait of `fail` and `release`"] == f"0 to {settings.WAIT_HIGH // instants.DAY} days"


def test_lifecycle_names_the_fields_that_the_fold_gives() -> None:
    fold = read("docs/lifecycle.md").partition("**Fold.**")[2].partition("are now.")[0].partition("the result is")[2]
    assert set(re.findall(r"`(\w+)`", fold)) == set(history.TRACKED)


def test_table_of_exit_codes_is_that_of_the_program() -> None:
    told = re.findall(r"^\| (\d) \| `(\w+)` \|", read("docs/agents.md"), re.MULTILINE)
    assert told == [(str(refusal.exit_code), refusal.code) for refusal in errors.REFUSALS]


def test_import_page_names_every_field_of_a_task() -> None:
    page = read("docs/import.md")
    assert {key for key in model.JSON_KEYS if f"`{key}`" not in page} == set()


def test_changelog_has_this_version() -> None:
    assert f"\n## {agent_task_board.__version__}\n" in read("CHANGELOG.md")


# Files


def test_no_file_has_a_path_of_somebodys_machine_or_names_a_package_registry() -> None:
    machine = r"/(?:root|work|workspace|Users|opt|mnt|private)/\w|/home/(?!ada\b)\w|/tmp/\w|\b[A-Z]:\\\\?Users"
    registry = r"\b(?:pypi|npmjs|anaconda|jfrog|artifactory|nexus)\.\w|pythonhosted\.\w|--(?:extra-)?index-url"
    for path in FILES:
        content = (ROOT / path).read_bytes()
        if b"\0" not in content:
            found = re.search(f"{machine}|{registry}", content.decode())
            assert found is None, (path, found)


def test_ordinary_suite_leaves_out_the_long_runs() -> None:
    collect = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/test_state_machine.py"]
    ordinary, soak = (collected([*collect, *more]) for more in ([], ["-m", "soak"]))
    assert ordinary
    assert soak
    assert not ordinary & soak


def collected(arguments: list[str]) -> set[str]:
    """Return the tests that pytest would run."""
    import sys

    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)
    return {line for line in done.stdout.splitlines() if "::" in line}


# What lifecycle.md says and no other test asks


def test_note_of_a_reassign_is_told_to_the_first_agent_that_claims_the_task(board: Board) -> None:
    task = board.add("Write the parser").task
    board.reassign(task.id, "ada", note="look at the old branch")
    receipt = board.claim("ada")
    assert receipt is not None
    assert left(receipt) == [("reassigned", "maria", "look at the old branch")]


def test_board_of_the_pictures_is_the_same_one_every_time(tmp_path: Path) -> None:
    from tests import screenshots  # imports the browser's library

    first, second = (screenshots.sample_board(str(tmp_path / name)) for name in ("first", "second"))
    assert first == second
    pictures = {f"{picture.name}.png" for picture in screenshots.pictures(first)}
    assert pictures == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
