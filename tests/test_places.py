"""One board a project, found from anywhere in it; and calls that are refused create none."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import ownership, places
from tests.command_line import LIMIT, Terminal, program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOMEBODY = 65_534
"""The number of another user."""

with_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Return a terminal in a home directory, with directories below it for projects."""
    return Terminal(tmp_path)


@pytest.fixture
def open_to_all() -> Iterator[Terminal]:
    """Return a terminal in a directory that other users can enter, unlike those of tests."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        with tempfile.TemporaryDirectory() as sources:
            Path(sources).chmod(0o755)
            shutil.copytree(Path(places.__file__).parent, Path(sources) / "agent_task_board")
            terminal = Terminal(Path(directory).resolve())
            terminal.environ["PYTHONPATH"] = sources  # a checkout may be one that they cannot enter
            yield terminal


def at(terminal: Terminal, name: str) -> Terminal:
    """Return a terminal in a directory, with the same home directory."""
    there = Terminal(terminal.directory / name)
    there.directory.mkdir(parents=True, exist_ok=True)
    there.environ.update(terminal.environ)
    return there


def git(directory: Path, *words: str) -> None:
    """Run git without the configuration of this machine."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "HOME": str(directory),
    }
    named = ("-c", "user.name=Maria", "-c", "user.email=maria@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *named, *words], cwd=directory, env=environ, capture_output=True, check=True, timeout=LIMIT)


def repository(terminal: Terminal, name: str = "app") -> Terminal:
    """Create a repository with one commit."""
    there = at(terminal, name)
    git(there.directory, "init", "-q")
    git(there.directory, "commit", "-q", "--allow-empty", "-m", "First")
    return there


def where(terminal: Terminal, **environ: str) -> dict[str, Any]:
    found: dict[str, Any] = terminal.data("where", **environ)
    return found


def board_of(terminal: Terminal, **environ: str) -> str:
    """Return the directory of the board that is used, relative to the home directory."""
    return os.path.relpath(where(terminal, **environ)["data_dir"], os.path.realpath(terminal.environ["HOME"]))


# The walk


@with_git
def test_subdirectory_uses_the_board_of_the_repository(terminal: Terminal) -> None:
    app = repository(terminal)
    deep = at(terminal, "app/src/deep")
    made = deep.atb("add", "Write the parser")
    assert made.warnings == [f"created a board at {app.directory / 'data' / 'tasks.db'}"]
    assert [task["title"] for task in app.data("list")["tasks"]] == ["Write the parser"]
    assert board_of(deep) == board_of(app) == "app/data"
    assert where(deep)["root"] == str(app.directory)
    assert where(deep)["why"] == "the nearest board upwards"


def test_subdirectory_outside_of_a_repository_uses_the_nearest_board_up_to_the_home_directory(
    terminal: Terminal,
) -> None:
    deep = at(terminal, "notes/deep")
    assert board_of(deep) == "notes/deep/data"
    at(terminal, "notes").data("init")
    assert board_of(deep) == "notes/.atb"
    above = Terminal(terminal.directory)
    above.environ["HOME"] = str(terminal.directory / "notes")
    above.add()
    deep.environ["HOME"] = above.environ["HOME"]
    shutil.rmtree(terminal.directory / "notes" / ".atb")
    found = where(deep)
    assert (found["exists"], found["data_dir"]) == (False, str(deep.directory / "data"))
    assert found["looked"] == [
        str(terminal.directory / directory / name / "tasks.db")
        for directory in ("notes/deep", "notes")
        for name in (".atb", "data")
    ]


@with_git
def test_worktrees_share_the_board_of_the_main_checkout(terminal: Terminal) -> None:
    app = repository(terminal)
    git(app.directory, "worktree", "add", "-q", "../feature")
    git(app.directory, "worktree", "add", "-q", ".worktrees/inside")
    (terminal.directory / "feature" / "src").mkdir()
    trees = [at(terminal, name) for name in ("feature", "feature/src", "app/.worktrees/inside", "app")]
    assert {board_of(tree) for tree in trees} == {"app/data"}
    trees[1].data("init")
    assert {board_of(tree) for tree in trees} == {"app/.atb"}
    assert {where(tree)["root"] for tree in trees} == {str(app.directory)}
    trees[0].add()
    assert len(app.data("list")["tasks"]) == 1


@with_git
def test_relative_directory_of_a_committed_file_is_one_for_all_worktrees(terminal: Terminal) -> None:
    app = repository(terminal)
    (app.directory / "atb.toml").write_text('data_dir = "tasks"\nlease = "5m"\n')
    git(app.directory, "add", "atb.toml")
    git(app.directory, "commit", "-q", "-m", "Settings")
    git(app.directory, "worktree", "add", "-q", "../feature")
    feature = at(terminal, "feature/src")
    feature.add()
    assert board_of(feature) == board_of(app) == "app/tasks"
    assert where(feature)["config"] == str(terminal.directory / "feature" / "atb.toml")


@with_git
@pytest.mark.parametrize("layout", ["app.git", "app/.bare", "app/.git"])
def test_worktrees_of_a_bare_repository_share_one_board(terminal: Terminal, layout: str) -> None:
    source = repository(terminal, "source")
    bare = terminal.directory / layout
    bare.parent.mkdir(exist_ok=True)
    git(terminal.directory, "clone", "-q", "--bare", str(source.directory), str(bare))
    if layout == "app/.bare":
        (bare.parent / ".git").write_text("gitdir: ./.bare\n")
    for name in ("one", "two"):
        git(bare, "worktree", "add", "-q", "-b", name, str(terminal.directory / "app" / name))
    root = "app.git" if layout == "app.git" else "app"
    one, two = at(terminal, "app/one"), at(terminal, "app/two")
    one.add()
    assert [board_of(tree) for tree in (one, two, at(terminal, root))] == [f"{root}/data"] * 3
    plan = two.data("setup", "claude", "--print")
    assert plan["project"] == str(two.directory), "a bare repository has no checkout to set up"
    assert plan["data_dir"] == str(terminal.directory / root / "data")


@with_git
def test_submodule_and_nested_repository_are_projects_of_their_own(terminal: Terminal) -> None:
    app, library = repository(terminal), repository(terminal, "library")
    git(app.directory, "submodule", "add", "-q", str(library.directory), "sub")
    repository(terminal, "app/nested")
    app.data("init")
    for name in ("sub", "nested"):
        inner = at(terminal, f"app/{name}/src")
        inner.refused("not_found", "list")
        assert (board_of(inner), where(inner)["root"]) == (f"app/{name}/data", str(app.directory / name))
    git(app.directory / "sub", "worktree", "add", "-q", str(terminal.directory / "subtree"))
    assert board_of(at(terminal, "subtree")) == "app/sub/data"
    assert at(terminal, "app/src").data("list")["tasks"] == []


@with_git
def test_variables_of_git_change_nothing_and_git_is_not_started(terminal: Terminal) -> None:
    app, other = repository(terminal), repository(terminal, "other")
    git(app.directory, "worktree", "add", "-q", "../feature")
    app.data("init")
    other.data("init")
    of_git = {"GIT_DIR": str(other.directory / ".git"), "GIT_WORK_TREE": str(other.directory)}
    for name in ("app", "feature"):
        assert board_of(at(terminal, name), **of_git) == "app/.atb"
        assert at(terminal, name).process("list", **of_git, PATH="/nowhere").data["tasks"] == []


@with_git
def test_home_directory_that_is_a_repository_is_the_project_of_what_is_below_it(terminal: Terminal) -> None:
    home = repository(terminal, ".")
    scratch, app = at(terminal, "scratch"), repository(terminal, "app")
    scratch.data("init")
    assert [board_of(one) for one in (home, scratch)] == [".atb", ".atb"]
    assert board_of(app) == "app/data"
    app.refused("not_found", "list")


@with_git
def test_symbolic_link_to_a_directory_leads_to_the_board_of_its_target(terminal: Terminal) -> None:
    app = repository(terminal)
    at(terminal, "app/src")
    app.data("init")
    (terminal.directory / "link").symlink_to("app/src")
    assert board_of(at(terminal, "link")) == "app/.atb"
    moved = at(terminal, "elsewhere/deep")
    (terminal.directory / "home").symlink_to("elsewhere")
    moved.environ["HOME"] = str(terminal.directory / "home")
    terminal.data("init")
    assert not where(moved)["exists"], "the walk ends at the home directory, whatever it is called"


def test_directory_of_another_program_is_left_alone(terminal: Terminal) -> None:
    (terminal.directory / "data").mkdir()
    terminal.write("data/users.csv", "name\n")
    made = terminal.atb("add", "t")
    assert made.warnings == [f"created a board at {terminal.directory / '.atb' / 'tasks.db'}"]
    assert os.listdir(terminal.directory / "data") == ["users.csv"]
    assert len(terminal.data("list")["tasks"]) == 1


def test_hidden_board_comes_before_the_plain_one_in_the_same_directory(terminal: Terminal) -> None:
    terminal.add()
    terminal.data("init", "--data-dir", ".atb")
    assert board_of(terminal) == ".atb"
    (terminal.directory / ".atb" / "tasks.db").write_bytes(b"")
    assert board_of(terminal) == "data", "an empty file is no board"


def test_file_that_names_a_directory_counts_from_there_downwards_and_before_a_board_beside_it(
    terminal: Terminal,
) -> None:
    terminal.add()
    terminal.write("atb.toml", 'data_dir = "tasks"\n')
    deep = at(terminal, "src/deep")
    assert board_of(deep) == board_of(terminal) == "tasks"
    assert where(deep)["why"] == f"file {terminal.directory / 'atb.toml'}"
    deep.refused("not_found", "list")
    assert str(terminal.directory / "tasks" / "tasks.db") in where(deep)["looked"]
    deep.data("init")
    assert (terminal.directory / "tasks" / "tasks.db").exists()
    deep.data("init", "--data-dir", ".atb")
    assert board_of(deep) == "src/deep/.atb"


def test_deleted_working_directory_is_refused_by_every_search(terminal: Terminal) -> None:
    code = (
        "import os, sys, tempfile; gone = tempfile.mkdtemp(); os.chdir(gone); os.rmdir(gone);"
        "from agent_task_board.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for words in (["add", "t"], ["list"], ["where"], ["init"], ["setup", "claude"], ["serve"]):
        answer = terminal.process(*words, code=code)
        assert answer.error["code"] == "invalid_input", words
        assert "no longer exists" in answer.error["message"]
    made = terminal.process("add", "t", "--data-dir", str(terminal.directory / "board"), code=code)
    assert made.data["created"]


@pytest.mark.parametrize("content", ["", "nonsense", "gitdir: ", "gitdir: nowhere\n", "gitdir: \0\n", "gitdir: .\n"])
def test_damaged_link_of_git_makes_the_directory_the_root(terminal: Terminal, content: str) -> None:
    deep = at(terminal, "app/src")
    (terminal.directory / "app" / ".git").write_text(content)
    assert where(deep)["root"] == str(terminal.directory / "app")
    deep.add()
    assert board_of(deep) == "app/data"


# Trust


def passed_over(terminal: Terminal, path: Path) -> None:
    """Check that every command says that a file does not count."""
    said = f"{path} is ignored: "
    answer = terminal.atb("where")
    assert [entry for entry in answer.data["ignored"] if entry.startswith(said)] == answer.data["ignored"] != []
    for words in (["list"], ["doctor"], ["serve", "--read-only"], ["add", "t"]):
        assert any(warning.startswith(said) for warning in terminal.atb(*words).warnings), words


def give_to_group(file: Path) -> None:
    """Let a group write a file that has other members than this user."""
    os.chown(file, -1, SOMEBODY)
    file.chmod(0o660)


UNTRUSTED: dict[str, Callable[[Path], None]] = {
    "a file that all can write": lambda file: file.chmod(0o666),
    "a directory that all can write": lambda file: file.parent.chmod(0o777),
    "a file of another group": give_to_group,
    "a file of somebody else": lambda file: os.chown(file, SOMEBODY, -1),
    "a directory of somebody else": lambda file: os.chown(file.parent, SOMEBODY, -1),
}


@as_root
@pytest.mark.parametrize("way", UNTRUSTED)
def test_file_that_others_control_is_passed_over_and_named(terminal: Terminal, way: str) -> None:
    file = terminal.directory / "src" / "atb.toml"
    work = at(terminal, "src/deep")
    file.write_text('data_dir = "evil"\nlease = "5m"\n')
    assert board_of(work) == "src/evil"
    UNTRUSTED[way](file)
    passed_over(work, file)
    assert board_of(work) == "src/deep/data"
    assert not (file.parent / "evil").exists()
    named = work.data("config", "show", "--config", str(file))
    assert named["values"]["lease"]["value"] == "5m", "a file that is named counts"


@as_root
@pytest.mark.parametrize("way", UNTRUSTED)
def test_board_that_others_control_is_passed_over_and_named(terminal: Terminal, way: str) -> None:
    above, work = at(terminal, "src"), at(terminal, "src/deep")
    above.data("init")
    assert board_of(work) == "src/.atb"
    file = above.directory / ".atb" / "tasks.db"
    UNTRUSTED[way](file)
    passed_over(work, file)
    assert len(work.data("list")["tasks"]) == 1
    assert work.data("list", "--data-dir", "../.atb")["tasks"] == [], "a board that is named counts"
    assert above.refused("unusable", "init")["hint"]
    above.data("add", "t")
    assert board_of(above) == "src/data"


@as_root
def test_no_board_is_created_in_a_directory_that_others_control(terminal: Terminal) -> None:
    for name in ("data", ".atb"):
        (terminal.directory / name).mkdir()
        (terminal.directory / name).chmod(0o777)
    before = terminal.files()
    for words in (["add", "t"], ["init"], ["serve", "--port", "0"], ["mcp"], ["setup", "claude"]):
        assert str(terminal.directory / ".atb") in terminal.refused("unusable", *words)["message"]
        assert terminal.files() == before, words


@as_root
def test_board_of_root_counts_and_one_of_another_user_does_not(open_to_all: Terminal) -> None:
    terminal, tmp_path = open_to_all, open_to_all.directory
    terminal.data("init", "--data-dir", "mine/.atb")
    terminal.data("init", "--data-dir", "theirs/.atb")
    work = at(terminal, "theirs/work")
    os.chown(work.directory, SOMEBODY, -1)
    os.chown(tmp_path / "theirs" / ".atb", SOMEBODY - 1, -1)
    (tmp_path / "theirs" / ".atb").chmod(0o755)
    found = as_user(work, "where")
    assert (found["data_dir"], found["exists"]) == (str(work.directory / "data"), False)
    assert ["another user owns" in one for one in found["ignored"]] == [True]
    os.chown(tmp_path / "theirs" / ".atb", 0, -1)
    (tmp_path / "theirs" / ".atb" / "config.toml").chmod(0o644)
    assert as_user(work, "where")["data_dir"] == str(tmp_path / "theirs" / ".atb")


@as_root
def test_hidden_directory_that_cannot_be_entered_is_named_and_not_taken_for_none(open_to_all: Terminal) -> None:
    open_to_all.data("init", "--data-dir", "project/.atb")
    work = at(open_to_all, "project/work")
    os.chown(work.directory, SOMEBODY, -1)
    found = as_user(work, "where")
    assert (found["exists"], len(found["ignored"])) == (False, 1)
    assert str(open_to_all.directory / "project" / ".atb") in found["ignored"][0]
    assert "Permission denied" in found["ignored"][0]


def as_user(terminal: Terminal, *words: str) -> Any:
    """Run a command as another user and return its data, or the error of a refusal.

    All modules are loaded before: the user may not be able to enter where Python is installed.
    """
    code = (
        "import encodings.utf_8_sig, os, sys, tomllib, pkgutil, importlib, agent_task_board as package;"
        "[importlib.import_module(found.name) for found in pkgutil.walk_packages(package.__path__, 'agent_task_board.')"
        " if not found.name.endswith('__main__')];"
        "from agent_task_board.cli import main;"
        f"os.setgroups([]); os.setgid({SOMEBODY}); os.setuid({SOMEBODY}); sys.exit(main(sys.argv[1:]))"
    )
    answer = terminal.process(*words, code=code)
    return answer.data if answer.envelope["ok"] else answer.error


def test_private_group_may_write(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    file = terminal.directory / "atb.toml"
    file.write_text("")
    file.chmod(0o664)
    monkeypatch.setattr(ownership, "_is_private_group", lambda gid: True)
    assert ownership.why_untrusted(str(file)) is None
    monkeypatch.setattr(ownership, "_is_private_group", lambda gid: False)
    assert ownership.why_untrusted(str(file)) == f"other users can write {file}"


# init and where


def test_init_writes_the_zone_of_the_machine_and_keeps_an_existing_board(terminal: Terminal) -> None:
    made = terminal.atb("init", TZ="Europe/Berlin")
    directory = terminal.directory / ".atb"
    assert made.data == {
        "data_dir": str(directory),
        "created": True,
        "config": str(directory / "config.toml"),
        "timezone": "Europe/Berlin",
    }
    assert made.warnings == [f"created a board at {directory / 'tasks.db'}"]
    shown = terminal.data("config", "show")
    assert (shown["file"], shown["values"]["timezone"]["value"]) == (made.data["config"], "Europe/Berlin")
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    again = terminal.atb("init", TZ="Asia/Tokyo")
    assert (again.data["created"], again.data["timezone"]) == (False, "Europe/Berlin")
    assert again.warnings == ["the project already has a board"]


def test_init_writes_no_file_that_would_hide_the_settings_of_another(terminal: Terminal) -> None:
    file = terminal.write("atb.toml", 'lease = "5m"\n')
    made = terminal.atb("init", TZ="Europe/Berlin")
    assert made.data["config"] == str(terminal.directory / file)
    assert any("no timezone" in warning for warning in made.warnings)
    assert terminal.data("config", "show")["values"]["lease"]["value"] == "5m"


def test_init_creates_the_board_that_was_named(terminal: Terminal) -> None:
    assert terminal.data("init", "--data-dir", "here")["data_dir"] == str(terminal.directory / "here")
    assert terminal.data("init", ATB_DATA_DIR="there")["data_dir"] == str(terminal.directory / "there")
    assert {"here/tasks.db", "there/tasks.db"} <= terminal.files()
    found = where(terminal, ATB_DATA_DIR="there")
    assert (found["why"], found["exists"], found["looked"]) == ("environment ATB_DATA_DIR", True, [])


# A refused call creates nothing


REFUSED = {
    "a date": ("invalid_input", ["add", "t", "--due", "never"]),
    "a dependency": ("not_found", ["add", "t", "--depends-on", "9F3K2A"]),
    "an agent": ("invalid_input", ["add", "t", "--claim", "--agent", "none"]),
    "a claim of a delayed task": ("conflict", ["add", "t", "--not-before", "2999-01-01", "--claim", "--agent", "ada"]),
    "a claim assigned elsewhere": ("conflict", ["add", "t", "--assignee", "bob", "--claim", "--agent", "ada"]),
    "a rule": ("invalid_input", ["schedule", "add", "n", "--cron", "61 * * * *", "--task", '{"title": "t"}']),
    "a template": ("invalid_input", ["schedule", "add", "n", "--cron", "* * * * *", "--task", '{"titel": "t"}']),
    "a zone": (
        "invalid_input",
        ["schedule", "add", "n", "--cron", "* * * * *", "--zone", "Mars/One", "--task", '{"title": "t"}'],
    ),
    "a missing file": ("invalid_input", ["import", "missing.json"]),
    "a port": ("invalid_input", ["serve", "--port", "99999"]),
    "a host": ("not_permitted", ["serve", "--host", "0.0.0.0", "--port", "0"]),
    "a host that is none": (None, ["serve", "--host", "no host", "--port", "0"]),
    "an option of a server": ("invalid_input", ["mcp", "--port", "1"]),
    "a client": ("invalid_input", ["setup", "emacs"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_call_creates_nothing(terminal: Terminal, what: str) -> None:
    code, words = REFUSED[what]
    error = terminal.atb(*words).error
    assert code in (None, error["code"]), error
    assert terminal.files() == set()
    assert code in (None, terminal.atb(*words, "--data-dir", "board").error["code"])
    assert terminal.files() == set()


def test_refused_import_creates_nothing(terminal: Terminal) -> None:
    file = terminal.write("tasks.json", '[{"title": "t"}, {"title": "t", "due_at": "never"}]')
    terminal.refused("invalid_input", "import", file)
    terminal.refused("invalid_input", "import", file, "--format", "csv")
    assert terminal.files() == {file}


def test_server_that_cannot_start_creates_nothing(terminal: Terminal) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = terminal.atb("serve", "--port", str(taken.getsockname()[1]))
        assert not answer.envelope["ok"]
    terminal.refused("invalid_input", "mcp", ATB_AGENT="none")
    assert terminal.files() == set()


@as_root
@pytest.mark.parametrize("words", ["init", "add t", "init --data-dir deep/board"])
def test_directory_that_cannot_be_written_is_refused_and_stays_empty(open_to_all: Terminal, words: str) -> None:
    assert as_user(open_to_all, *words.split())["code"] == "unusable"
    assert open_to_all.files() == set()


@pytest.mark.parametrize("words", ["init", "add t", "setup claude"])
def test_shared_file_system_is_refused_before_anything_is_created(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    from agent_task_board.storage import filesystem

    monkeypatch.setattr(filesystem, "shared_type", lambda directory: "nfs4")
    assert "nfs4" in terminal.refused("unusable", *words.split())["message"]
    assert terminal.files() == set()


def test_command_that_runs_where_no_board_is_creates_none_by_its_absence(terminal: Terminal) -> None:
    with subprocess.Popen(
        [*program(None), "events", "--follow"],
        cwd=terminal.directory,
        env=terminal.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        out, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, b'"not_found"' in out) == (3, True)
    assert terminal.files() == set()
