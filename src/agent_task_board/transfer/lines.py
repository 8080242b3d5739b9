"""Read the lines of a text file, in bounded memory."""

from __future__ import annotations

from ..errors import InvalidInput
from .foreign import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

LINE = 32 * 1_048_576
"""Maximum number of bytes of one line."""


def read_lines(file: BinaryIO, limit: int = LINE) -> Iterator[tuple[str, str]]:
    """Yield each line that is not empty as its place (``line 18``) and its text without the line's end.

    Raises:
        InvalidInput: a line is not UTF-8, has a NUL, or is longer than ``limit`` bytes.
    """
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        place = f"line {number}"
        if len(line) > limit:
            raise InvalidInput(f"{place}: too long (limit {limit:,} bytes)", place=place, field="file")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise refuse(place, f"not UTF-8 at byte {error.start:,}") from None
        if "\0" in text:
            raise refuse(place, "has a NUL character")
        text = text.rstrip("\r\n")
        if text.strip():
            yield place, text
