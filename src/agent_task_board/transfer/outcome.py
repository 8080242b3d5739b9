"""What an import did: counts, the reasons for them, and warnings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMED = 20
"""Maximum number of ids that are named for one reason."""
WARNINGS = 100
"""Maximum number of warnings about single rows."""


class Outcome:
    """Counts what became of the rows of a file, reason by reason, and collects warnings."""

    def __init__(self) -> None:
        self.imported = 0
        self.updated = 0
        self.skipped = 0
        self.ignored = 0
        self.details: dict[str, dict[str, Any]] = {}
        self.warnings: list[str] = []
        self.dry_run = False
        self.fields: tuple[tuple[str, str], ...] = ()
        self._single = 0

    def copy(self) -> Outcome:
        """Return an outcome that starts from what this one has."""
        other = Outcome()
        other.imported, other.updated, other.skipped, other.ignored = (
            self.imported,
            self.updated,
            self.skipped,
            self.ignored,
        )
        other.details = {
            reason: {"count": detail["count"], "ids": list(detail["ids"])} for reason, detail in self.details.items()
        }
        other.warnings = list(self.warnings)
        other.dry_run = self.dry_run
        other.fields = self.fields
        other._single = self._single
        return other

    def update(self, name: str, count: int = 1) -> None:
        """Count a task that a newer row updated."""
        self.updated += count
        self.detail("updated", name, count)

    def skip(self, reason: str, name: str) -> None:
        """Count a row whose task is left as it is."""
        self.skipped += 1
        self.detail(reason, name)

    def ignore(self, reason: str, name: str) -> None:
        """Count a row that is not a task."""
        self.ignored += 1
        self.detail(reason, name)

    def detail(self, reason: str, name: str, count: int = 1) -> None:
        """Count a row for a reason, and name it unless many were named."""
        found = self.details.setdefault(reason, {"count": 0, "ids": []})
        found["count"] += count
        if len(found["ids"]) < NAMED and name not in found["ids"]:
            found["ids"].append(name)

    def warn(self, sentence: str) -> None:
        """Add a warning about a single row, unless there are many."""
        self._single += 1
        if self._single <= WARNINGS:
            self.warnings.append(sentence)
        elif self._single == WARNINGS + 1:
            self.warnings.append("and more warnings of this kind")

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"imported", "updated", "skipped", "ignored", "details"}``; after a dry run also ``"dry_run"``.

        A dry run of a tracker's file has ``"fields"``, too: what becomes what.
        """
        found: dict[str, Any] = {
            "imported": self.imported,
            "updated": self.updated,
            "skipped": self.skipped,
            "ignored": self.ignored,
            "details": self.details,
        }
        if self.dry_run:
            found["dry_run"] = True
            if self.fields:
                found["fields"] = [{"field": field, "becomes": result} for field, result in self.fields]
        return found
