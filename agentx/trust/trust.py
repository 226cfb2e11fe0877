"""Decide whether a workspace is trusted; the gate before everything that runs, calls or reads outside.

Trust is bound to the workspace's real path, to its first event, and to the values of the settings with an
effect. The decision uses the configuration that the process really uses, so an edit between the check and the
use changes nothing. What the history itself would run (schedules, capabilities) is trusted item by item, by
content, because a pull brings new ones.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from agentx.config import Config, change_value, effects, executable, read_config
from agentx.settings import Settings
from agentx.storage.clock import stamp
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.log.history import LIVE, segment_path
from agentx.storage.text import encodable
from agentx.synthesis.memory.effects import Effect
from agentx.trust import records
from agentx.trust.digests import canonical, digest
from agentx.trust.store import MAX_BYTES, Store, StoreUnusable
from agentx.trust.trusted_items import TrustedItem

COMMANDS = "This command can read your keys and act as you."
"""Warning shown before the user allows ``run_command`` without isolation."""

_LINE_BYTES = 64 * 1024
_SHOWN_FIELDS = 4


class Restricted(AgentXError):
    """An action was refused because the workspace is not trusted.

    Attributes:
        what: The setting or other cause of the refused effect.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"Refused: {what.rstrip('.')}. {why}. {ADVICE}")
        self.what = what


def restricted(why: str) -> str:
    """Return the sentence, without a full stop, that explains why a workspace is restricted."""
    return f"This workspace is restricted: {why}"


ADVICE = "If you trust its authors, review it and allow it: `agentx trust`."

_WOULD = {
    Effect.RUNS: "{} would run a program",
    Effect.CALLS: "{} would send your key and messages to an address",
    Effect.READS: "{} would read outside the workspace",
    Effect.LOOSENS: "{} would loosen a guard",
}


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user trusts, as stored.

    Attributes:
        path: Real path of the workspace.
        workspace: Hash of its first event.
        fields: Settings with an effect that differ from their defaults, each as JSON.
        items: Digests of what its history may run.
        commands: Whether ``run_command`` may run without isolation.
        how: ``created``, ``trusted``, ``configured`` or ``forked``.
        at: When it was recorded, in UTC.
    """

    path: str
    workspace: str
    fields: dict[str, str]
    items: tuple[str, ...] = ()
    commands: bool = False
    how: str = ""
    at: str = ""


def identity_of(root: Path) -> str:
    """Return the hash of a workspace's first event; empty if there is none or it cannot be read."""
    for path in (root / segment_path(1), root / LIVE):
        try:
            with open(
                os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb"
            ) as file:
                first = json.loads(file.readline(_LINE_BYTES))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError):
            return ""
        found = first.get("hash") if isinstance(first, dict) and first.get("seq") == 1 else None
        return found if isinstance(found, str) else ""
    return ""


class Trust:
    """Whether one open workspace is trusted, and for what.

    Args:
        root: Its directory.
        artifacts: Directory of its artifacts; it need not exist.
        config: The configuration that this process uses.
        settings: Settings from the environment.
    """

    def __init__(self, root: Path, artifacts: Path, config: Config, settings: Settings) -> None:
        self._root, self._artifacts, self._settings = root, artifacts, settings
        self._store = Store(settings.state_dir)
        self._identity = ""
        self._here: Record | None = None
        self.fields = _texts(config)

    @classmethod
    def read(cls, root: Path, settings: Settings) -> "Trust":
        """Return the trust of a workspace that is not open, from its current ``agentx.toml``.

        Raises:
            ConfigInvalid: ``agentx.toml`` cannot be read.
        """
        root = nofollow.canonical(root)
        config = read_config(root)
        return cls(root, root / config.workspace.artifacts, config, settings)

    @cached_property
    def path(self) -> str:
        """The workspace's real path."""
        return os.path.realpath(self._root)

    @property
    def identity(self) -> str:
        """Hash of the workspace's first event; empty if it has none."""
        self._identity = self._identity or identity_of(self._root)
        return self._identity

    # --- asking ---------------------------------------------------------------------------------------------

    def why_restricted(self) -> str:
        """Return why the workspace is restricted, as a clause without a full stop; empty if it is trusted."""
        return self.decide()[1]

    @property
    def trusted(self) -> bool:
        """Whether the workspace is trusted."""
        return not self.why_restricted()

    def require(self, name: str, does: str = "") -> None:
        """Raise an error unless the workspace is trusted.

        Args:
            name: The setting, or another name, of the effect.
            does: What it would do, if the schema does not say so.

        Raises:
            Restricted: It is not trusted.
        """
        if why := self.why_restricted():
            effect = effects().get(name) or Effect.RUNS
            raise Restricted(does or _WOULD[effect].format(name), restricted(why))

    def require_item(self, item: TrustedItem) -> None:
        """Raise an error unless the user trusts this very schedule or capability.

        Raises:
            Restricted: The workspace is not trusted, or the item was added or changed since.
        """
        does = f"the {item.kind} {item.name!r} would {item.does}"
        record, why = self.decide()
        if record is None:
            raise Restricted(does, restricted(why))
        if item.digest not in record.items:
            why = "It is new, or was changed by someone else since you trusted this workspace"
            raise Restricted(does, why)

    def require_commands(self) -> None:
        """Raise an error unless the user allowed commands without isolation in this workspace.

        Raises:
            Restricted: The user did not allow them.
        """
        record, why = self.decide()
        if record is None:
            raise Restricted("tools.run_command would run a program", restricted(why))
        if not record.commands:
            raise Restricted(
                f"run_command would run without isolation. {COMMANDS}",
                "Commands cannot be isolated here, and running them without isolation is not allowed: "
                "`agentx trust --commands` allows it",
            )

    def last_trusted(self) -> Record | None:
        """Return the last record of trust for this workspace at this path, whatever changed since."""
        try:
            record = self._read()
        except StoreUnusable:
            return None
        return record if record and record.workspace == self.identity else None

    # --- granting and revoking ------------------------------------------------------------------------------

    def grant(self, how: str, items: Iterable[TrustedItem] = (), *, commands: bool = False) -> None:
        """Trust the workspace and some items in their current state.

        ``how`` is ``created``, ``trusted`` or ``forked``; ``commands`` allows commands without isolation.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        record = Record(
            path=self.path,
            workspace=self.identity,
            fields=self.fields,
            items=tuple(sorted({item.digest for item in items})),
            commands=commands,
            how=how,
            at=stamp(timespec="seconds"),
        )
        self.put(record)

    def created(self) -> str:
        """Trust a workspace that this process has just made.

        Returns:
            Why the trust is limited to this process; empty if it was recorded.
        """
        try:
            self.grant("created")
        except StoreUnusable as error:
            self._here = Record(path=self.path, workspace=self.identity, fields=self.fields, how="created")
            return f"{error} So this workspace is trusted by the process that made it alone."
        return ""

    def keep(self, item: TrustedItem) -> str:
        """Trust an item that the user has just added to the history, if the workspace is trusted.

        Returns:
            Why the item is not trusted; empty if it is, or if the workspace is restricted.
        """
        if self._here is not None:
            self._here = _with(self._here, item.digest)
        try:
            with self._changing():
                record = self.decide()[0]
                if record is not None and self._read() is not None:
                    self._keep(_with(record, item.digest))
        except StoreUnusable as error:
            return "" if self._here is not None else f"{error} So the {item.kind} waits for `agentx trust`."
        return ""

    def forked(self, root: Path) -> None:
        """Trust a fork of this workspace if the original is trusted and the fork has the same settings."""
        record, _ = self.decide()
        fork = Trust.read(root, self._settings)
        inside = {name: value for name, value in self.fields.items() if name != "workspace.artifacts"}
        if record is not None and fork.fields == inside:
            trusted = msgspec.structs.replace(
                record,
                path=fork.path,
                workspace=fork.identity,
                fields=inside,
                commands=False,
                how="forked",
                at=stamp(timespec="seconds"),
            )
            with suppress(StoreUnusable):
                fork.put(trusted)

    def revoke(self) -> bool:
        """Revoke trust in the workspace; return whether it was trusted.

        Raises:
            StoreUnusable: The store cannot be changed.
        """
        self._here = None
        with self._changing():
            return self._store.remove(self._name)

    def issue(self, days: float, items: Iterable[TrustedItem] = (), *, commands: bool = False) -> str:
        """Return a signed record of trust in the workspace and some items, valid for a number of days.

        It is for machines that accept this user's key.

        Raises:
            Restricted: The workspace is not trusted here.
            StoreUnusable: The key cannot be read or made, or the caller is a program of an agent's run.
        """
        self.require("trust", "trust would be issued that you do not have")
        digests = tuple(sorted({item.digest for item in items}))
        return self._issued("trust", digest(self.fields), days, digests, commands=commands)

    def issue_approval(self, days: float, call_id: str, tool: str, recorded: str) -> str:
        """Return a signed record that allows one call with the arguments in the history.

        Raises:
            StoreUnusable: The key cannot be read or made, or the caller is a program of an agent's run.
        """
        return self._issued("approval", digest([call_id, tool, recorded]), days)

    def issue_run(self, days: float, what: str) -> str:
        """Return a signed record by which a worker may carry out one submission, given by its digest.

        Raises:
            Restricted: The workspace is not trusted here.
            StoreUnusable: The key cannot be read or made, or the caller is a program of an agent's run.
        """
        self.require("trust", "a worker would run what you do not trust")
        return self._issued("run", what, days)

    def why_no_run(self, what: str) -> str:
        """Return why no signed record allows a submission, given by its digest; empty if one does."""
        signed, why = self._signed("run", what)
        return "" if signed else why or "no signed record came with it"

    def _issued(
        self, kind: str, what: str, days: float, items: tuple[str, ...] = (), *, commands: bool = False
    ) -> str:
        records.refuse_in_a_run(self._settings)
        self._check_place()
        now = datetime.now(tz=UTC)
        record = records.Signed(
            kind=kind,
            workspace=self.identity,
            what=what,
            issued=stamp(now, timespec="seconds"),
            until=stamp(now + timedelta(days=days), timespec="seconds"),
            items=items,
            commands=commands,
        )
        return records.issue(self._store, record)

    # --- one call -------------------------------------------------------------------------------------------

    def approve(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """Allow one call with exactly these arguments.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        records.refuse_in_a_run(self._settings)
        shown = {
            "workspace": self.identity,
            "call": call_id,
            "tool": tool,
            "path": self.path,
            "at": stamp(timespec="seconds"),
        }
        self._store.write(self._call(call_id, tool, arguments), json.dumps(shown).encode())

    def approved(self, call_id: str, tool: str, arguments: Mapping[str, Any], recorded: str) -> bool:
        """Return whether the user allowed a call, here or in a signed record.

        Args:
            call_id: The call.
            tool: Name of the tool.
            arguments: The arguments it would run with.
            recorded: The arguments as recorded in the history, redacted; a signed record refers to these.
        """
        try:
            self._check_place()
            if self._store.read(self._call(call_id, tool, arguments)) is not None:
                return True
        except StoreUnusable:
            pass
        return bool(self._signed("approval", digest([call_id, tool, recorded]))[0])

    def used(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """Delete the approval of a call that has run; an approval counts once."""
        with suppress(StoreUnusable):
            self._store.remove(self._call(call_id, tool, arguments))

    def _call(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> str:
        plain = json.loads(json.dumps(arguments, default=str))
        return f"approval-{digest([self.path, self.identity, call_id, tool, plain])[:48]}.json"

    # --- deciding -------------------------------------------------------------------------------------------

    def decide(self) -> tuple[Record | None, str]:
        """Return the record by which the workspace is trusted; or ``None``, and why it is not."""
        try:
            self._check_place()
            record = self._read()
            why = self._differs(record)
        except StoreUnusable as error:
            record, why = self._here, str(error).rstrip(".")
            if record is not None:
                why = self._differs(record)
        if not why:
            return record, ""
        signed, unsigned = self._signed("trust", digest(self.fields))
        if signed is None:
            return None, f"{why}; {unsigned}" if unsigned else why
        items, commands = signed.items, signed.commands
        found = Record(
            path=self.path, workspace=self.identity, fields=self.fields, items=items, commands=commands
        )
        return found, ""

    def _differs(self, record: Record | None) -> str:
        """Return why a record does not match the current workspace; empty if it does."""
        if record is None:
            return "it was not created here by you, or comes from an earlier version, and is not trusted yet"
        if not self.identity or record.workspace != self.identity:
            return "a different workspace was at this path when you trusted it"
        changed = sorted(
            name
            for name in record.fields.keys() | self.fields.keys()
            if record.fields.get(name) != self.fields.get(name)
        )
        if not changed:
            return ""
        more = f" and {len(changed) - _SHOWN_FIELDS} more" if len(changed) > _SHOWN_FIELDS else ""
        return (
            f"agentx.toml changed {', '.join(changed[:_SHOWN_FIELDS])}{more} since you trusted it, "
            "and not by `agentx config set`"
        )

    def _signed(self, kind: str, what: str) -> tuple[records.Signed | None, str]:
        """Return the signed record for a digest; or ``None``, and why there is none."""
        if not self._settings.trust_record or not self.identity:
            return None, ""
        accepted = [*self._settings.trusted_keys]
        with suppress(StoreUnusable):
            self._check_place()
            accepted += records.accepted_keys(self._store)
        path = Path(self._settings.trust_record)
        return records.find(path, accepted, kind=kind, workspace=self.identity, what=what)

    # --- the store ------------------------------------------------------------------------------------------

    @cached_property
    def _name(self) -> str:
        return f"workspace-{digest(self.path)[:48]}.json"

    def _check_place(self) -> None:
        if self._within_reach:
            raise StoreUnusable(self._within_reach)

    @cached_property
    def _within_reach(self) -> str:
        """Why the state directory is unsafe: this workspace's agents could write it; empty if they cannot."""
        place = Path(os.path.realpath(self._settings.state_dir))
        for reach in (Path(self.path), Path(os.path.realpath(self._artifacts))):
            if reach in (place, *place.parents):
                return (
                    f"Your state directory {place} is within reach of this workspace's agents; set "
                    "AGENTX_STATE_DIR to a directory outside it."
                )
        return ""

    def _read(self) -> Record | None:
        content = self._store.read(self._name)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=Record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreUnusable(
                f"The trust record {self._store.folder / self._name} is damaged; `agentx trust` creates it "
                "again."
            ) from error

    def put(self, record: Record) -> None:
        """Store a record of trust.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        with self._changing():
            self._keep(record)

    def _keep(self, record: Record) -> None:
        if not record.workspace:
            raise StoreUnusable(f"{self.path} has no first event yet, so there is nothing to trust.")
        content = msgspec.json.encode(msgspec.structs.replace(record, path=encodable(record.path)))
        if len(content) > MAX_BYTES:
            raise StoreUnusable(
                f"The settings of {self.path} are too large to be trusted; shorten agentx.toml."
            )
        self._store.write(self._name, content)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        records.refuse_in_a_run(self._settings)
        self._check_place()
        with self._store.locked():
            yield


def _texts(config: Config) -> dict[str, str]:
    """Return the settings with an effect, each as JSON, which keeps every TOML number and text exactly."""
    return {name: canonical(value).decode() for name, value in executable(config).items()}


def _with(record: Record, item: str) -> Record:
    return msgspec.structs.replace(record, items=tuple(sorted({*record.items, item})))


def set_value(root: Path, settings: Settings, name: str, value: str) -> Config:
    """Set one value in ``agentx.toml`` as its owner; a trusted workspace stays trusted.

    Args:
        root: The workspace's directory.
        settings: Settings from the environment.
        name: Section and key, separated by a dot.
        value: In TOML syntax; a bare word counts as a string.

    Raises:
        ConfigInvalid: The setting does not exist, or it does not accept the value.
        StoreUnusable: The workspace is trusted, and trust in the new value cannot be recorded.
    """
    records.refuse_in_a_run(settings)
    before, after = change_value(root, name, value)
    if before is None or executable(before) == executable(after):
        return after
    trust = Trust(root, root, before, settings)
    record, _ = trust.decide()
    if record is not None and trust.last_trusted() is not None:
        at = stamp(timespec="seconds")
        trust.put(msgspec.structs.replace(record, fields=_texts(after), how="configured", at=at))
    return after


def trusted_workspaces(settings: Settings) -> list[tuple[Record, str]]:
    """Return every workspace that this user trusted, with why it is restricted now; empty if it is trusted.

    Raises:
        StoreUnusable: The store is unsafe.
    """
    store = Store(settings.state_dir)
    found: list[tuple[Record, str]] = []
    for name in store.names("workspace-"):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            record = msgspec.json.decode(store.read(name) or b"", type=Record)
            try:
                why = Trust.read(Path(record.path), settings).why_restricted()
            except AgentXError as error:
                why = str(error).rstrip(".")
            gone = not os.path.lexists(record.path)
            found.append((record, "nothing exists at its path any more" if gone else why))
    return sorted(found, key=lambda one: one[0].path)
