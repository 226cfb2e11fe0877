"""The only module that reads the environment; all other code takes arguments.

Keys are kept apart from the rest: ``Settings.environ`` holds none, so that no program gets one by accident.
In a process that belongs to AgentX (the command line, the daemon and its children) they are also removed from
what others can read: see :func:`take_environment`. A process that only imports AgentX keeps its environment
as it is.
"""

import ctypes
import math
import os
import re
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import msgspec

RUN = "AGENTX_RUN"
"""Variable with a token of the run, in the environment of each command and program that a run starts."""

RLIMIT_LOCKS = 10
"""Number of a limit that Linux keeps and no longer applies; see getrlimit(2)."""

MARK = 1 << 40
"""What that limit is in each program that a run starts."""

DATABASE = "AGENTX_FLEET_DATABASE"
"""Variable with the URL of a fleet's database; it counts as a key, wherever in it the password is."""

ACTS = "AGENTX_ACTS"
"""Variable with the directory where a program of a directed run reports what it has done."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|PAT|SECRETS?|PASSPHRASE|CREDENTIALS?|AUTH|DSN"
    r"|(?:API|ACCESS|AUTH|PRIVATE|SECRET|SSH)_?KEY(?:_ID)?)(?:_|$)|_KEY$|PASSWORD|PASSWD|_PWD$|^OTEL_.*_HEADERS$"
)
_PLACE_NAME = re.compile(r"_(?:SOCK|FILE|DIR|PATH|URL|URI|ENDPOINT)$")
_ADDRESS_NAME = re.compile(r"_PROXY$|^(?:PIP|UV)_")
"""Proxies and package indexes: every program that uses the network needs them, including their password."""
_LOGIN = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Fields 50 and 51 of ``/proc/self/stat`` (proc(5)), counted from the one after the program's name."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings from the environment.

    Attributes:
        model: ``AGENTX_MODEL``: the model to use if neither a command nor ``agentx.toml`` names one.
        api_base: ``AGENTX_API_BASE``: address of a server that speaks the provider's protocol.
        api_key: ``AGENTX_API_KEY``: key for it; the provider's own variables (``OPENAI_API_KEY``, …) work as
            well.
        cache_dir: ``AGENTX_CACHE_DIR``: directory of installed models and compiled patterns;
            ``~/.cache/agentx`` by default.
        state_dir: ``AGENTX_STATE_DIR``: what this user trusts, and the daemon's database;
            ``~/.local/state/agentx`` by default. Empty if the user has no home: then trust ends with the
            process.
        user: ``AGENTX_USER``: name of the user, so that the actor is ``user:<name>``; plain ``user`` by
            default.
        debug: ``AGENTX_DEBUG``: whether the command line shows tracebacks.
        trust_record: ``AGENTX_TRUST_RECORD``: a file with signed trust and approvals; see ``docs/trust.md``.
        trusted_keys: ``AGENTX_TRUSTED_KEYS``: public keys whose signed records are accepted.
        fleet_database: ``AGENTX_FLEET_DATABASE``: URL of a fleet's database, where it must not be stored.
        fleet_remote: Pattern of the tenant's remotes, where this process is a fleet's worker; the worker sets
            it, and ``fleet_tenant``.
        server_idle_s: ``AGENTX_SERVER_IDLE_S``: the server exits when nobody used it for this long.
        server_workspaces: ``AGENTX_SERVER_WORKSPACES``: number of workspaces that it keeps open.
        server_memory_mb: ``AGENTX_SERVER_MEMORY_MB``: above this it closes those that nobody uses.
        server_http: ``AGENTX_SERVER_HTTP``: a port at which it answers HTTP on this machine, ``0`` for any
            free one; off by default.
        environ: All variables except the keys; commands and programs get a part of it.
        keys: The variables that hold keys, as :func:`is_key` finds them.
    """

    model: str = ""
    api_base: str = ""
    api_key: str = ""
    cache_dir: Path = Path()
    state_dir: Path = msgspec.field(default_factory=lambda: _state_dir(os.environ))
    user: str = ""
    debug: bool = False
    trust_record: str = ""
    trusted_keys: tuple[str, ...] = ()
    fleet_database: str = ""
    fleet_remote: str = ""
    fleet_tenant: str = ""
    server_idle_s: float = 900.0
    server_workspaces: int = 8
    server_memory_mb: float = 1_000.0
    server_http: str = ""
    environ: Mapping[str, str] = {}
    keys: Mapping[str, str] = {}

    @property
    def actor(self) -> str:
        """The actor of the user at this terminal."""
        return f"user:{self.user}" if self.user else "user"

    @property
    def runtime_dir(self) -> Path:
        """The directory of the server's socket, as :func:`agentx.client.place.runtime_dir` finds it."""
        base = self.environ.get("XDG_RUNTIME_DIR", "")
        beside = f"{base}/agentx" if base.startswith("/") else f"/tmp/agentx-{os.getuid()}"  # noqa: S108
        return Path(os.path.abspath(self.environ.get("AGENTX_RUNTIME_DIR") or beside))

    @property
    def inside_run(self) -> bool:
        """Whether this process was started, directly or indirectly, by an agent's run.

        A run's programs can clear their environment, so the mark of the process counts, too.
        """
        return bool(self.environ.get(RUN)) or is_marked()


def is_marked() -> bool:
    """Return whether this process has the mark of a program that a run started, or a lower limit.

    A process can lower its limits, and without privileges it cannot raise them again.
    """
    hard = resource.getrlimit(RLIMIT_LOCKS)[1] if sys.platform == "linux" else resource.RLIM_INFINITY
    return hard != resource.RLIM_INFINITY and hard <= MARK


def is_key(name: str, value: str) -> bool:
    """Return whether a variable holds a key: by its name, or because it is an address with a password.

    >>> [is_key("OPENAI_API_KEY", "sk-1"), is_key("DATABASE_URL", "postgres://me:pw@host/db")]
    [True, True]
    >>> [is_key("SSH_AUTH_SOCK", "/run/agent"), is_key("KEYBOARD", "us"), is_key("HF_TOKEN", "")]
    [False, False, False]
    """
    name = name.upper()
    named = _SECRET_NAME.search(name) and not _PLACE_NAME.search(name)
    return bool(value) and bool(
        named or name == DATABASE or (_LOGIN.search(value) and not _ADDRESS_NAME.search(name))
    )


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the environment.

    Args:
        environ: Variables to read instead of the process's own.
    """
    found = os.environ if environ is None else environ
    home = _home()
    cache = found.get("AGENTX_CACHE_DIR") or (
        (found.get("XDG_CACHE_HOME") or str((home or Path("/nonexistent")) / ".cache")) + "/agentx"
    )
    keys = {name: value for name, value in found.items() if is_key(name, value)}
    held = found.held if isinstance(found, _KeptEnviron) else {}
    return Settings(
        model=found.get("AGENTX_MODEL", ""),
        api_base=found.get("AGENTX_API_BASE", ""),
        api_key=found.get("AGENTX_API_KEY", ""),
        cache_dir=Path(cache),
        state_dir=_state_dir(found),
        user=found.get("AGENTX_USER", ""),
        debug=found.get("AGENTX_DEBUG", "") not in ("", "0"),
        trust_record=found.get("AGENTX_TRUST_RECORD", ""),
        trusted_keys=tuple(found.get("AGENTX_TRUSTED_KEYS", "").replace(",", " ").split()),
        fleet_database=found.get(DATABASE, ""),
        server_idle_s=_number(found, "AGENTX_SERVER_IDLE_S", 900.0),
        server_workspaces=int(_number(found, "AGENTX_SERVER_WORKSPACES", 8)),
        server_memory_mb=_number(found, "AGENTX_SERVER_MEMORY_MB", 1_000.0),
        server_http=port if (port := found.get("AGENTX_SERVER_HTTP", "")).isdecimal() else "",
        environ={name: value for name, value in found.items() if name not in keys},
        keys={**held, **keys},
    )


def take_environment() -> Settings:
    """Read the environment of a process that belongs to AgentX, and remove the keys from it.

    Afterwards no child gets the keys, whatever environment it is started with, and ``/proc/PID/environ`` does
    not show them. They can still be looked up by name in ``os.environ``: litellm and the providers'
    libraries, about a hundred of them, read their variables there at each call.
    """
    settings = read_settings()
    hold_keys(settings)
    # Pydantic would look for plugins in the metadata of every installed package, and run them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    return settings


def replace_environment(environ: Mapping[str, str]) -> Settings:
    """Have this process, which belongs to AgentX, use other variables than it was started with.

    Args:
        environ: The variables, with keys. Nothing else stays, and no child gets the keys.
    """
    settings = read_settings(environ)
    hide_memory()
    os.environ.clear()
    os.environ.update(settings.environ)
    hold_keys(settings)
    return settings


def hold_keys(settings: Settings) -> None:
    """Keep keys in this AgentX process where no child and no other process finds them."""
    if not settings.keys:
        return
    for name in settings.keys:
        with suppress(KeyError):
            del os.environ[name]  # removes it from C's environment too
    _KeptEnviron.held.update(settings.keys)
    os.environ.__class__ = _KeptEnviron
    if sys.platform == "linux":
        _wipe_initial(settings.keys)
        if not settings.debug:  # a debugger cannot attach to a process that is not dumpable
            hide_memory()


def hide_memory() -> None:
    """Make the memory and the environment of this process readable by root only; no core is dumped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class _KeptEnviron(os._Environ[str]):  # noqa: SLF001 - the class of os.environ has no other name
    """``os.environ`` with keys that can only be looked up by name: no iteration, copy or child shows them."""

    held: ClassVar[dict[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        try:
            return super().__getitem__(name)
        except KeyError:
            return self.held[name]

    def __delitem__(self, name: str) -> None:
        if self.held.pop(name, None) is None or name in self.keys():
            super().__delitem__(name)


def _wipe_initial(names: Mapping[str, str]) -> None:
    """Overwrite values in the memory block from the kernel that ``/proc/PID/environ`` shows."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        if start:
            at = start
            for variable in ctypes.string_at(start, end - start).split(b"\0"):
                name, _, value = variable.partition(b"=")
                if os.fsdecode(name) in names:
                    ctypes.memset(at + len(variable) - len(value), 0, len(value))
                at += len(variable) + 1


def _number(found: Mapping[str, str], name: str, default: float) -> float:
    """Return a variable as a number; the default if it is not one or is negative."""
    with suppress(ValueError):
        if (value := float(found.get(name, ""))) >= 0 and math.isfinite(value):
            return value
    return default


def _state_dir(found: Mapping[str, str]) -> Path:
    if own := found.get("AGENTX_STATE_DIR"):
        return Path(own)
    if base := found.get("XDG_STATE_HOME"):
        return Path(base) / "agentx"
    home = _home()
    return home / ".local" / "state" / "agentx" if home else Path()


def _home() -> Path | None:
    """Return the user's home; ``None`` if neither ``HOME`` nor the user database names one."""
    try:
        return Path.home()
    except RuntimeError:
        return None
