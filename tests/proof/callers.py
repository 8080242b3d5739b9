"""One caller: an agent and a person in one process, who do at random what agents and people do, and write it down.

Started anew under the same name after a kill, it reads its own journal, as an agent would its notes: it repeats the
call that it was killed in, or goes on with the tokens that it finds there, however old they are.

    python -m tests.proof.callers SURFACE NAME DIRECTORY SEED DEADLINE PORTS OTHERS
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.proof.clients import Lost, die, make_client
from tests.proof.journal import Entry, Journal, clock, read

if TYPE_CHECKING:
    from tests.proof.clients import Client

PERSON = "maria"
PAUSES = {"cli": 0.0, "http": 0.03, "mcp": 0.03, "python": 0.03}
"""Seconds between two calls on average: the machine is there for all of them."""

KNOWN = 24
"""How many of the newest tasks callers choose from: few enough to meet there, all the time."""

KEYS = ("red", "green", "blue")


class Held(NamedTuple):
    """A lease that this caller has, or believes that it has."""

    task: str
    token: str
    ends: int


class Caller:
    """The choices of one caller, all from one seed."""

    def __init__(
        self, surface: str, name: str, directory: Path, seed: str, deadline: int, ports: list[int], others: list[str]
    ) -> None:
        self.surface = surface
        self.name = name
        self.deadline = deadline
        self.others = [other for other in others if other != name]
        self.random = random.Random(seed)
        path = directory / f"{name}.journal"
        past = list(read(path)) if path.exists() else []
        self.journal = Journal(path)
        self.client: Client = make_client(surface, str(directory / "data"), ports, name)
        self.count = len(past)
        self.known = os.open(directory / "known", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.held: dict[str, Held] = {}
        self.spent: list[Entry] = []
        self.seen: dict[str, int] = {}
        for entry in past[-200:]:
            self.learn(entry)
        if past and past[-1].answer is None:
            self.repeat_open(past[-1])

    def repeat_open(self, last: Entry) -> None:
        """Repeat the call that this caller was killed in, mostly: it never learned what came of it."""
        if last.verb in ("add", "claim", "complete", "fail", "release", "handoff") and self.random.random() < 0.7:
            self.call(last.verb, last.task, last.args, mark=last.mark)

    def learn(self, entry: Entry) -> None:
        """Remember what an answer tells."""
        answer = entry.answer
        if answer is None:
            return
        task = answer.get("task") or {}
        if "version" in task:
            self.seen[task["id"]] = task["version"]
        if entry.accepted and "lease" in answer:
            self.held[task["id"]] = Held(task["id"], answer["lease"]["token"], task["ends"][0])
        if entry.accepted and entry.verb in ("complete", "fail", "release", "handoff"):
            self.spent = [*self.spent[-7:], entry]
            self.held.pop(str(entry.task), None)
        if answer["code"] == "lease_lost" and entry.task is not None and self.random.random() < 0.7:
            self.held.pop(entry.task, None)

    def call(
        self,
        verb: str,
        task: str | None = None,
        args: dict[str, Any] | None = None,
        *,
        person: bool = False,
        mark: str | None = None,
    ) -> dict[str, Any] | None:
        """Make a call, with its entries in the journal around it; ``None`` where the answer was lost."""
        self.count += 1
        number = f"{self.name}.{self.count}"
        call: dict[str, Any] = {
            "id": number, "verb": verb, "task": task, "mark": mark or f"<{number}>", "surface": self.surface,
            "agent": None if person else self.name, "person": PERSON if person else None, "args": args or {},
        }  # fmt: skip
        if verb in ("add", "claim"):
            call["args"] = {**call["args"], "request_id": call["mark"]}
        cut = self.random.uniform(0, 0.2 if self.surface == "cli" else 0.012) if self.random.random() < 0.02 else None
        self.journal.begin(call)
        try:
            answer = self.client.ask(call, cut=cut)
        except Lost:
            answer = None
        self.journal.end(number, answer)
        entry = Entry({**call, "begun": 0})
        entry.answer = answer
        self.learn(entry)
        if answer is not None and answer["code"] == "ok" and verb == "add":
            os.write(self.known, answer["task"]["id"].encode() + b"\n")
        if answer is None and verb in ("add", "claim") and self.random.random() < 0.7:
            return self.call(verb, task, args, person=person, mark=call["mark"])
        return answer

    def run(self) -> None:
        """Work until the deadline."""
        while clock() < self.deadline:
            self.step()
            time.sleep(self.random.expovariate(1 / PAUSES[self.surface]) if PAUSES[self.surface] else 0)

    def step(self) -> None:
        """Do one thing."""
        choices = [(self.claim, 30 if len(self.held) < 3 else 2), (self.add, 8), (self.other, 36)]
        if self.held:
            choices += [(self.go_on, 60), (self.last_moment, 10)]
        if self.spent:
            choices.append((self.repeat, 5))
        self.random.choices([do for do, _ in choices], [weight for _, weight in choices])[0]()

    def lease(self) -> int:
        """Return the length of a lease, 1 to 2 seconds; whole ones where they are given as text."""
        return self.random.choice((1_000, 2_000)) if self.surface == "cli" else self.random.randrange(1_000, 2_001)

    def wait(self) -> int:
        """Return how long a task shall wait, at least."""
        return 1_000 if self.surface == "cli" else 300

    def claim(self) -> None:
        """Take the best task that is ready, or one that others want, too."""
        task = self.some_task() if self.random.random() < 0.3 else None
        answer = self.call("claim", task, {"lease": self.lease()})
        if answer is not None and answer.get("nothing"):
            self.add()

    def add(self) -> None:
        """Make a task, of any kind."""
        draw = self.random.random
        args: dict[str, Any] = {"max_attempts": self.random.choice((1, 2, 3, 3))}
        if draw() < 0.2:
            args["needs_approval"] = True
        if draw() < 0.1 and (task := self.some_task()):
            args["depends_on"] = [task]
        if draw() < 0.15:
            args["dedupe_key"] = self.random.choice(KEYS)
        elif draw() < 0.25 and self.surface != "mcp" and "depends_on" not in args:
            args |= {"claim": True, "lease": self.lease()}
        self.call("add", None, args)

    def go_on(self) -> None:
        """Do what holders do, with a lease that may have been lost in the meantime."""
        held = self.random.choice(list(self.held.values()))
        verbs = {"heartbeat": 15, "complete": 20, "fail": 6, "release": 6, "handoff": 4, "resume": 4}
        self.under_lease(held, self.random.choices(list(verbs), list(verbs.values()))[0])

    def last_moment(self) -> None:
        """Wait until a lease is about to run out, or just has."""
        held = min(self.held.values(), key=lambda one: one.ends)
        aim = held.ends + self.random.uniform(-4, 6)
        while clock() < min(aim, self.deadline):
            time.sleep(max(0.0, min(0.5, (aim - clock()) / 1_000)))
        self.under_lease(held, self.random.choice(("heartbeat", "complete", "complete", "release", "fail")))

    def under_lease(self, held: Held, verb: str) -> None:
        """Act as the holder of a task."""
        if verb == "resume":
            longer = self.surface != "mcp" and self.random.random() < 0.5
            self.call("resume", held.task, {"lease": self.lease()} if longer else {})
            return
        args: dict[str, Any] = {"token": held.token}
        if verb == "heartbeat":
            if self.random.random() < 0.5:
                args["lease"] = self.lease()
            if self.random.random() < 0.5:
                args["noted"] = True
        elif verb == "fail":
            args |= (
                {"no_retry": True} if self.random.random() < 0.2 else {"retry_in": self.random.choice((0, self.wait()))}
            )
        elif verb == "release":
            if self.random.random() < 0.3:
                args["after"] = self.wait()
        elif verb == "handoff":
            args["to"] = self.random.choice(self.others)
        self.call(verb, held.task, args)

    def repeat(self) -> None:
        """Repeat an ending, or try another verb with its token."""
        last = self.random.choice(self.spent)
        if self.random.random() < 0.7:
            self.call(last.verb, last.task, last.args, mark=last.mark)
        else:
            self.call("heartbeat", last.task, {"token": last.args["token"]})

    def other(self) -> None:
        """Do what needs no lease: people's verbs, remarks, looks, a token that was never given out."""
        task = self.some_task()
        if task is None:
            return
        verbs = {"show": 10, "comment": 2, "guess": 3}
        if self.surface != "mcp":
            verbs |= {"approve": 6, "reject": 3, "reassign": 3, "cancel": 2, "retry": 5, "update": 4, "usurp": 1}
            verbs["done"] = 5
        verb = self.random.choices(list(verbs), list(verbs.values()))[0]
        if verb == "guess":
            wrong = f"{self.random.getrandbits(128):032x}"
            what = self.random.choice(("complete", "release", "heartbeat"))
            self.call(what, task, {"token": wrong})
        elif verb == "usurp":
            self.call(self.random.choice(("approve", "cancel")), task, {})
        elif verb == "done":
            self.call(verb, task, {}, person=self.random.random() < 0.3)
        elif verb == "reassign":
            self.call(verb, task, {"to": self.random.choice([None, None, *self.others])}, person=True)
        elif verb == "update":
            expected = {"if_version": self.seen[task]} if task in self.seen and self.random.random() < 0.5 else {}
            self.call(verb, task, expected, person=True)
        elif verb in ("show", "comment"):
            self.call(verb, task)
        else:
            self.call(verb, task, person=True)

    def some_task(self) -> str | None:
        """Return one of the newest tasks, whoever made it."""
        size = os.fstat(self.known).st_size
        tail = os.pread(self.known, KNOWN * 27, max(0, size - KNOWN * 27)).split()
        return self.random.choice(tail).decode() if tail else None


def main() -> None:
    """Be the caller that the command line describes."""
    surface, name, directory, seed, deadline, ports, others = sys.argv[1:]
    given = [int(port) for port in ports.split(",")]
    Caller(surface, name, Path(directory), seed, int(deadline), given, others.split(",")).run()
    die()  # everything is on disk already; an orderly end is one way to end among others


if __name__ == "__main__":
    main()
