"""The configuration: which data directory, which file, and where each value came from.

Every command loads it, so without a file it costs a few ``os.stat`` calls and no import. The keys, their defaults
and their checks are the table ``KEYS``; what they mean is told in ``docs/configuration.md``.
"""

from __future__ import annotations

import os

from . import inputs, instants
from .errors import InvalidInput, Unusable
from .settings import Hooks, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Check = Callable[[object, str], object]
    """Takes a value of the file and its key; returns the value as it is shown, or raises ``InvalidInput``."""

NEAREST = "atb.toml"
"""The file that is looked for from the working directory upwards."""

IN_DATA_DIR = "config.toml"
"""The file that is looked for in the data directory."""

HIDDEN = "********"
"""What ``show`` says instead of a secret."""

TOLD = ("done", "review", "failed", "cancelled", "expired", "commented")
"""What hooks can be told of: statuses that a task reaches, and two things that happen to it."""

_SECTIONS = ("serve", "hooks")
_SIZE = 65_536
"""Bytes of a file, at most."""

_CORRECT = "Correct the file; nothing was changed."
_ADDRESS = r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?([/?][!\"$-~]*)?"
_WAIT = 366 * instants.DAY
_AGE = 36_600 * instants.DAY


class Config:
    """What holds for this call.

    Args:
        data_dir: absolute path of the data directory.
        settings: what the core works with.
        file: absolute path of the file that was read, if any.
        values: every key, dotted (``serve.port``), with its value as ``show`` tells it and where that came from.
        warnings: what was found and did not count.
    """

    __slots__ = ("data_dir", "file", "settings", "values", "warnings")

    def __init__(
        self,
        *,
        data_dir: str,
        settings: Settings,
        file: str | None,
        values: dict[str, tuple[Any, str]],
        warnings: list[str],
    ) -> None:
        self.data_dir = data_dir
        self.settings = settings
        self.file = file
        self.values = values
        self.warnings = warnings


def load(*, data_dir: str | None, config: str | None, environ: Mapping[str, str], cwd: str | None = None) -> Config:
    """Find the data directory and the one file that counts, and read that file.

    The data directory: ``data_dir`` (the option), ``ATB_DATA_DIR``, ``data_dir`` in the file, ``./data``. The file:
    ``config`` (the option), ``ATB_CONFIG``, the nearest ``atb.toml`` upwards from ``cwd``, ``config.toml`` in the
    data directory. Files are never mixed: the first one found is the only one read.

    Raises:
        InvalidInput: a file that was named does not exist, or the file holds something that it may not
            (``details.file`` and, but for broken TOML, ``details.key``).
        Unusable: the file may not be read.
    """
    base = _working_directory() if cwd is None else os.path.abspath(cwd)
    directory, origin = "./data", "default"
    if data_dir is not None:
        directory, origin = _path(data_dir, "--data-dir"), "option --data-dir"
    elif environ.get("ATB_DATA_DIR"):
        directory, origin = _path(environ["ATB_DATA_DIR"], "ATB_DATA_DIR"), "environment ATB_DATA_DIR"
    directory = _absolute(directory, base)

    named = "--config" if config is not None else "ATB_CONFIG"
    wanted = environ.get("ATB_CONFIG") if config is None else config
    file, is_named, is_own = None, False, False
    if wanted or config is not None:
        file, is_named = _absolute(_path(wanted, named), base), True
    else:
        file = _nearest(base)
        if file is None and os.path.isfile(os.path.join(directory, IN_DATA_DIR)):
            file, is_own = os.path.join(directory, IN_DATA_DIR), True

    values: dict[str, tuple[Any, str]] = {
        key: (list(default) if isinstance(default, list) else default, "default")
        for key, (default, _, _) in KEYS.items()
    }
    warnings: list[str] = []
    settings = Settings()
    if file is not None:
        raw, is_mine = _read(file)
        found = _check(_parse(raw, file), file)
        if is_own and "data_dir" in found:
            del found["data_dir"]
            warnings.append(f"{file}: data_dir is ignored, since this file lies in the data directory itself")
        hooks = [key for key in found if key.startswith("hooks.")]
        # What a checkout brings along never has a directory that only its owner can enter: git keeps no such modes.
        trusted = is_own and is_mine and (origin != "default" or _is_private(directory))
        if hooks and not is_named and not trusted:
            # a file that came with somebody's checkout must never make this user run a program
            for key in hooks:
                del found[key]
            warnings.append(
                f"{file}: [hooks] is ignored; it counts only in a file named by --config or ATB_CONFIG, "
                f"or in a {IN_DATA_DIR} that you own in a data directory that you name, or that only you can enter"
            )
        values.update((key, (value, f"file {file}")) for key, value in found.items())
        settings = _settings(values)
        if environ.get("ATB_DELIVERY"):  # what a hook does is told to no hook: that would never end
            settings.hooks = None
        if origin == "default" and "data_dir" in found:
            directory, origin = _absolute(values["data_dir"][0], os.path.dirname(file)), f"file {file}"
    if not os.path.isabs(directory):
        raise InvalidInput(
            f"data directory {directory}: the working directory does not exist any more",
            hint="Go to a directory that exists, or name the data directory by its absolute path.",
            field="data_dir",
        )
    values["data_dir"] = (directory, origin)
    return Config(data_dir=directory, settings=settings, file=file, values=values, warnings=warnings)


def show(config: Config) -> dict[str, Any]:
    """Return ``{"file": path or None, "values": {key: {"value", "source"}}}``; a secret is not told."""
    told = {key: {"value": value, "source": source} for key, (value, source) in config.values.items()}
    if told["hooks.webhook_secret"]["value"] is not None:
        told["hooks.webhook_secret"]["value"] = HIDDEN
    return {"file": config.file, "values": told}


def init(path: str) -> str:
    """Write a file with every key, each commented out at its default; return its absolute path.

    Raises:
        InvalidInput: there is something at ``path``, or no directory to put it into.
        Unusable: the file cannot be written; nothing is left of it.
    """
    file, text = _absolute(_path(path, "path"), _working_directory()), template()
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        hint = "Edit it, move it away, or name another path."
        raise InvalidInput(f"{file}: is there already", hint=hint, file=file) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{file}: there is no such directory", hint="Make it first.", file=file) from None
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}", file=file) from error
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as target:
            target.write(text)
    except OSError as error:
        os.unlink(file)
        raise Unusable(f"{file}: {error.strerror}", file=file) from error
    return file


def template() -> str:
    """Return what ``init`` writes."""
    import tomli_w

    lines = [
        "# Configuration of Agent Task Board; docs/configuration.md tells more.",
        "#",
        "# Every setting is here with its default, switched off by the # before it: take that away to change one.",
        '# A length of time is text such as "90s", "15m", "1h30m", "2d", or a whole number of seconds.',
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
    return "\n".join(lines) + "\n"


# Paths and files


def _working_directory() -> str:
    """Return the working directory, or the empty text where it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _absolute(path: str, base: str) -> str:
    """Return a path as seen from ``base``. A leading ``~`` is the home directory: no shell stands before a file."""
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _nearest(directory: str) -> str | None:
    """Return the nearest ``atb.toml`` upwards from a directory."""
    while directory:
        file = os.path.join(directory, NEAREST)
        if os.path.isfile(file):
            return file
        parent = os.path.dirname(directory)
        directory = parent if parent != directory else ""
    return None


def _is_private(directory: str) -> bool:
    """Say whether a directory lets nobody but its owner in, as those that the board makes."""
    try:
        return os.stat(directory).st_mode & 0o077 == 0
    except OSError:
        return False


def _read(file: str) -> tuple[bytes, bool]:
    """Return what is in a file, and whether this user owns it; unknown, where the platform cannot tell, is no."""
    try:
        with open(file, "rb") as source:
            owner = os.fstat(source.fileno()).st_uid
            return source.read(_SIZE + 1), hasattr(os, "getuid") and owner == os.getuid()
    except FileNotFoundError:
        hint = "Name a file that exists, with --config or ATB_CONFIG, or name none."
        raise InvalidInput(f"{file}: there is no such configuration file", hint=hint, file=file) from None
    except PermissionError as error:
        hint = "Check who owns the file, or name another one with --config."
        raise Unusable(f"{file}: the configuration may not be read", hint=hint, file=file) from error
    except OSError as error:
        hint = "Name a file that can be read, with --config or ATB_CONFIG."
        raise InvalidInput(f"{file}: {error.strerror}", hint=hint, file=file) from error


def _parse(raw: bytes, file: str) -> dict[str, Any]:
    import tomllib

    if len(raw) > _SIZE:
        raise InvalidInput(f"{file}: is larger than {_SIZE:,} bytes", hint=_CORRECT, file=file)
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: is not UTF-8 at byte {error.start}", hint=_CORRECT, file=file) from None
    except (ValueError, RecursionError) as error:  # ValueError: tomllib's own, and integers of thousands of digits
        raise InvalidInput(f"{file}: is not TOML: {error}", hint=_CORRECT, file=file) from None


# Keys and values


def _check(document: dict[str, Any], file: str) -> dict[str, object]:
    """Return the values of a document by dotted key, each as its key allows."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if name in _SECTIONS and isinstance(value, dict):
            flat.update((f"{name}.{inner}", item) for inner, item in value.items())
        elif name in _SECTIONS:
            hint = f"Write [{name}] on a line of its own, and its keys below it."
            raise InvalidInput(f"{file}: {name}: must be a table", hint=hint, file=file, key=name)
        elif "." in name:  # a quoted name such as "serve.port" is not that key
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
    from difflib import get_close_matches

    last = key.rpartition(".")[2]
    near = [known for known in KEYS if known.rpartition(".")[2] == last] or get_close_matches(key, KEYS, 1)
    hint = f"Did you mean {near[0]}?" if near else "`atb config show` lists the keys that there are."
    return InvalidInput(f"{file}: unknown key {key[:100]!r}", hint=hint, file=file, key=key[:100])


def _settings(values: dict[str, tuple[Any, str]]) -> Settings:
    def length(key: str) -> int:
        return instants.parse_length(values[key][0], field=key, high=_WAIT)

    return Settings(
        timezone=values["timezone"][0],
        lease=length("lease"),
        max_attempts=values["max_attempts"][0],
        backoff_base=length("backoff_base"),
        backoff_cap=length("backoff_cap"),
        busy_timeout=length("busy_timeout"),
        catch_up=values["catch_up"][0],
        archive_after=_age_of(values),
        hooks=_hooks(values),
    )


def _age_of(values: dict[str, tuple[Any, str]]) -> int | None:
    age = values["archive_after"][0]
    return None if age is None else instants.parse_length(age, field="archive_after", high=_AGE)


def _hooks(values: dict[str, tuple[Any, str]]) -> Hooks | None:
    """Return who is told of what, if hooks are on and there is somebody to tell."""
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
    """Return a check that gives back text which reads as exactly the same length."""

    def check(value: object, key: str) -> str:
        if not isinstance(value, str):  # parse_length would take fractions, and integers too long to print
            if isinstance(value, float):
                hint = 'Write whole seconds, or a length such as "90s" or "1m30s".'
                raise InvalidInput(f"{key}: not a whole number of seconds: {value}", hint=hint)
            value = inputs.integer(value, key, low // instants.SECOND, high // instants.SECOND)
        length = instants.parse_length(value, field=key, low=low, high=high)
        short = instants.format_length(length)  # two units at most: it may leave something out
        if instants.parse_length(short, field=key, high=high) == length:
            return short
        return f"{length // instants.SECOND}s"

    return check


def _whole(low: int, high: int) -> Check:
    return lambda value, key: inputs.integer(value, key, low, high)


def _host(value: object, key: str) -> str:
    host = inputs.line(value, key, inputs.KEY)
    if any(character in host for character in "/@ "):
        hint = "Write no scheme and no path, such as board.example."
        raise InvalidInput(f"{key}: {host[:60]!r} is not the name or address of a host", hint=hint)
    return host


def _hosts(value: object, key: str) -> list[str]:
    return [_host(item, key) for item in _items(value, key)]


def _argv(value: object, key: str) -> list[str] | None:
    items = _items(value, key)
    return [inputs.text(item, key, inputs.TEXT, required=not place) for place, item in enumerate(items)] or None


def _reached(value: object, key: str) -> list[str]:
    return [inputs.one_of(item, key, TOLD) for item in _items(value, key)]


def _age(value: object, key: str) -> str | None:
    return None if value == "" else _length(0, _AGE)(value, key)  # type: ignore[return-value]


def _items(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidInput(f"{key}: must be a list")
    return value


def _url(value: object, key: str) -> str | None:
    if value == "":
        return None
    url = inputs.line(value, key, inputs.PATH)
    import re  # not urllib, which would cost every command its time; argparse and json have loaded this one

    if not re.match("https?://", url, re.IGNORECASE):
        raise InvalidInput(f"{key}: must begin with http:// or https://")
    if not re.fullmatch(_ADDRESS, url, re.IGNORECASE):
        hint = "Write the host, the port if it is another, and a path of ASCII characters; no name, password or #."
        raise InvalidInput(f"{key}: is not an address that can be called", hint=hint)
    return url


def _secret(value: object, key: str) -> str | None:
    return inputs.text(value, key, inputs.KEY) or None


KEYS: dict[str, tuple[object, Check, str]] = {
    "data_dir": (
        "./data",
        _path,
        "Directory of the board, relative to this file. Does not count in the data directory's own config.toml.",
    ),
    "timezone": (
        "Asia/Shanghai",
        _zone,
        "Time zone (IANA name) of dates and times without an offset, of schedules and of the browser board.",
    ),
    "lease": (
        "15m",
        _length(instants.SECOND, 7 * instants.DAY),
        "How long a claim holds a task unless it asks for another length; a length of time, 1s to 7d.",
    ),
    "max_attempts": (
        3,
        _whole(1, inputs.MAX_ATTEMPTS),
        "How many attempts a task gets unless it says otherwise; a number, 1 to 1000.",
    ),
    "backoff_base": (
        "30s",
        _length(0, _WAIT),
        "Wait after a first failed attempt, doubled after each further one; a length of time, 0s to 366d.",
    ),
    "backoff_cap": (
        "1d",
        _length(0, _WAIT),
        "Longest wait after a failed attempt; a length of time, 0s to 366d.",
    ),
    "busy_timeout": (
        "10s",
        _length(0, instants.HOUR),
        "How long to wait for the board while others write, before giving up; a length of time, 0s to 1h.",
    ),
    "catch_up": (
        10,
        _whole(1, 1_000),
        "How many missed runs of one schedule a single tick makes up for; a number, 1 to 1000.",
    ),
    "archive_after": (
        None,
        _age,
        "Age at which a tick archives finished tasks, such as 90d; 0s to 36600d; empty: never.",
    ),
    "serve.host": (
        "127.0.0.1",
        _host,
        "Address that the server listens on.",
    ),
    "serve.port": (
        8765,
        _whole(0, 65_535),
        "Port that the server listens on, 0 to 65535; 0 takes any free one.",
    ),
    "serve.allow_hosts": (
        [],
        _hosts,
        'Further hosts under which browsers may reach the server, such as ["board.example", "box.example:8443"].',
    ),
    "serve.read_only": (
        False,
        inputs.boolean,
        "true: the server refuses every change.",
    ),
    "hooks.enabled": (
        False,
        inputs.boolean,
        "true: tell a program or an address of yours when a task gets somewhere.",
    ),
    "hooks.command": (
        None,
        _argv,
        'Program and its arguments, started without a shell, such as ["/usr/bin/logger", "-t", "board"].',
    ),
    "hooks.events": (
        ["done"],
        _reached,
        'What to tell of: a task that gets "done", "failed", "cancelled", to "review"; "expired", "commented".',
    ),
    "hooks.webhook_url": (
        None,
        _url,
        "Address to send the task to, http:// or https://; it needs allow_network.",
    ),
    "hooks.webhook_secret": (
        None,
        _secret,
        "Secret that signs what is sent to the address, up to 200 characters; never shown.",
    ),
    "hooks.allow_network": (
        False,
        inputs.boolean,
        "true: the address may be called.",
    ),
}
"""Every key: its default, its check, and its line in the file that ``init`` writes."""

_BLANKS: dict[str, object] = {
    "archive_after": "",
    "hooks.command": [],
    "hooks.webhook_url": "",
    "hooks.webhook_secret": "",
}
"""How a file says "none": TOML has no null."""

_NOTES = {
    "hooks": (
        "# Counts only in a file named by --config or ATB_CONFIG, or in your own config.toml in the data directory,",
        "# never in an atb.toml that is merely found.",
    )
}
"""What the file says about a section."""
