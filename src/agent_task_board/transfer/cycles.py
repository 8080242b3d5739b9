"""Find a dependency cycle among many tasks; arrays of integers, since there may be millions of dependencies."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def find_cycle(size: int, read_edges: Callable[[], Iterable[tuple[int, int]]]) -> list[int] | None:
    """Return the tasks along a cycle, the first one repeated at the end; ``None`` if there is no cycle.

    Tasks are numbers from 1 to ``size``. ``read_edges`` yields pairs (dependency, dependent), sorted by dependency. It
    is called a second time if there is a cycle.
    """
    open_dependencies = array("q", bytes(8 * (size + 1)))
    first = array("q", bytes(8 * (size + 2)))
    dependents = array("q")
    for dependency, dependent in read_edges():
        open_dependencies[dependent] += 1
        first[dependency + 1] += 1
        dependents.append(dependent)
    if not dependents:
        return None
    for number in range(1, size + 2):
        first[number] += first[number - 1]
    ready = array("q", (number for number in range(1, size + 1) if not open_dependencies[number]))
    remaining = size
    while ready:
        done = ready.pop()
        remaining -= 1
        for dependent in dependents[first[done] : first[done + 1]]:
            open_dependencies[dependent] -= 1
            if not open_dependencies[dependent]:
                ready.append(dependent)
    if not remaining:
        return None
    # Every remaining task depends on another remaining one: follow these until a task comes up again.
    following = {
        dependent: dependency
        for dependency, dependent in read_edges()
        if open_dependencies[dependent] and open_dependencies[dependency]
    }
    path = {next(iter(following)): 0}
    while True:
        dependency = following[next(reversed(path))]
        if dependency in path:
            return [*list(path)[path[dependency] :], dependency]
        path[dependency] = len(path)
