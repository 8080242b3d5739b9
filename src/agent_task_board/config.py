"""The configuration: the data directory, the file that applies, and the source of each value.

Every command loads it, so without a file it costs a few ``os.stat`` calls and no import. ``KEYS`` has the keys, their
defaults and their checks; ``docs/configuration.md`` explains them.
"""

from __future__ import annotations

import os

from . import inputs, instants, places
from .errors import InvalidInput, Unusable
from .settings import AGE_HIGH, LEASE_HIGH, LEASE_LOW, WAIT_HIGH, Hooks, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from .trust import Trust

    Check = Callable[[object, str], object]
    """Takes a value from the file and its key; returns the value as ``show`` prints it, or raises ``InvalidInput``."""

IN_DATA_DIR = "config.toml"
"""The file that is searched for in the data directory."""

HIDDEN = "********"
"""What ``show`` prints instead of a secret."""

HOOK_EVENTS = ("done", "review", "failed", "cancelled", "expired", "commented")
"""The events that hooks can be notified about: statuses that a task reaches, an expired lease, a comment."""

_SECTIONS = ("serve", "hooks")
_SIZE = 65_536
"""The largest file, in bytes."""
_NAME = 200
"""Characters of the name of a time zone, at most."""

_CORRECT = "Correct the file; nothing was changed."
_ADDRESS = r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?([/?][!\"$-~]*)?"


class Config:
    """The configuration of this call.

    Args:
        data_dir: absolute path of the data directory.
        settings: what the core works with.
        file: absolute path of the file that was read, if any; ``content`` is what was in it.
        values: every key, dotted (``serve.port``), with its value as ``show`` returns it and where that came from.
        warnings: what was found and does not apply.
        ignored: everything of that, also what matters to a few commands only, in sentences: files and boards that
            other users control, and sections of a file that need ``atb trust``.
        is_named: whether an option or a variable names the file.
        untrusted: the sections of the file that count only after ``atb trust``, with their values by dotted key.
        place: what the search for the project's board found; ``None`` if the data directory was named.
    """

    __slots__ = (
        "content",
        "data_dir",
        "file",
        "ignored",
        "is_named",
        "place",
        "settings",
        "untrusted",
        "values",
        "warnings",
    )

    def __init__(
        self,
        *,
        data_dir: str,
        settings: Settings,
        file: str | None,
        content: bytes,
        is_named: bool,
        values: dict[str, tuple[Any, str]],
        warnings: list[str],
        ignored: list[str],
        untrusted: dict[str, object],
        place: places.Place | None,
    ) -> None:
        self.data_dir = data_dir
        self.settings = settings
        self.file = file
        self.content = content
        self.is_named = is_named
        self.values = values
        self.warnings = warnings
        self.ignored = ignored
        self.untrusted = untrusted
        self.place = place


class _File:
    """A configuration file: its path, its content and its checked values."""

    __slots__ = ("content", "path", "values")

    def __init__(self, path: str) -> None:
        self.path = path
        self.content = _read(path)
        self.values = _check(_parse(self.content, path), path)

    @property
    def data_dir(self) -> str | None:
        """The absolute data directory that it names; a relative one starts at its own directory."""
        return self.data_dir_from(os.path.dirname(self.path))

    def data_dir_from(self, directory: str) -> str | None:
        """Return the absolute data directory that it names; a relative one starts at ``directory``."""
        named = self.values.get("data_dir")
        return None if named is None else absolute(str(named), directory)


def load(*, data_dir: str | None, config: str | None, environ: Mapping[str, str], cwd: str | None = None) -> Config:
    """Find the data directory and the one file that applies, and read that file.

    The data directory is the first of: ``data_dir`` (the option), ``ATB_DATA_DIR``, ``data_dir`` in the file that
    ``config`` (the option) or ``ATB_CONFIG`` names, the project's board (``places.find``), ``data_dir`` in the user's
    own file, and the place where a board would be created.

    The file is the first of: ``config``, ``ATB_CONFIG``, ``config.toml`` in the data directory, the ``atb.toml`` that
    the search for the board found, the user's own file. No other file applies.

    Raises:
        InvalidInput: a named file does not exist, or the file is invalid (``details.file`` and, except for broken TOML,
            ``details.key``).
        Unusable: this user may not read the file.
    """
    base = working_directory() if cwd is None else os.path.realpath(cwd)
    search = _Search(environ)
    named = "--config" if config is not None else "ATB_CONFIG"
    wanted = environ.get("ATB_CONFIG") if config is None else config
    file = _File(absolute(_path(wanted, named), base)) if wanted or config is not None else None
    is_named = file is not None

    place = None
    if data_dir is not None:
        directory, origin = absolute(_path(data_dir, "--data-dir"), base), "option --data-dir"
    elif environ.get("ATB_DATA_DIR"):
        directory, origin = absolute(_path(environ["ATB_DATA_DIR"], "ATB_DATA_DIR"), base), "environment ATB_DATA_DIR"
    elif file is not None and file.data_dir is not None:
        directory, origin = file.data_dir, f"file {file.path}"
    elif not base:
        directory, origin = "data", places.DEFAULT
    else:
        place = search.place(base)
        directory, origin = place.data_dir, place.why
        own = search.own() if place.is_default else None
        if own is not None and own.data_dir is not None:
            directory, origin = own.data_dir, f"file {own.path}"
    if not os.path.isabs(directory):
        raise InvalidInput(
            f"data_dir: the working directory no longer exists: {directory}",
            hint="Change to an existing directory, or give the data directory as an absolute path.",
            field="data_dir",
        )
    if file is None:
        # An atb.toml settles nothing for a board that the user names, also if that is in the user's own file.
        is_found = place is not None and directory == place.data_dir
        file = search.inside(directory) or (search.project(place) if place and is_found else None) or search.own()

    values: dict[str, tuple[Any, str]] = {
        key: (list(default) if isinstance(default, list) else default, "default")
        for key, (default, _, _) in KEYS.items()
    }
    warnings = [*search.ignored]
    ignored = [*search.ignored]
    untrusted: dict[str, object] = {}
    settings = Settings()
    if file is not None:
        found = dict(file.values)
        if os.path.dirname(file.path) == directory and not is_named and found.pop("data_dir", None) is not None:
            warnings.append(f"{file.path}: data_dir is ignored in the data directory's own {IN_DATA_DIR}")
        if not is_named and file.path != own_file(environ):
            untrusted = search.untrusted(file, found, place)
            found = {key: value for key, value in found.items() if key not in untrusted}
            for reason, is_common in _reasons(file.path, untrusted, was_trusted=bool(untrusted) and search.knew(file)):
                ignored.append(reason)
                if is_common:
                    warnings.append(reason)
        values.update((key, (value, f"file {file.path}")) for key, value in found.items())
        settings = _settings(values)
        if environ.get("ATB_DELIVERY"):  # a change by a hook must trigger no hook: that could go on endlessly
            settings.hooks = None
    values["data_dir"] = (directory, origin)
    return Config(
        data_dir=directory,
        settings=settings,
        file=None if file is None else file.path,
        values=values,
        content=b"" if file is None else file.content,
        is_named=is_named,
        warnings=warnings,
        ignored=ignored,
        untrusted=untrusted,
        place=place,
    )


def _reasons(path: str, untrusted: dict[str, object], *, was_trusted: bool) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each part of a file that does not count yet, and whether every command needs to know it."""
    parts = {f"[{key.partition('.')[0]}]" if "." in key else f"{key}" for key in untrusted}
    why = "the file changed since it was trusted" if was_trusted else "the file was found, not named"
    for part in sorted(parts):
        yield f"{path}: {part} is ignored: {why}; `atb trust` shows it and makes it count", part != "[serve]"


class _Search:
    """Looks for the board and for the files that nobody named; those that others control are passed over."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._files: dict[str, _File | None] = {}
        self._trust: Trust | None = None
        self.ignored: list[str] = []

    def place(self, base: str) -> places.Place:
        """Return the project's board, or where it would be created."""
        home = os.path.realpath(os.path.expanduser("~"))  # as the working directory is
        return places.find(base, home, self._read, self._pass_over)

    def inside(self, directory: str) -> _File | None:
        """Return the file in a data directory."""
        return self._read(os.path.join(directory, IN_DATA_DIR))

    def project(self, place: places.Place) -> _File | None:
        """Return the ``atb.toml`` that the search for the board found."""
        return None if place.settings is None else self._read(place.settings)

    def own(self) -> _File | None:
        """Return the user's own file."""
        return self._read(own_file(self._environ))

    def _read(self, path: str) -> _File | None:
        """Return a file; ``None``, with a warning, if other users control it, and without one if it does not exist."""
        if path not in self._files:
            self._files[path] = None
            if os.path.isfile(path) and not self._pass_over(path):
                self._files[path] = _File(path)
        return self._files[path]

    def _pass_over(self, path: str) -> bool:
        """Say whether a file that nobody named must not count; why, goes to ``ignored``."""
        reason = places.why_untrusted(path, environ=self._environ)
        if reason is not None:
            self.ignored.append(f"{path} is ignored: {reason}")
        return reason is not None

    def untrusted(self, file: _File, found: dict[str, object], place: places.Place | None) -> dict[str, object]:
        """Return the values of a file that was found that count only once this user trusts it.

        They are those that run programs or open ports and, where an ``atb.toml`` leads to a board elsewhere, all but
        its ``data_dir``: a checkout must not settle how a board outside of it works.
        """
        is_elsewhere = place is not None and file.path == place.settings and not _is_inside(place)
        waiting = {
            key: value
            for key, value in found.items()
            if value != KEYS[key][0] and (key.startswith(("hooks.", "serve.")) or (is_elsewhere and key != "data_dir"))
        }
        return {} if not waiting or self._decisions.knows(file.path, file.content) else waiting

    def knew(self, file: _File) -> bool:
        """Say whether this user trusted a file when it had another content."""
        return self._decisions.knew(file.path)

    @property
    def _decisions(self) -> Trust:
        if self._trust is None:
            from .trust import Trust

            self._trust = Trust(self._environ)
        return self._trust


def _is_inside(place: places.Place) -> bool:
    """Say whether a board is in the repository, or beside or below the ``atb.toml``, that led to it."""
    roots = [os.path.dirname(place.settings or ""), *([] if place.project is None else [place.project.root])]
    return any(places.is_in(os.path.realpath(place.data_dir), os.path.realpath(root)) for root in roots)


def own_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's own file, which applies to every board without a file of its own."""
    base = environ.get("XDG_CONFIG_HOME") or ""
    if not os.path.isabs(base):  # a relative one would be a file of whatever project the call is made in
        base = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "agent-task-board", IN_DATA_DIR)


def show(config: Config) -> dict[str, Any]:
    """Return ``{"file": path or None, "values": {key: {"value", "source"}}}``, without secrets."""
    values = {key: {"value": value, "source": source} for key, (value, source) in config.values.items()}
    if values["hooks.webhook_secret"]["value"] is not None:
        values["hooks.webhook_secret"]["value"] = HIDDEN
    if values["hooks.webhook_url"]["value"]:
        values["hooks.webhook_url"]["value"] = _shown_address(values["hooks.webhook_url"]["value"])
    return {"file": config.file, "values": values}


def _shown_address(url: object) -> str:
    """Return scheme and host of a webhook's address: path and query may be a secret, as those of chat services are."""
    scheme, _, rest = str(url).partition("://")
    host = rest.replace("?", "/").partition("/")[0]
    return str(url) if rest.removesuffix("/") == host else f"{scheme}://{host}/…"


def trusted_sections(config: Config) -> dict[str, dict[str, Any]]:
    """Return what in the file needs trust, by section (``settings``: outside of any), without secrets.

    Of the webhook's address only the host: the rest may be a secret.
    """
    source = f"file {config.file}"
    applied = {key: value for key, (value, origin) in config.values.items() if origin == source and "." in key}
    found: dict[str, dict[str, Any]] = {}
    for key, value in {**applied, **config.untrusted}.items():
        section, _, name = key.rpartition(".")
        shown = HIDDEN if name == "webhook_secret" and value else value
        if name == "webhook_url" and value:
            shown = _shown_address(value)
        found.setdefault(section or "settings", {})[name] = shown
    return found


def hooks_warning(config: Config, environ: Mapping[str, str]) -> str | None:
    """Return why hooks, or the webhook alone, are off; ``None`` if every configured target is on."""
    values = {key: value for key, (value, _) in config.values.items()}
    if environ.get("ATB_DELIVERY"):
        return "hooks are off for commands that a hook runs"
    if any(key.startswith("hooks.") for key in config.untrusted):
        return None  # a warning of the configuration says so
    if not values["hooks.enabled"]:
        return "hooks are off: set enabled = true under [hooks]"
    if values["hooks.webhook_url"] and not values["hooks.allow_network"]:
        return "the webhook is off: set allow_network = true under [hooks]"
    if config.settings.hooks is None:
        return "hooks are on, but no targets are configured: set command or webhook_url under [hooks]"
    return None


def machine_zone() -> str | None:
    """Return the IANA name of this machine's time zone; ``None`` if it cannot be told."""
    names = [os.environ.get("TZ", "").lstrip(":")]
    try:
        with open("/etc/timezone", encoding="utf-8") as file:
            names.append(file.read(_NAME).strip())
    except (OSError, ValueError):
        pass
    names.append(os.path.realpath("/etc/localtime").partition("zoneinfo/")[2])
    for name in filter(None, names):
        try:
            instants.load_zone(name)
        except InvalidInput:
            continue
        return name
    return None


def init(path: str, *, timezone: str | None = None) -> str:
    """Write a file with every key, commented out, at its default; return its absolute path.

    ``timezone`` is written as a value that counts.

    Raises:
        InvalidInput: ``path`` exists, or its directory does not.
        Unusable: the file cannot be written; nothing of it is left behind.
    """
    from .folder import LeadsOut
    from .reach import limits_of, reach_folder
    from .trust import trust_file

    file, text = absolute(_path(path, "path"), working_directory()), template(timezone)
    name = os.path.basename(file)
    try:
        with reach_folder(os.path.dirname(file), limits_of(file)) as folder:
            descriptor = folder.create(name)
            try:
                with open(descriptor, "w", encoding="utf-8", newline="\n") as target:
                    target.write(text)
            except OSError:
                folder.unlink(name)
                raise
    except FileExistsError:
        hint = "Edit it, rename it, or name another path."
        raise InvalidInput(f"{file}: file exists", hint=hint, file=file) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{file}: no such directory", hint="Create the directory first.", file=file) from None
    except LeadsOut as error:
        hint = "Remove the link, or name the file by the directory that it leads to."
        raise InvalidInput(f"{error.filename} is {error.strerror}", hint=hint, file=file) from None
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}", file=file) from error
    try:  # noqa: SIM105  # importing contextlib takes too long
        trust_file(file, text.encode())
    except Unusable:  # nothing in it needs trust yet
        pass
    return file


def template(timezone: str | None = None) -> str:
    """Return the text of the file that ``init`` writes."""
    import tomli_w

    lines = [
        "# Configuration of Agent Task Board. docs/configuration.md explains every setting.",
        "#",
        "# Every setting is listed with its default. To change one, remove the # before it and edit the value.",
        '# A duration is a string such as "90s", "15m", "1h30m", "2d", or a whole number of seconds.',
    ]
    section = ""
    for key, (default, _, about) in KEYS.items():
        before, _, name = key.rpartition(".")
        if before != section:
            section = before
            lines += ["", "", f"[{section}]", *_NOTES.get(section, ())]
        shown = _BLANKS.get(key, default)
        line = " ".join(tomli_w.dumps({name: shown}).split())  # tomli_w spreads a list over several lines
        lines += ["", f"# {about}", "#" + line.replace("[ ", "[").replace(", ]", "]")]
        if key == "timezone" and timezone is not None:
            lines.append(tomli_w.dumps({key: timezone}).strip())
    return "\n".join(lines) + "\n"


# Paths and files


def working_directory() -> str:
    """Return the working directory; empty if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def absolute(path: str, base: str) -> str:
    """Return an absolute path; relative ones start at ``base``, and a leading ``~`` is the home directory."""
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _read(file: str) -> bytes:
    """Return the content of a file, as far as it is not too large."""
    try:
        with open(file, "rb") as source:
            return source.read(_SIZE + 1)
    except FileNotFoundError:
        hint = "Name an existing file with --config or ATB_CONFIG, or name none."
        raise InvalidInput(f"{file}: no such file", hint=hint, file=file) from None
    except PermissionError as error:
        hint = "Check the owner and the permissions of the file, or name another one with --config."
        raise Unusable(f"{file}: cannot be read: permission denied", hint=hint, file=file) from error
    except OSError as error:
        hint = "Name a readable file with --config or ATB_CONFIG."
        raise InvalidInput(f"{file}: {error.strerror}", hint=hint, file=file) from error


def _parse(raw: bytes, file: str) -> dict[str, Any]:
    import tomllib

    if len(raw) > _SIZE:
        raise InvalidInput(f"{file}: too large (limit {_SIZE:,} bytes)", hint=_CORRECT, file=file)
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not UTF-8 at byte {error.start}", hint=_CORRECT, file=file) from None
    except (ValueError, RecursionError) as error:  # ValueError: from tomllib, and for integers of thousands of digits
        raise InvalidInput(f"{file}: not TOML: {error}", hint=_CORRECT, file=file) from None


# Keys and values


def _check(document: dict[str, Any], file: str) -> dict[str, object]:
    """Return the checked values of a document by dotted key."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if name in _SECTIONS and isinstance(value, dict):
            flat.update((f"{name}.{inner}", item) for inner, item in value.items())
        elif name in _SECTIONS:
            hint = f"Write [{name}] on a line of its own, with its keys below it."
            raise InvalidInput(f"{file}: {name}: must be a table", hint=hint, file=file, key=name)
        elif "." in name:  # "serve.port" in quotes is another key than port under [serve]
            raise _unknown(name, file)
        else:
            flat[name] = value
    checked: dict[str, object] = {}
    for key, value in flat.items():
        if key not in KEYS:
            raise _unknown(key, file)
        try:
            checked[key] = KEYS[key][1](value, key)
        except InvalidInput as error:
            hint = _CORRECT if error.hint == InvalidInput.hint else error.hint
            raise InvalidInput(f"{file}: {error.message}", hint=hint, file=file, key=key) from None
    return checked


def _unknown(key: str, file: str) -> InvalidInput:
    last = key.rpartition(".")[2]
    in_section = next((known for known in KEYS if known.rpartition(".")[2] == last), key)
    hint = inputs.did_you_mean(in_section, KEYS) or "`atb config show` lists all keys."
    return InvalidInput(f"{file}: unknown key {key[:100]!r}", hint=hint, file=file, key=key[:100])


def _settings(values: dict[str, tuple[Any, str]]) -> Settings:
    def length(key: str) -> int:
        return instants.parse_length(
            values[key][0], field=key, high=AGE_HIGH
        )  # each key's own limit was checked before

    return Settings(
        timezone=values["timezone"][0],
        lease=length("lease"),
        max_attempts=values["max_attempts"][0],
        backoff_base=length("backoff_base"),
        backoff_cap=length("backoff_cap"),
        busy_timeout=length("busy_timeout"),
        catch_up=values["catch_up"][0],
        archive_after=None if values["archive_after"][0] is None else length("archive_after"),
        hooks=_hooks(values),
    )


def _hooks(values: dict[str, tuple[Any, str]]) -> Hooks | None:
    """Return the configured targets and events; ``None`` if hooks are off or there is no target."""
    given = {key.removeprefix("hooks."): value for key, (value, _) in values.items() if key.startswith("hooks.")}
    webhook = given["webhook_url"] if given["allow_network"] else None
    if not given["enabled"] or not (given["command"] or webhook):
        return None
    return Hooks(events=given["events"], command=given["command"], webhook=webhook, secret=given["webhook_secret"])


def _path(value: object, key: str) -> str:
    return inputs.line(value, key, inputs.PATH)


def _zone(value: object, key: str) -> str:
    name = inputs.line(value, key, inputs.NAME)
    instants.load_zone(name)
    return name


def _length(low: int, high: int) -> Check:
    """Return a check for a duration; the check returns a short text for exactly the same duration."""

    def check(value: object, key: str) -> str:
        if not isinstance(value, str):  # parse_length accepts fractions, and integers too long to print
            if isinstance(value, float):
                hint = 'Write whole seconds, or a length such as "90s" or "1m30s".'
                raise InvalidInput(f"{key}: not a whole number of seconds: {value}", hint=hint)
            value = inputs.integer(value, key, low // instants.SECOND, high // instants.SECOND)
        length = instants.parse_length(value, field=key, low=low, high=high)
        short = instants.format_length(length)  # at most two units: it may be incomplete
        if instants.parse_length(short, field=key, high=high) == length:
            return short
        return f"{length // instants.SECOND}s"

    return check


def _whole(low: int, high: int) -> Check:
    return lambda value, key: inputs.integer(value, key, low, high)


def _host(value: object, key: str) -> str:
    host = inputs.line(value, key, inputs.KEY)
    if any(character in host for character in "/@ "):
        hint = "Write a name or an address without scheme and path, such as board.example."
        raise InvalidInput(f"{key}: not a host: {host[:60]!r}", hint=hint)
    return host


def _hosts(value: object, key: str) -> list[str]:
    return [_host(item, key) for item in _items(value, key)]


def _argv(value: object, key: str) -> list[str] | None:
    items = _items(value, key)
    return [inputs.text(item, key, inputs.TEXT, required=not place) for place, item in enumerate(items)] or None


def _events(value: object, key: str) -> list[str]:
    return [inputs.one_of(item, key, HOOK_EVENTS) for item in _items(value, key)]


def _age(value: object, key: str) -> str | None:
    return None if value == "" else _length(0, AGE_HIGH)(value, key)  # type: ignore[return-value]


def _items(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidInput(f"{key}: must be a list")
    return value


def _url(value: object, key: str) -> str | None:
    if value == "":
        return None
    url = inputs.line(value, key, inputs.PATH)
    import re  # not urllib, which would slow down every command; argparse and json have loaded re

    if not re.match("https?://", url, re.IGNORECASE):
        raise InvalidInput(f"{key}: not an http:// or https:// URL")
    if not re.fullmatch(_ADDRESS, url, re.IGNORECASE):
        hint = "Write host, optional port and path in ASCII characters, without user name, password or #."
        raise InvalidInput(f"{key}: not a usable URL", hint=hint)
    return url


def _secret(value: object, key: str) -> str | None:
    return inputs.text(value, key, inputs.KEY) or None


KEYS: dict[str, tuple[object, Check, str]] = {
    "data_dir": (
        "./data",
        _path,
        "The data directory, relative to this file. Ignored in the data directory's own config.toml.",
    ),
    "timezone": (
        "Asia/Shanghai",
        _zone,
        "The time zone (an IANA name) for dates and times without an offset, for schedules and for the browser board.",
    ),
    "lease": (
        "15m",
        _length(LEASE_LOW, LEASE_HIGH),
        "How long a claim holds a task, unless the claim asks for another length; a duration, 1s to 7d.",
    ),
    "max_attempts": (
        3,
        _whole(1, inputs.MAX_ATTEMPTS),
        "How many attempts a task gets, unless the task says otherwise; a number, 1 to 1000.",
    ),
    "backoff_base": (
        "30s",
        _length(0, WAIT_HIGH),
        "The wait after the first failed attempt; doubled after each further failure; a duration, 0s to 366d.",
    ),
    "backoff_cap": (
        "1d",
        _length(0, WAIT_HIGH),
        "The longest such wait; a duration, 0s to 366d.",
    ),
    "busy_timeout": (
        "10s",
        _length(0, instants.HOUR),
        "How long a command waits for other writers before it answers busy; a duration, 0s to 1h.",
    ),
    "catch_up": (
        10,
        _whole(1, 1_000),
        "How many missed occurrences of one schedule a single tick creates; a number, 1 to 1000.",
    ),
    "archive_after": (
        None,
        _age,
        'The age at which a tick archives finished tasks, such as 90d; a duration, 0s to 36600d; "" means never.',
    ),
    "serve.host": (
        "127.0.0.1",
        _host,
        "The address the server listens on.",
    ),
    "serve.port": (
        8765,
        _whole(0, 65_535),
        "The port the server listens on; a number, 0 to 65535; 0 means any free port.",
    ),
    "serve.allow_hosts": (
        [],
        _hosts,
        'Additional hosts the server answers for, such as ["board.example", "box.example:8443"].',
    ),
    "serve.read_only": (
        False,
        inputs.boolean,
        "true: the server refuses every change.",
    ),
    "hooks.enabled": (
        False,
        inputs.boolean,
        "true: notify a command or webhook when a task changes state.",
    ),
    "hooks.command": (
        None,
        _argv,
        'The program and its arguments, started without a shell, such as ["/usr/bin/logger", "-t", "board"].',
    ),
    "hooks.events": (
        ["done"],
        _events,
        'The events to notify about: "done", "review", "failed", "cancelled", "expired", "commented".',
    ),
    "hooks.webhook_url": (
        None,
        _url,
        "The URL that tasks are sent to, http:// or https://; requires allow_network.",
    ),
    "hooks.webhook_secret": (
        None,
        _secret,
        "The secret that signs webhook messages, up to 200 characters; never shown.",
    ),
    "hooks.allow_network": (
        False,
        inputs.boolean,
        "Must be true for the webhook to be called.",
    ),
}
"""Every key: its default, its check, and its comment in the file that ``init`` writes."""

_BLANKS: dict[str, object] = {
    "archive_after": "",
    "hooks.command": [],
    "hooks.webhook_url": "",
    "hooks.webhook_secret": "",
}
"""What a file has for ``None``, since TOML has no null."""

_NOTES = {
    "hooks": (
        "# Starts programs: after a change here, run `atb trust`, unless --config or ATB_CONFIG names this file.",
    ),
    "serve": ("# Opens ports: after a change here, run `atb trust`, unless --config or ATB_CONFIG names this file.",),
}
"""The comment at the top of a section."""
