"""The words of texts, as a search compares them, and the words that a search asks for.

Index and scan both use these functions, so that they find the same tasks. Texts are folded: canonical equivalents and
upper and lower case are equal (``ÄRZTE`` is ``ärzte``, ``Straße`` is ``strasse``), while accents count. Letters, digits
and marks form words; punctuation separates them. In scripts that are written without spaces, each character is a word,
so that a search finds any part of such a text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST = 64
"""The longest word in characters; a longer one counts as several that follow each other."""
BREAK = "¶"
"""A word between two texts, so that no phrase reaches from one into the other. As punctuation, no text contains it."""
ID_BEGINNING, ID_ENDING = "§", "¶"
"""The first character of the words that hold an id, and an id backwards: a search for a prefix finds both ends."""
MIN_ID = 4
"""The fewest first or last characters of an id that a search finds."""

_CROCKFORD = frozenset("0123456789abcdefghjkmnpqrstvwxyz")
_NO_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FFF),  # CJK radicals
    (0x3005, 0x3007),
    (0x3021, 0x318F),  # Kana, Bopomofo, Hangul
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # CJK ideographs
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFD),
)
_SEPARATOR, _LETTER, _ALONE, _IGNORED = " ", "w", "c", ""


class _Classes(dict[int, str]):
    """The class of each character; characters beyond ASCII are looked up once."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _class(code)
        return found


class _Spaced(dict[int, str]):
    """What replaces each character so that spaces separate the words."""

    def __missing__(self, code: int) -> str:
        kind = _CLASSES[code]
        self[code] = found = {_LETTER: chr(code), _ALONE: f" {chr(code)} "}.get(kind, kind)
        return found


def _class(code: int) -> str:
    if code < 128:
        return _LETTER if chr(code).isalnum() else _SEPARATOR
    from unicodedata import category

    kind = category(chr(code))
    if 0xFE00 <= code <= 0xFE0F or (kind == "Cf" and code != 0x200B):  # selectors of variants, joiners, soft hyphens
        return _IGNORED
    if kind[0] == "S" or any(first <= code <= last and kind[0] in "LNM" for first, last in _NO_SPACES):
        return _ALONE
    return _LETTER if kind[0] in "LNM" or kind == "Co" else _SEPARATOR


_CLASSES = _Classes()
_SPACED = _Spaced()
for _code in range(128):
    _ = _SPACED[_code]


def composed(text: str) -> str:
    """Return a text in the form NFC."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def folded(text: str) -> str:
    """Return a text so that canonical equivalents and upper and lower case are equal."""
    if text.isascii():
        return text.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFD", text).casefold())


def words(text: str) -> list[str]:
    """Return the folded words of a text, in order."""
    found = folded(text).translate(_SPACED).split()
    if not found or len(max(found, key=len)) <= LONGEST:
        return found
    return [word[at : at + LONGEST] for word in found for at in range(0, len(word), LONGEST)]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each word in a text, which is not folded and should be in the form NFC."""
    begin = None
    for at, character in enumerate(text):
        kind = _CLASSES[ord(character)]
        if kind == _LETTER:
            begin = at if begin is None else begin
        elif kind != _IGNORED:
            if begin is not None:
                yield begin, at
                begin = None
            if kind == _ALONE:
                yield at, at + 1
    if begin is not None:
        yield begin, len(text)


def joined(texts: Iterable[str]) -> str:
    """Return the words of several texts as they are stored: separated by spaces, with a break between two texts."""
    return f" {BREAK} ".join(" ".join(words(text)) for text in texts)


def of_id(task_id: str) -> str:
    """Return the words under which an id is stored."""
    text = task_id.lower()
    return f"{ID_BEGINNING}{text} {ID_ENDING}{text[::-1]}"


class Term:
    """One thing that a search asks for: words that follow each other.

    ``is_prefix``: the last word may go on; it is the last of a search, and nothing separates it from what may follow.
    ``is_id``: the beginning or ending of an id, too.
    """

    __slots__ = ("_needles", "is_id", "is_prefix", "words")

    def __init__(self, found: list[str], *, is_prefix: bool, is_id: bool) -> None:
        self.words = tuple(found)
        self.is_prefix = is_prefix
        self.is_id = is_id
        text = " ".join(found)
        self._needles = [f" {text}" if is_prefix else f" {text} "]
        if is_id:
            self._needles += [f" {ID_BEGINNING}{text}", f" {ID_ENDING}{text[::-1]}"]

    def is_in(self, text: str) -> bool:
        """Say whether a text as ``joined`` returns it, with a space before and after it, has this term."""
        return any(needle in text for needle in self._needles)

    def begins_at(self, text: str) -> int | None:
        """Return the place of the space before the first occurrence in such a text; ``None`` if there is none."""
        places = [text.find(needle) for needle in self._needles]
        return min((place for place in places if place >= 0), default=None)

    @property
    def match(self) -> str:
        """The term as an expression of FTS5."""
        text = " ".join(self.words)
        one = f'"{text}" *' if self.is_prefix else f'"{text}"'
        if not self.is_id:
            return one
        return f'({one} OR "{ID_BEGINNING}{text}" * OR "{ID_ENDING}{text[::-1]}" *)'


class Query:
    """What a search asks for: every one of its ``terms``, in any order."""

    LEVELS = (1, 2, 3)
    """How well a task matches: 1: all terms are in its title or id, 2: some are, 3: none."""

    def __init__(self, search: str) -> None:
        self.terms = _terms(search)

    def level(self, title: str, text: str) -> int | None:
        """Return how well a task matches; ``None`` if it does not. The two texts are as the index stores them."""
        title, text = f" {title} ", f" {text} "
        in_title = [term.is_in(title) for term in self.terms]
        if all(in_title):
            return 1 if self.terms else None
        if not all(found or term.is_in(text) for found, term in zip(in_title, self.terms, strict=True)):
            return None
        return 2 if any(in_title) else 3

    def match(self, level: int | None = None) -> str:
        """Return the expression of FTS5 for one level, or for all."""
        every = " AND ".join(term.match for term in self.terms)
        if level is None:
            return every
        in_title = f"{{title}} : ({every})"
        if level == 1:
            return in_title
        some = f"{{title}} : ({' OR '.join(term.match for term in self.terms)})"
        return f"(({every}) AND {some}) NOT {in_title}" if level == 2 else f"({every}) NOT {some}"

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels that a task can have: a single term cannot be in a title in part."""
        return () if not self.terms else (1, 3) if len(self.terms) == 1 else self.LEVELS


def _terms(search: str) -> list[Term]:
    """Split a search at spaces; what is in double quotes is one term, also if the second quote is still to come."""
    chunks: list[tuple[str, bool, bool]] = []
    parts = search.split('"')
    for number, part in enumerate(parts):
        if number % 2 == 0:
            chunks += [(chunk, False, False) for chunk in part.split()]
        else:
            chunks.append((part, True, number < len(parts) - 1))
    chunks = [chunk for chunk in chunks if words(chunk[0])]
    terms: dict[tuple[tuple[str, ...], bool], Term] = {}
    for number, (chunk, is_quoted, is_closed) in enumerate(chunks, 1):
        found = words(chunk)
        is_prefix = number == len(chunks) and not is_closed and _CLASSES[ord(chunk[-1])] != _SEPARATOR
        is_id = not is_quoted and found == [chunk.lower()] and _can_be_id(found[0])
        terms.setdefault((tuple(found), is_prefix), Term(found, is_prefix=is_prefix, is_id=is_id))
    return list(terms.values())


def _can_be_id(word: str) -> bool:
    """Say whether a word can be the beginning or the ending of an id."""
    return MIN_ID <= len(word) <= 26 and _CROCKFORD.issuperset(word)
