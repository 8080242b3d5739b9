"""A sample board to look at: two weeks in the life of Trailhead, a planner of walks that works without a network.

``python -m tests.showcase DIR [--tasks N]`` makes it in an empty directory; with ``N`` further tasks are added to it.
"""

from __future__ import annotations

import argparse
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_task_board import Actor, Board, instants

if TYPE_CHECKING:
    from collections.abc import Callable

AGENTS = ("fern", "moss", "otter", "wren", "birch", "kestrel")
MARIA = Actor("maria", "human")
JONAS = Actor("jonas", "human")
HOUR = instants.HOUR


class Plan(NamedTuple):
    """One task, made ``hours`` ago; ``needs`` names the plans that it waits for."""

    key: str
    title: str
    queue: str
    hours: float
    priority: int = 0
    tags: str = ""
    needs: str = ""
    due: float | None = None
    """Hours from now."""
    start: float | None = None
    """Not before so many hours from now."""
    approval: bool = False
    assignee: str | None = None
    body: str = ""
    params: dict[str, Any] | None = None
    by: Actor = MARIA


class Work(NamedTuple):
    """One attempt: claimed ``start`` hours ago and ended ``length`` hours later, if it ended."""

    key: str
    agent: str
    start: float
    length: float
    end: str = "done"
    said: str = ""
    """The note, error or receiver of its ending."""
    notes: tuple[tuple[int, str], ...] = ()
    """Progress and note of the heartbeats, evenly spread over the attempt."""
    result: Any = None
    artifacts: tuple[str, ...] = ()
    lease: str = "12h"


class Deed(NamedTuple):
    """What somebody else did, so many hours ago."""

    hours: float
    key: str
    verb: str
    actor: Actor
    text: str = ""


ROUTER = """\
Find the shortest **walkable** route between two points of the path network.

## What counts as walkable

- paths, tracks and quiet roads, in this order
- never motorways, never private ground (`access=private`)
- ferries only where the timetable says so

## How

1. Contract the network once per region (see `core/network.py`).
2. Search from both ends at once.
3. Unpack the result into points that [the map view](https://example.org/map-view) can draw.

```python
route = router.find(start, end, profile="walk")
assert route.metres < 1.3 * straight_line(start, end)
```

> A route that is 5 % longer and avoids a road is the better one.
"""
TILES = """\
Cut the base map into vector tiles, zoom 4 to 14.

Memory is the limit: **at most 2 GB** on the build machine. Sort on disk, not in memory.
"""
DRAW = """\
A click adds a point, a second one draws the route between them.

- *Undo* takes the last point back
- the length and the climb are shown while drawing
- works by keyboard: arrows move the cross, Enter sets a point
"""
RIVER = """\
Near Steinach the route goes straight through the river: the ferry there was closed in spring.

Expected: the bridge, 1.2 km upstream.
"""
LOAD = """\
300 routes a second for ten minutes against staging.

Report p50, p95 and p99 **per region**, and what the database did meanwhile. Stop at the first error.
"""
RELEASE = """\
1. All checks green on the release branch
2. Release notes read by two people
3. Region files signed
4. Publish, then watch the errors for an hour
"""

PLANS = (
    Plan("format", "Define the track format", "core", 334, 60, "data foundation",
         body="Points, times, heights; one file per track. Keep it readable with a plain text editor."),
    Plan("ci", "Run the checks on every push", "ops", 333.5, 50, "foundation"),
    Plan("elevation", "Choose the elevation data set", "docs", 333, 50, "research data", approval=True,
         body="Compare resolution, licence and gaps of the three open data sets. One page, with a recommendation."),
    Plan("shell", "Set up the app shell", "web", 332, 50, "foundation"),
    Plan("gpx", "Read GPX tracks of any size", "core", 330, 40, "import", "format",
         params={"fixtures": ["tests/tracks/broken", "tests/tracks/valid"], "max_points": 2_000_000}),
    Plan("raster", "Try raster tiles", "web", 329, 10, "research"),
    Plan("tiles", "Cut the base map into vector tiles", "core", 328, 60, "maps", "elevation", body=TILES,
         params={"zoom": [4, 14], "regions": ["alps-east", "alps-west"], "memory_gb": 2}),
    Plan("container", "Build the container image", "ops", 327, 20, "delivery", "ci"),
    Plan("store", "Store the tiles of a region in one file", "core", 326, 50, "maps offline", "tiles"),
    Plan("glossary", "Collect the glossary", "docs", 320, 0, "guide"),
    Plan("dedupe", "Drop duplicate points of a track", "core", 310, 0, "import", "gpx"),
    Plan("simplify", "Simplify tracks without losing bends", "core", 308, 20, "import speed", "gpx"),
    Plan("profile", "Compute the height profile of a track", "core", 306, 30, "routing", "gpx elevation"),
    Plan("network", "Build the path network from the map", "core", 300, 60, "routing", "store",
         body="Nodes where paths meet, edges with length, climb and surface."),
    Plan("map", "Show the map", "web", 298, 60, "maps", "shell tiles"),
    Plan("router", "Find the shortest walkable route", "core", 296, 80, "routing", "network", approval=True,
         body=ROUTER, params={"profile": "walk", "regions": ["alps-east"], "limit_km": 60}),
    Plan("staging", "Set up staging", "ops", 290, 30, "delivery", "container"),
    Plan("licences", "List the licences of all map data", "docs", 280, 30, "legal data", "elevation", approval=True),
    Plan("renderer", "Evaluate the old renderer", "web", 276, 0, "research"),
    Plan("index", "Index the place names", "core", 270, 20, "search", "store"),
    Plan("layers", "Switch map layers", "web", 262, 10, "maps", "map"),
    Plan("chart", "Draw the height profile", "web", 260, 20, "design", "profile shell"),
    Plan("outline", "Outline the walker's guide", "docs", 250, 10, "guide"),
    Plan("empty", "Crash on an empty GPX file", "core", 240, 90, "bug import", "gpx",
         body="`IndexError` in `read_points` when the file has a header and no point."),
    Plan("watch", "Watch the errors on staging", "ops", 236, 20, "delivery", "staging"),
    Plan("locate", "Show where I am", "web", 230, 20, "maps", "map"),
    Plan("units", "Metric and imperial units", "web", 220, 0, "design"),
    Plan("seam", "Fix the seam between two tiles", "core", 206, 90, "bug maps", "tiles"),
    Plan("certificates", "Renew the certificates by hand", "ops", 200, 0, "delivery"),
    Plan("jump", "The map jumps when zooming fast", "web", 190, 80, "bug maps", "map"),
    Plan("changelog", "Keep a changelog", "docs", 180, 0, "release"),
    Plan("keyboard", "Use the map by keyboard", "web", 170, 50, "accessibility", "map",
         body="Arrows pan, `+` and `-` zoom, Tab goes through the places in view."),
    Plan("memory", "Measure the memory on an old phone", "ops", 160, 10, "speed", "map"),
    Plan("nightly", "Rebuild the tiles every night", "ops", 150, 30, "delivery maps", "staging tiles"),
    Plan("surface", "Prefer paths over roads", "core", 140, 60, "routing", "router", due=52,
         params={"weights": {"path": 1.0, "track": 1.1, "road": 1.9}}),
    Plan("time", "Estimate the walking time from slope and surface", "core", 138, 40, "routing",
         "profile router", due=30, approval=True, body="Within 10 % of the signposts of the alpine club's test set."),
    Plan("draw", "Draw a route by clicking", "web", 136, 70, "routing design", "map router", due=20,
         approval=True, body=DRAW),
    Plan("snap", "Snap recorded tracks to paths", "core", 130, 30, "import routing", "network simplify"),
    Plan("search", "Search places while typing", "web", 128, 40, "search", "index map"),
    Plan("reference", "Describe the routing API", "docs", 120, 20, "guide routing", "router"),
    Plan("backup", "Back up the region files, and restore one", "ops", 118, 20, "delivery offline", "store", start=14),
    Plan("contrast", "Check the contrast of every map style", "web", 110, 20, "accessibility design", "layers",
         approval=True),
    Plan("privacy", "Explain what is stored where", "docs", 104, 30, "legal", due=-16, approval=True,
         body="One page, for people who do not read code. What leaves the phone? *Nothing, unless you share it.*"),
    Plan("download", "Download a region for offline use", "web", 100, 60, "offline maps", "store map", due=76),
    Plan("round", "Suggest round trips of a given length", "core", 96, 20, "routing", "router surface"),
    Plan("closures", "Respect closed paths and seasons", "core", 95, 30, "routing data", "surface"),
    Plan("offline-routing", "Plan a route without a network", "core", 94, 50, "offline routing",
         "router store", due=100),
    Plan("drag", "Drag a point of the route", "web", 92, 20, "design", "draw"),
    Plan("print", "Print a route on two pages", "web", 90, 0, "design", "draw chart"),
    Plan("share", "Share a route as a link", "web", 89, 30, "release", "draw privacy"),
    Plan("phone", "Fit the planner on a phone", "web", 88, 50, "design", "draw drag", due=120),
    Plan("offline", "Open the app without a network", "web", 86, 60, "offline release", "download offline-routing",
         due=140),
    Plan("load", "Load test with 300 routes a second", "ops", 84, 40, "speed", "staging router", due=-5, body=LOAD),
    Plan("guide", "Write the walker's guide", "docs", 80, 20, "guide", "outline draw print"),
    Plan("beta", "Invite the beta testers", "ops", 78, 40, "release", "staging phone share", due=150),
    Plan("shots", "Take the screenshots of the guide", "docs", 76, 0, "guide", "print phone"),
    Plan("notes", "Write the release notes of 1.0", "docs", 74, 10, "release", "guide changelog"),
    Plan("publish", "Publish 1.0", "ops", 72, 100, "release", "offline closures beta notes load nightly",
         due=190, approval=True, body=RELEASE),
    Plan("huts", "Show huts and their opening hours", "web", 148, 10, "maps data", "map"),
    Plan("legend", "Draw the legend of the map", "web", 134, 0, "maps design", "layers"),
    Plan("watches", "Read tracks from old watches", "core", 132, 10, "import", "gpx"),
    Plan("headers", "Set the security headers", "ops", 117, 40, "security delivery", "staging", approval=True),
    Plan("metres", "Round lengths as signposts do", "core", 101, 0, "routing", "units"),
    Plan("lakes", "Names of lakes are cut off", "core", 97, 30, "bug maps", "tiles", by=JONAS),
    Plan("install", "Explain how to install the app", "docs", 83, 10, "guide", "shell"),
    Plan("cache", "Keep the last hundred routes", "core", 70, 20, "routing speed", "router"),
    Plan("alerts", "Tell somebody when staging is down", "ops", 64, 20, "delivery", "watch"),
    Plan("satellite", "Offer satellite images", "web", 63, 0, "maps", "layers"),
    Plan("zero", "A route of length zero is drawn as a dot", "web", 33, 60, "bug", "map", by=JONAS),
    Plan("shade", "Shade the hills", "web", 31, 0, "maps design", "elevation layers"),
    Plan("hills", "Sharper hills at zoom 14", "core", 12, 10, "maps", "shade tiles", by=Actor("otter", "agent")),
    Plan("theme", "A dark theme for night walks", "web", 60, 10, "design accessibility", "layers"),
    Plan("translate", "Translate the app into Italian", "docs", 50, 0, "guide", start=60),
    Plan("river", "Routes cross the river without a bridge", "core", 40, 95, "bug routing", "router", due=-2,
         approval=True, body=RIVER, by=JONAS),
    Plan("keys", "Rotate the keys of the tile server", "ops", 30, 90, "security", due=4.5),
    Plan("peaks", "Some peaks are labelled twice", "core", 20, 10, "bug maps", "tiles", by=JONAS),
    Plan("fonts", "Serve the map fonts from our own server", "web", 9, 0, "speed", by=Actor("otter", "agent")),
)  # fmt: skip

WORKS = (
    Work("format", "fern", 331, 3, notes=((50, "draft written"),), artifacts=("docs/format.md",)),
    Work("ci", "birch", 330, 2),
    Work("shell", "otter", 328, 5, notes=((30, "routing in place"), (80, "service worker registered"))),
    Work("elevation", "wren", 326, 4.5, notes=((60, "two of three read"),), result={"choice": "open-dem-30"}),
    Work("gpx", "moss", 322, 6.5, notes=((40, "streaming reader works"), (85, "broken files are refused")),
         result={"files": 214, "refused": 9}),
    Work("glossary", "wren", 314, 2),
    Work("container", "birch", 305, 4, result={"size_mb": 84}),
    Work("dedupe", "kestrel", 304, 1.5),
    Work("tiles", "otter", 303, 7, "fail", "out of memory at zoom 13: 4.1 GB used, 2 GB allowed",
         ((30, "zoom 10 written"), (70, "zoom 12 written"))),
    Work("simplify", "kestrel", 301, 5, notes=((50, "bends kept, 70 % fewer points"),)),
    Work("profile", "fern", 295, 6, notes=((35, "heights read"), (70, "gaps filled"))),
    Work("tiles", "otter", 284, 9, notes=((40, "sorting on disk"), (90, "zoom 14 written")),
         result={"tiles": 182_406, "memory_gb": 1.4}, artifacts=("build/alps-east.tiles", "build/alps-west.tiles")),
    Work("store", "birch", 272, 5),
    Work("map", "otter", 270, 7, notes=((50, "tiles drawn"),), artifacts=("web/map-view.js",)),
    Work("staging", "birch", 260, 3),
    Work("network", "moss", 258, 6, "lost", notes=((20, "nodes found"),), lease="4h"),
    Work("chart", "fern", 252, 4),
    Work("network", "moss", 244, 8, notes=((30, "nodes found"), (75, "edges weighted")),
         result={"nodes": 1_204_991, "edges": 1_698_220}),
    Work("outline", "wren", 243, 2.5),
    Work("licences", "wren", 236, 3, result={"licences": 7}),
    Work("empty", "moss", 232, 1, notes=((50, "test written"),)),
    Work("index", "birch", 228, 5.5, notes=((60, "212,000 names"),)),
    Work("layers", "otter", 222, 4),
    Work("router", "fern", 220, 9, notes=((25, "contraction works"), (60, "search from both ends"), (90, "unpacking")),
         result={"p95_ms": 61, "routes": 500}, artifacts=("core/router.py",)),
    Work("watch", "birch", 208, 2),
    Work("locate", "kestrel", 206, 3),
    Work("seam", "moss", 204, 2.5, notes=((70, "one pixel of overlap"),)),
    Work("router", "fern", 188, 7, notes=((50, "private ground avoided"),),
         result={"p95_ms": 38, "routes": 500, "private": 0}, artifacts=("core/router.py", "docs/router.md")),
    Work("jump", "otter", 182, 2),
    Work("units", "kestrel", 178, 2),
    Work("keyboard", "kestrel", 164, 3, "fail", "focus is lost whenever tiles are replaced"),
    Work("changelog", "wren", 160, 1),
    Work("memory", "birch", 156, 2, "fail", "no device answered within 30 minutes"),
    Work("keyboard", "kestrel", 150, 5, "fail", "focus is lost whenever tiles are replaced",
         ((40, "arrows pan the map"),)),
    Work("memory", "birch", 140, 2, "fail", "no device answered within 30 minutes"),
    Work("keyboard", "otter", 126, 4, "fail",
         "focus is lost whenever tiles are replaced; the map view has to keep its elements, which needs a decision",
         ((40, "arrows pan the map"), (70, "places can be reached by Tab"))),
    Work("memory", "otter", 122, 1.5, "giveup", "the only old phone is broken: nothing to measure on"),
    Work("nightly", "birch", 98, 4, "fail", "disk full after alps-west"),
    Work("huts", "kestrel", 138, 5, result={"huts": 318}),
    Work("legend", "otter", 116, 3.5),
    Work("watches", "moss", 112, 6, notes=((60, "two of three formats"),), result={"formats": 3}),
    Work("headers", "birch", 108, 2, result={"grade": "A"}),
    Work("metres", "kestrel", 92, 1),
    Work("lakes", "moss", 86, 4, "fail", "names overlap at zoom 9"),
    Work("install", "wren", 79, 2.5),
    Work("lakes", "moss", 74, 5, notes=((50, "labels are placed by area"),)),
    Work("cache", "fern", 60, 4, result={"hits": 0.43}),
    Work("alerts", "birch", 48, 1.5),
    Work("zero", "otter", 25, 1, notes=((60, "test written"),)),
    Work("shade", "kestrel", 22, 6, notes=((40, "light from the north-west"), (80, "tiles are twice as large"))),
    Work("hills", "moss", 9, 3.5, result={"tiles": 9_120}),
    Work("contrast", "wren", 76, 3, result={"styles": 9, "below": 2}),
    Work("contrast", "wren", 54, 3.5, notes=((80, "the last two styles"),), result={"styles": 9, "below": 0},
         artifacts=("docs/contrast.md", "web/styles/night.json")),
    Work("draw", "otter", 70, 2, "hand", "fern"),
    Work("draw", "fern", 50, 10, notes=((30, "points are set"), (65, "undo"), (95, "keyboard")),
         result={"tests": 31, "clicks_to_first_route": 2}, artifacts=("web/draw.js", "web/draw.css", "tests/draw.py")),
    Work("theme", "kestrel", 46, 3, "hand", "wren", ((35, "colours chosen"),)),
    Work("privacy", "wren", 40, 3, result="One page, 412 words; read aloud to two people who do not write code.",
         artifacts=("docs/privacy.md",)),
    Work("offline-routing", "moss", 34, 2, "release", "needs the region file of alps-west first"),
    Work("time", "fern", 28, 6, notes=((45, "slope done"), (85, "surface done")),
         result={"signposts": 640, "within_10_percent": 0.962, "worst": {"name": "Hochgrat", "off": 0.21}},
         artifacts=("core/time.py",)),
    Work("nightly", "birch", 3.1, 1.4, "fail", "tile server answered 503 for 20 minutes"),
    Work("surface", "moss", 3.4, 3.35, "", notes=((20, "weights read from the map"), (45, "roads cost more"),
         (64, "testing on alps-east")), lease="75m"),
    Work("snap", "kestrel", 2.2, 2.1, "", notes=((15, "candidates found"), (38, "matching along the network")),
         lease="90m"),
    Work("reference", "wren", 1.6, 1.5, "", notes=((50, "all calls listed"), (82, "examples run")), lease="100m"),
    Work("search", "birch", 1.3, 0.4, "", notes=((10, "reading the index"), (30, "first results in the list")),
         lease="20m"),
    Work("download", "otter", 0.7, 0, "", lease="75m"),
)  # fmt: skip

DEEDS = (
    Deed(318, "elevation", "approve", JONAS, "Good choice, and the licence is clear."),
    Deed(296, "tiles", "comment", MARIA, "Please sort on disk; the build machine will not get more memory."),
    Deed(288, "raster", "cancel", MARIA, "Vector tiles it is."),
    Deed(262, "renderer", "cancel", JONAS, "Nobody maintains it any more."),
    Deed(230, "licences", "approve", MARIA),
    Deed(209, "router", "reject", MARIA, "Two of the routes cross private ground. Please see `access=private`."),
    Deed(196, "certificates", "cancel", MARIA, "The container does it by itself now."),
    Deed(178, "router", "approve", MARIA, "Very good: 38 ms, and no private ground."),
    Deed(120, "keyboard", "comment", JONAS, "Let us decide on Thursday whether the map view may keep its elements."),
    Deed(94, "headers", "approve", JONAS),
    Deed(42, "satellite", "cancel", MARIA, "Not without a licence that we can pay."),
    Deed(90, "memory", "comment", MARIA, "A new old phone is on its way."),
    Deed(84, "share", "priority", MARIA, "40"),
    Deed(66, "contrast", "reject", JONAS, "The two night styles are still below 4.5 : 1."),
    Deed(52, "draw", "comment", Actor("fern", "agent"), "Taking over; the point list becomes a plain array."),
    Deed(38, "river", "comment", Actor("moss", "agent"), "The ferry is still marked as open in our copy of the map."),
    Deed(26, "phone", "priority", JONAS, "60"),
    Deed(18, "publish", "comment", MARIA, "Not before the load test has run. No exceptions this time."),
    Deed(7, "closures", "comment", JONAS, "The alpine club sends the list of closures every Monday."),
    Deed(1.9, "load", "assign", MARIA, "moss"),
    Deed(0.15, "time", "comment", JONAS, "Reading it now. Hochgrat is a ridge, no wonder."),
)


class _Stage:
    """The board, its clock, and who holds what at the moment that the clock shows."""

    def __init__(self, directory: str) -> None:
        self.end = instants.now() - 5_000
        self.now = self.end
        self.board = Board(directory, actor=MARIA, clock=lambda: self.now)
        self.ids: dict[str, str] = {}
        self.tokens: dict[str, str] = {}

    def play(self, hours: float, act: Callable[[], object]) -> None:
        self.now = self.end - round(hours * HOUR)
        act()

    def when(self, hours: float | None) -> str | None:
        return None if hours is None else instants.to_text(self.end + round(hours * HOUR))

    def add(self, plan: Plan) -> None:
        receipt = self.board.add(
            plan.title,
            body=plan.body,
            queue=plan.queue,
            priority=plan.priority,
            tags=plan.tags.split(),
            depends_on=[self.ids[need] for need in plan.needs.split()],
            due_at=self.when(plan.due),
            not_before=self.when(plan.start),
            needs_approval=plan.approval,
            assignee=plan.assignee,
            params=plan.params,
            actor=plan.by,
        )
        self.ids[plan.key] = receipt.task.id

    def claim(self, work: Work) -> None:
        grant = self.board.claim(work.agent, task=self.ids[work.key], lease=work.lease)
        assert grant is not None
        self.tokens[work.key] = grant.lease.token

    def beat(self, work: Work, progress: int | None = None, note: str | None = None) -> None:
        self.board.heartbeat(self.ids[work.key], self.tokens[work.key], progress=progress, note=note)

    def finish(self, work: Work) -> None:
        task, token = self.ids[work.key], self.tokens[work.key]
        if work.end == "done":
            self.board.complete(task, token, result=work.result, artifacts=work.artifacts, note=work.said or None)
        elif work.end == "hand":
            self.board.handoff(task, token, work.said, note=f"{work.said} knows this part better.")
        elif work.end == "release":
            self.board.release(task, token, note=work.said)
        elif work.end == "lost":
            self.board.tick()
        else:
            # The nightly build keeps waiting for its last attempt while somebody looks at the board.
            retry_in = "3h" if work.key == "nightly" and work.start < 24 else None
            self.board.fail(task, token, work.said, no_retry=work.end == "giveup", retry_in=retry_in)

    def do(self, deed: Deed) -> None:
        task = self.ids[deed.key]
        if deed.verb == "approve":
            self.board.approve(task, note=deed.text or None, actor=deed.actor)
        elif deed.verb == "reject":
            self.board.reject(task, note=deed.text, actor=deed.actor)
        elif deed.verb == "cancel":
            self.board.cancel(task, note=deed.text, actor=deed.actor)
        elif deed.verb == "comment":
            self.board.comment(task, deed.text, actor=deed.actor)
        elif deed.verb == "priority":
            self.board.update(task, priority=int(deed.text), actor=deed.actor)
        else:
            self.board.reassign(task, deed.text, actor=deed.actor)


def make(directory: str, tasks: int = 0) -> dict[str, str]:
    """Make the sample board in a directory that holds none yet, and return the ids of its tasks by their short names.

    ``tasks`` is how many there should be at least. Besides the names of ``PLANS`` the answer has some that tell what
    a task shows: ``running review overdue failed silent delayed blocked done cancelled``.
    """
    stage = _Stage(directory)
    with stage.board:
        if tasks > len(PLANS):
            _import_more(stage, tasks - len(PLANS))
        script: list[tuple[float, Callable[[], object]]] = [(plan.hours, _bind(stage.add, plan)) for plan in PLANS]
        for work in WORKS:
            script.append((work.start, _bind(stage.claim, work)))
            renewals = 0 if work.end else int(work.length * 6)
            script += [(work.start - number / 6, _bind(stage.beat, work)) for number in range(1, renewals)]
            for number, (progress, note) in enumerate(work.notes, 1):
                at = work.start - work.length * number / (len(work.notes) + bool(work.end))
                script.append((at, _bind(stage.beat, work, progress, note)))
            if work.end:
                script.append((work.start - work.length, _bind(stage.finish, work)))
        script += [(deed.hours, _bind(stage.do, deed)) for deed in DEEDS]
        for hours, act in sorted(script, key=lambda step: -step[0]):
            stage.play(hours, act)
    named = {
        "running": "surface", "review": "draw", "overdue": "river", "failed": "keyboard", "silent": "search",
        "delayed": "backup", "blocked": "publish", "done": "router", "cancelled": "raster",
    }  # fmt: skip
    return stage.ids | {name: stage.ids[key] for name, key in named.items()}


def _bind(act: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: act(*arguments)


VERBS = "Check Draw Measure Translate Simplify Test Review Describe Rename Cache Split Index".split()
THINGS = (
    "the legend of the map", "tracks from old watches", "the bus stops", "the hut opening hours", "the route cache",
    "the error pages", "the hill shading", "the names of lakes", "the region list", "the signpost photos",
    "the download queue", "the snow layer", "the settings page", "the path surfaces",
)  # fmt: skip
MIX = ("queued",) * 30 + ("running",) + ("review",) * 3 + ("done",) * 58 + ("failed",) * 4 + ("cancelled",) * 4


def _import_more(stage: _Stage, count: int) -> None:
    """Import a mixed bag of tasks in one transaction, two weeks ago, and claim a hundred of them at most."""
    from ulid import ULID

    chance = random.Random(count)
    tasks: list[dict[str, Any]] = []
    held: list[tuple[float, str]] = []
    for number in range(count):
        made = 330 * chance.random() ** 0.8 + 2
        status = chance.choice(MIX)
        at = stage.end - round(made * HOUR)
        task: dict[str, Any] = {
            "id": str(ULID.from_bytes(at.to_bytes(6, "big") + chance.randbytes(10))),
            "title": f"{chance.choice(VERBS)} {chance.choice(THINGS)} ({number + 1:,})",
            "queue": chance.choice(("core", "core", "web", "web", "docs", "ops")),
            "priority": chance.choice((0, 0, 0, 10, 20, 50)),
            "tags": chance.sample(
                ("maps", "routing", "design", "bug", "speed", "data", "offline"), chance.randint(0, 2)
            ),
            "status": "queued" if status == "running" else status,
            "needs_approval": status == "review",
            "created_by": chance.choice(("maria", "jonas", "otter")),
            "created_at": stage.when(-made),
        }
        if number > 20 and chance.random() < 0.25:
            near = tasks[-20:] if status == "queued" else [other for other in tasks[-40:] if other["status"] == "done"]
            task["blocked_by"] = [other["id"] for other in chance.sample(near, min(len(near), chance.randint(1, 2)))]
        if status in ("review", "done", "failed"):
            began = made * chance.uniform(0.2, 0.98)
            ended = began - min(began * 0.9, chance.lognormvariate(0.6, 0.9))
            task |= {"claimed_by": chance.choice(AGENTS), "claimed_at": stage.when(-began), "attempts": 1}
            task |= {"updated_at": stage.when(-ended)}
            if status == "failed":
                task["error"] = "the checks did not pass"
        elif status == "cancelled":
            task["updated_at"] = stage.when(-made * chance.random())
        elif status == "queued" and chance.random() < 0.1:
            task["due_at"] = stage.when(chance.uniform(-6, 300))
        elif status == "running" and len(held) < 100 and "blocked_by" not in task:
            held.append((chance.uniform(0.6, 2), task["id"]))
        tasks.append(task)
    stage.play(336, lambda: stage.board.import_tasks(tasks))
    for hours, task_id in sorted(held, reverse=True):
        stage.play(hours, _bind(_hold, stage, task_id, chance))


def _hold(stage: _Stage, task_id: str, chance: random.Random) -> None:
    grant = stage.board.claim(chance.choice(AGENTS), task=task_id, lease="3h")
    assert grant is not None
    if chance.random() < 0.7:
        stage.board.heartbeat(task_id, grant.lease.token, progress=chance.randint(1, 95), note="on it")


def main() -> None:
    """Make the board that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.showcase", description="Make a sample board.")
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--tasks", type=int, default=0, metavar="N", help="add further tasks until there are N")
    given = parser.parse_args()
    started = datetime.now(UTC)
    ids = make(given.directory, given.tasks)
    print(f"{len(ids)} names in {(datetime.now(UTC) - started) / timedelta(seconds=1):.1f} s: {given.directory}")


if __name__ == "__main__":
    main()
