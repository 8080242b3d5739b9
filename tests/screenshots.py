"""The pictures of the page in ``docs/pictures``: ``python -m tests.screenshots`` makes them anew.

Nothing on them depends on when they are made: the board, its server and the browser all stand at one moment, and ids
are drawn from a fixed seed. Fonts are those of the machine.
"""

from __future__ import annotations

import argparse
import base64
import os
import random
import struct
import tempfile
import zlib
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

from agent_task_board import instants
from agent_task_board.board.core import Core
from tests import showcase
from tests.browsing import DESKTOP, PATIENCE, PHONE, chromium, expect
from tests.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser

    from tests.serving import InThread

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "pictures")
MOMENT = instants.from_text("2026-11-30T06:14:05.123+00:00")
LARGEST = 250_000
"""Bytes of one picture, at most."""


class Picture(NamedTuple):
    """One file: which place of the page it shows, on what screen, and what must be there before it is taken."""

    name: str
    path: str
    sign: str
    theme: str = "light"
    screen: dict[str, int] = DESKTOP


def pictures(ids: dict[str, str]) -> list[Picture]:
    """Return the pictures of a sample board."""
    places = {
        "board": ("/", "atb-column[data-column=in_progress] .card-note"),
        "task": (f"/?task={ids['review']}", "dialog[open] .timeline-entry"),
        "graph": ("/?view=graph", ".graph-node"),
        "flow": ("/?view=flow", ".chart-bar"),
    }
    themes = [
        Picture(f"{name}-{theme}", *place, theme) for name, place in places.items() for theme in ("light", "dark")
    ]
    return themes + [Picture(f"{name}-phone", *places[name], screen=PHONE) for name in ("board", "task")]


def take(browser: Browser, server: InThread, picture: Picture, path: str) -> None:
    """Take one picture."""
    context = browser.new_context(
        viewport=picture.screen,  # type: ignore[arg-type]
        color_scheme=picture.theme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        locale="en-GB",
    )
    context.set_default_timeout(PATIENCE)
    context.clock.set_fixed_time(MOMENT / instants.SECOND)
    page = context.new_page()
    page.goto(server.url.rstrip("/") + picture.path)
    expect(page.locator(picture.sign).first).to_be_visible()
    before, shot = b"", page.screenshot()
    while shot != before:  # what comes late, or is drawn in parts, moves no more
        before, shot = shot, page.screenshot()
    context.close()
    with open(path, "wb") as file:
        file.write(packed(browser, shot))


PIXELS = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const pixels = new Blob([context.getImageData(0, 0, width, height).data]);
  const url = await new Promise((read) => {
    const reader = new FileReader();
    reader.onload = () => read(reader.result);
    reader.readAsDataURL(pixels);
  });
  return [width, height, url.slice(url.indexOf(",") + 1)];
}"""


def packed(browser: Browser, png: bytes) -> bytes:
    """Return a picture as a smaller PNG, no pixel changed: browsers pack for speed, and flat areas want no filter."""
    page = browser.new_page()
    width, height, text = page.evaluate(PIXELS, base64.b64encode(png).decode())
    page.close()
    pixels = base64.b64decode(text)
    red, green, blue = (pixels[channel::4] for channel in range(3))
    rgb = bytearray(3 * width * height)
    rgb[0::3], rgb[1::3], rgb[2::3] = red, green, blue
    rows = (b"\0" + rgb[start : start + 3 * width] for start in range(0, len(rgb), 3 * width))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*part)
        for part in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(b"".join(rows), 9)),
            (b"IEND", b""),
        )
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def drawn_ids() -> Callable[[], str]:
    """Return what makes ids, the same ones every time."""
    from ulid import ULID

    chance = random.Random(MOMENT)
    return lambda: str(ULID.from_bytes(MOMENT.to_bytes(6, "big") + chance.randbytes(10)))


def sample_board(path: str) -> dict[str, str]:
    """Create the board of the pictures, the same one every time; return the ids of its typical tasks."""
    with patch.object(instants, "now", lambda: MOMENT), patch.object(Core, "new_id", staticmethod(drawn_ids())):
        return showcase.make(path)


def main() -> None:
    """Make every picture.

    Raises:
        SystemExit: one has become too large for a repository.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description="Make the pictures of the page.")
    parser.add_argument("folder", metavar="DIR", nargs="?", default=FOLDER, help="where to (default: docs/pictures)")
    folder = parser.parse_args().folder
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        ids = sample_board(f"{data}/board")
        with serving(f"{data}/board", clock=lambda: MOMENT) as server, chromium() as browser:
            for picture in pictures(ids):
                path = os.path.join(folder, f"{picture.name}.png")
                take(browser, server, picture, path)
                size = os.path.getsize(path)
                print(f"{path} {size:,} bytes")
                if size > LARGEST:
                    raise SystemExit(f"{path} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
