"""A git worktree of its own for each attempt, so that agents do not undo each other's changes."""

from __future__ import annotations

import os
import subprocess
import threading

from ..errors import InvalidInput
from ..folder import LeadsOut
from ..reach import reach_folder

FOLDER = os.path.join(".atb", "worktrees")
"""Where worktrees are, below the root of the repository."""
SECONDS = 120
"""Seconds that one call of git may take."""
_one_at_a_time = threading.Lock()


class GitFailed(Exception):
    """A call of git failed; the text is git's own."""


class Repository:
    """The repository of the working directory.

    Raises:
        InvalidInput: there is none, it has no commit, or there is no git.
    """

    def __init__(self) -> None:
        try:
            self.root = _git(os.getcwd(), "rev-parse", "--show-toplevel")
            _git(self.root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitFailed as error:
            raise InvalidInput(
                f"worktree: no git repository with a commit here: {error}",
                hint="Run it in a repository, or without --worktree.",
                field="worktree",
            ) from None
        self._within = os.path.relpath(os.path.realpath(os.getcwd()), os.path.realpath(self.root))

    def worktree(self, name: str) -> Worktree:
        """Create a worktree on a new branch ``atb/NAME``.

        Raises:
            GitFailed: git refuses.
        """
        folder = os.path.join(self.root, FOLDER)
        try:
            reach_folder(folder, self.root, create=True, mode=0o777).close()
        except LeadsOut as error:
            raise InvalidInput(
                f"worktree: {error.filename} is {error.strerror}", hint="Remove the link.", field="worktree"
            ) from None
        ignored = os.path.join(self.root, os.path.dirname(FOLDER), ".gitignore")
        if not os.path.lexists(ignored):
            with open(ignored, "x", encoding="ascii") as file:
                file.write("*\n")
        path, branch = os.path.join(folder, name), f"atb/{name}"
        with _one_at_a_time:
            _git(self.root, "worktree", "add", "--quiet", "-b", branch, path)
        return Worktree(self.root, path, branch, os.path.normpath(os.path.join(path, self._within)))


class Worktree:
    """One worktree: its path, its branch, and the directory in which the command runs."""

    def __init__(self, root: str, path: str, branch: str, directory: str) -> None:
        self.path = path
        self.branch = branch
        self.directory = directory if os.path.isdir(directory) else path
        self._root = root
        self._base = _git(path, "rev-parse", "HEAD")

    def leave(self) -> list[str]:
        """Remove the worktree and its branch if nothing was changed; else return its path and branch as artifacts."""
        if _git(self.path, "status", "--porcelain") or _git(self._root, "rev-parse", self.branch) != self._base:
            return [self.path, f"branch {self.branch}"]
        if _git(self.path, "rev-parse", "HEAD") != self._base:  # on another branch, or on none
            return [self.path]
        with _one_at_a_time:
            _git(self._root, "worktree", "remove", "--force", self.path)
            _git(self._root, "branch", "--quiet", "-D", self.branch)
        return []


def _git(directory: str, *words: str) -> str:
    """Run git in a directory and return what it prints.

    Raises:
        GitFailed: it fails, takes too long, or is not installed.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ran = subprocess.run(
            ["git", "-C", directory, *words],  # noqa: S607 - the user's own git, wherever it is
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            timeout=SECONDS,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise GitFailed("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]} takes more than {SECONDS} seconds") from None
    except OSError as error:
        raise GitFailed(f"git cannot be started: {error.strerror}") from None
    if ran.returncode:
        raise GitFailed(ran.stderr.decode("utf-8", "replace").strip() or f"git {words[0]} exits with {ran.returncode}")
    return ran.stdout.decode("utf-8", "surrogateescape").strip()
