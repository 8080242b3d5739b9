"""The files of the page: a fixed table, read once at the start. No request ever becomes a path of the disk."""

from __future__ import annotations

import os
import zlib

from .messages import Response, gzip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .messages import Head

FOLDER = os.path.join(os.path.dirname(__file__), "static")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
THOROUGHLY = 9


class Page:
    """One file, as it is sent: whole or compressed, with the tag by which a browser knows it again."""

    __slots__ = ("_packed", "_tag", "_type", "_whole")

    def __init__(self, content: bytes, kind: str) -> None:
        self._whole = content
        self._packed = gzip(content, THOROUGHLY)
        self._tag = f'W/"{zlib.crc32(content):08x}-{len(content):x}"'
        self._type = kind

    def answer(self, head: Head) -> Response:
        """Return the file, or 304 to a browser that has it."""
        headers = [("ETag", self._tag), ("Vary", "Accept-Encoding"), ("Cache-Control", "no-cache")]
        if head.has_seen(self._tag):
            return Response(304, b"", headers)
        headers.append(("Content-Type", self._type))
        if head.accepts_gzip():
            return Response(200, self._packed, [*headers, ("Content-Encoding", "gzip")])
        return Response(200, self._whole, headers)


def load() -> dict[str, Page]:
    """Return every file by the path under which it is served; ``/`` is the page itself."""
    return {
        "/" if name == "index.html" else f"/static/{name}": Page(content, TYPES[os.path.splitext(name)[1]])
        for name, content in _files()
    }


def _files() -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1] in TYPES:
                with open(path, "rb") as file:
                    yield os.path.relpath(path, FOLDER).replace(os.sep, "/"), file.read()
