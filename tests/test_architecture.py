"""Which module may know which: folders are layers, and every import counts, also lazy and typing-only ones."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agent_task_board

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "agent_task_board"
SOURCES = Path(agent_task_board.__file__).parent

LAYERS = (
    {
        *("errors", "model", "inputs", "instants", "backoff", "identity", "settings", "config", "printable"),
        *("characters", "exhaustion", "folder", "isolation", "ownership", "places", "reach", "state", "trust"),
        "credentials",
        "_version",
    },
    {"storage"},
    {"board"},
    {"schedules", "hooks", "transfer", "upkeep", "text"},
    {"service"},
    {"cli", "web", "mcp_server", "setup", "demo", "run"},
    {"__init__", "__main__"},
)
"""Lowest first. A module imports from lower layers and from its own folder; of the lowest layer also from beside it."""

ADAPTERS = LAYERS[5]


def modules() -> Iterator[str]:
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = tuple(modules())


def source_of(module: str) -> Path:
    path = SOURCES.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class Import:
    """One import of a module of ours or of `sqlite3`, where it stands, and the names that it brings."""

    def __init__(self, source: str, target: str, names: tuple[str, ...], function: str | None, *, typing: bool) -> None:
        self.source = source
        self.target = target
        self.names = names
        self.function = function
        self.typing = typing

    @property
    def folders(self) -> tuple[str, str]:
        return self.source.partition(".")[0], self.target.partition(".")[0]

    def __repr__(self) -> str:
        return f"{self.source} imports {self.target}"


def imports_of(module: str, tree: ast.AST, function: str | None = None, *, typing: bool = False) -> Iterator[Import]:
    """Yield what a module imports; names relative to the package, as ``cli.output``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name.removeprefix(f"{PACKAGE}."), (), function, typing=typing)
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").removeprefix(f"{PACKAGE}.")
            if node.level:
                parts = [] if module == "__init__" else module.split(".")
                above = parts[: len(parts) - node.level + (source_of(module).name == "__init__.py")]
                base = ".".join([*([] if module == "__init__" else above), *filter(None, [base])])
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                target, names = (inner, ()) if inner in MODULES else (base or "__init__", (alias.name,))
                yield Import(module, target, names, function, typing=typing)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from imports_of(module, node, function, typing=True)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imports_of(module, node, function or node.name, typing=typing)
        else:
            yield from imports_of(module, node, function, typing=typing)


TREES = {module: ast.parse(source_of(module).read_text(encoding="utf-8")) for module in MODULES}
IMPORTS = [one for module, tree in TREES.items() for one in imports_of(module, tree)]
OURS = [one for one in IMPORTS if one.target in MODULES]


def layer_of(folder: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if folder in layer)


def trespass(one: Import) -> str | None:
    """Say which rule an import breaks, if any."""
    source, target = one.folders
    if source == target or layer_of(target) < layer_of(source) or layer_of(source) == layer_of(target) == 0:
        return None
    if layer_of(target) > layer_of(source):
        return "it points upwards"
    if layer_of(source) != 5:
        return "it points sideways"
    if source != "cli" or one.typing:
        return "adapters do not know each other"
    if starts_it(one) or is_program(one.source):
        return None
    return "the command line knows another adapter only inside the command that starts it"


def starts_it(one: Import) -> bool:
    """Say whether an import stands in a function of a module of commands: loaded when the command runs, not before."""
    return one.function is not None and any(
        isinstance(node, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == "COMMANDS" for name in node.targets)
        for node in TREES[one.source].body
    )


def is_program(module: str) -> bool:
    """Say whether a module is run by itself, and so may put together whatever it likes."""
    return 'if __name__ == "__main__"' in source_of(module).read_text(encoding="utf-8")


def test_every_folder_has_its_place() -> None:
    assert {module.partition(".")[0] for module in MODULES} == set().union(*LAYERS)
    assert len(OURS) > 300, "the imports were not found"
    assert {"cli.output", "board.core", "storage.db"} <= {one.target for one in OURS}


def test_no_import_crosses_a_wall_upwards_or_sideways() -> None:
    assert [(one, why) for one in OURS if (why := trespass(one))] == []


def test_no_two_modules_need_each_other_to_be_imported() -> None:
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for one in OURS:
        if one.function is None and not one.typing:
            needs[one.source].add(one.target)
    TopologicalSorter(needs).prepare()


def private_uses(module: str) -> Iterator[str]:
    """Yield the private names of other modules that a module uses."""
    bound: dict[str, str] = {}
    for one in IMPORTS:
        if one.source == module and one.target in MODULES:
            yield from (f"{one.target}.{name}" for name in one.names if is_private(name))
            if not one.names:
                bound[one.target.rpartition(".")[2]] = one.target
    others = {*bound, "board", "core", "database", "tx"}
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner in others:
                yield f"{owner}.{node.attr}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_version"


@pytest.mark.parametrize("module", MODULES)
def test_private_names_stay_in_their_module(module: str) -> None:
    assert list(private_uses(module)) == []


def test_only_storage_knows_sqlite() -> None:
    assert {one.source.partition(".")[0] for one in IMPORTS if one.target == "sqlite3"} == {"storage"}
    for module in MODULES:
        if not module.startswith("storage."):
            text = source_of(module).read_text(encoding="utf-8")
            assert not re.search(r"[\"']PRAGMA ", text), module


def test_an_arrow_that_points_upwards_is_seen_wherever_it_stands() -> None:
    source = """
def run():
    from ..cli.output import fail
    import sqlite3
if TYPE_CHECKING:
    from ..service import Board
from ..upkeep.backup import _store
"""
    found = list(imports_of("board.core", ast.parse(source)))
    assert [(one.target, one.function, one.typing) for one in found] == [
        ("cli.output", "run", False),
        ("sqlite3", "run", False),
        ("service", None, True),
        ("upkeep.backup", None, False),
    ]
    assert all(trespass(one) for one in found if one.target != "sqlite3")
    assert is_private(found[-1].names[0])
    sideways = next(imports_of("transfer.export", ast.parse("from ..schedules import recurrence")))
    assert trespass(sideways) == "it points sideways"
    assert trespass(next(imports_of("web.api", ast.parse("from ..cli import parsing")))) is not None


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_has_a_docstring(module: str) -> None:
    bare = [name for name, node in public(TREES[module]) if not ast.get_docstring(node)]
    assert ast.get_docstring(TREES[module])
    assert bare == []


def public(tree: ast.AST) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the public classes, functions and methods of a module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("_") or any(ast.unparse(one) == "overload" for one in node.decorator_list):
                continue
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node)
        elif isinstance(node, (ast.If, ast.Try)):
            yield from public(node)
