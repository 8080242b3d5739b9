"""The files of the page: a fixed table, read once at startup. No request path ever becomes a file path."""

from __future__ import annotations

import os
import zlib

from .messages import Response, gzip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .messages import Head

STATIC_FOLDER = os.path.join(os.path.dirname(__file__), "static")
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
BEST_COMPRESSION = 9


class Page:
    """One file, plain and compressed, with its entity tag."""

    __slots__ = ("_compressed", "_content", "_tag", "_type")

    def __init__(self, content: bytes, content_type: str) -> None:
        self._content = content
        self._compressed = gzip(content, BEST_COMPRESSION)
        self._tag = f'W/"{zlib.crc32(content):08x}-{len(content):x}"'
        self._type = content_type

    def answer(self, head: Head) -> Response:
        """Return the file, or 304 if the browser already has it."""
        headers = [("ETag", self._tag), ("Vary", "Accept-Encoding"), ("Cache-Control", "no-cache")]
        if head.has_seen(self._tag):
            return Response(304, b"", headers)
        headers.append(("Content-Type", self._type))
        if head.accepts_gzip():
            return Response(200, self._compressed, [*headers, ("Content-Encoding", "gzip")], is_shared=True)
        return Response(200, self._content, headers, is_shared=True)


def load() -> dict[str, Page]:
    """Return every file by its URL path; ``/`` is the page itself."""
    return {
        "/" if name == "index.html" else f"/static/{name}": Page(content, CONTENT_TYPES[os.path.splitext(name)[1]])
        for name, content in _files()
    }


def _files() -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(STATIC_FOLDER):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1] in CONTENT_TYPES:
                with open(path, "rb") as file:
                    yield os.path.relpath(path, STATIC_FOLDER).replace(os.sep, "/"), file.read()
