"""Which agent may change which file: classes that apply to all agents, leases for a single writer, secrets.

Checks run under the workspace lock, with the events of other processes folded in, so nothing comes between
the check and the write. The user is never refused; :mod:`agentx.policy.amendments` detects the user's edits
of such files.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile

import msgspec

from agentx.engine.engine import Engine
from agentx.recording.committer import Committer
from agentx.recording.secret_report import secrets_in, tell
from agentx.recording.staging import Content
from agentx.recording.write_path import WritePath
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.events.actor import Actor
from agentx.storage.events.pipeline_events import Dispatched, FileAmended, FileClass, FileRule
from agentx.storage.events.types import (
    Draft,
    RunStarted,
)
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.objects import blob_id
from agentx.storage.git.repository import LINK
from agentx.storage.secrets.redaction import find
from agentx.storage.text import text_of
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.state.state import Lease, State

PEOPLE = frozenset(("user", "watch", "import"))
"""Kinds of actors that represent people; a static file requires their approval."""

MARK = "[redacted: "
"""Beginning of the text that replaces a secret."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.2


class FileRuleBroken(AgentXError):
    """The class of a file forbids the change.

    Attributes:
        path: The file.
    """

    def __init__(self, path: str, said: str) -> None:
        super().__init__(said)
        self.path = path


class FileLeased(FileRuleBroken):
    """Only another run may write to the file while its lease is valid.

    Attributes:
        lease: Its holder and its end.
    """

    def __init__(self, path: str, lease: Lease, who: str) -> None:
        item = f" of item {lease.item}" if lease.item else ""
        super().__init__(
            path,
            f"Denied. {who} may not write to {path}: it is leased to role {lease.role} for stage "
            f"{lease.stage}{item} ({lease.run}) until {lease.until or 'that run ends'}. "
            f"A file has one writer at a time: wait for the end of {lease.run}, or write to another file.",
        )
        self.lease = lease


class SecretRefused(AgentXError):
    """A write would put a secret into an artifact, and ``agentx.toml`` does not allow asking for approval."""


class FileRuling(msgspec.Struct, frozen=True):
    """The class that a pipeline gives a file; as text, its explanation."""

    path: str
    sort: FileClass
    pipeline: str

    def __str__(self) -> str:
        """Return the explanation in words."""
        return f"{self.sort} in pipeline {self.pipeline}: {_MEANS[self.sort]}"


_MEANS = {
    "static": "it was written once, and changing it needs the user's approval",
    "append-only": "text may only be added at its end",
}


# --- leases -------------------------------------------------------------------------------------------------


def take(engine: Engine, started: RunStarted, sent: Dispatched, *, actor: str, wait_s: float) -> str:
    """Start a run with exclusive leases on its files; both are recorded in one append.

    Args:
        engine: The workspace.
        started: The run.
        sent: Its dispatch; the files are its ``writes``.
        actor: Who runs it.
        wait_s: How long to wait for the leases of other runs to end, in seconds.

    Returns:
        The ID of the run.

    Raises:
        FileLeased: One of the files was leased to another run until the wait ended.
    """
    deadline, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
    while True:
        with engine.write_path.exclusive():
            state = engine.log.state
            held = _held(state, sent.writes)
            if held is None:
                run = f"r-{state.counts.get('RunStarted', 0) + 1}"
                engine.write_path.record([Draft(data=data, actor=actor, run=run) for data in (started, sent)])
                return run
        if time.monotonic() >= deadline:
            raise FileLeased(*held, f"Role {sent.role}")
        time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _held(state: State, paths: Iterable[str], run: str = "") -> tuple[str, Lease] | None:
    """Return the first of the files that is leased to another run, with its lease."""
    leases = ((path, state.leases[path]) for path in paths if path in state.leases)
    return next(((path, lease) for path, lease in leases if lease.run != run and _is_live(lease)), None)


def _is_live(lease: Lease) -> bool:
    """Return whether a lease is valid now; one with an unreadable end is valid until its run ends."""
    try:
        until = datetime.fromisoformat(lease.until)
    except ValueError:
        return True
    return datetime.now(UTC) < (until if until.tzinfo else until.replace(tzinfo=UTC))


# --- the gate -----------------------------------------------------------------------------------------------


def check(
    engine: Engine, contents: Mapping[str, Content | None], *, actor: str, run: str = ""
) -> list[FileAmended]:
    """Check a write before it is made.

    Args:
        engine: The workspace; the caller holds its lock.
        contents: New content by checked path; ``None`` removes the file.
        actor: Who writes.
        run: The run that it belongs to.

    Returns:
        The changes that need approval.

    Raises:
        FileLeased: Another run holds one of the files.
        FileRuleBroken: An append-only file would not begin with its current content.
    """
    state = engine.log.state
    if not (state.files or state.leases) or is_person(actor):
        return []
    who = _name(actor)
    if held := _held(state, contents, run):
        raise FileLeased(*held, who)
    rulings = rulings_on(state, contents)
    if not rulings:
        return []
    amended: dict[str, FileAmended] = {}
    tracked = engine.git.tracked_all({ruling.path for ruling in rulings})
    for ruling in rulings:
        before, content = tracked[ruling.path], contents[ruling.path]
        after = None if content is None else TreeEntry(blob_id(content.data), content.mode)
        if before is None or before == after:
            continue
        if ruling.sort == "append-only":
            _require_growth(engine.git, who, ruling, before, content)
        else:
            amended[ruling.path] = FileAmended(
                path=ruling.path, before=before.oid, after=after.oid if after else ""
            )
    return list(amended.values())


def require(engine: Engine, contents: Mapping[str, Content | None], *, actor: str, run: str = "") -> None:
    """Like :func:`check`, for a write that can no longer be approved.

    Raises:
        FileLeased: Another run holds one of the files.
        FileRuleBroken: The class of a file forbids it.
    """
    for made in check(engine, contents, actor=actor, run=run):
        raise FileRuleBroken(made.path, f"Denied. {told(engine, [made.path], actor)}")


def told(engine: Engine, paths: Iterable[object], actor: str) -> str:
    """Return a sentence for each static file, at or below the paths, that needs approval to change."""
    state, wanted = engine.log.state, {path for path in paths if isinstance(path, str)}
    if not (state.files and wanted):
        return ""
    below = tuple(path.rstrip("/") + "/" for path in wanted if path)
    names = [name for name in engine.git.manifest() if name in wanted or name.startswith(below)]
    return " ".join(
        f"{_name(actor)} may not change {ruling.path}, which is {ruling}."
        for ruling in rulings_on(state, names)
        if ruling.sort == "static"
    )


def _require_growth(
    git: Committer, who: str, ruling: FileRuling, before: TreeEntry, content: Content | None
) -> None:
    """Refuse new content of an append-only file unless it begins with the current content."""
    if content is None or content.link or before.mode == LINK:
        raise FileRuleBroken(
            ruling.path,
            f"Denied. {who} may not delete, move or link {ruling.path}, which is {ruling}. "
            "Leave it where it is.",
        )
    old = git.repo.read_blob(before.oid)
    if not content.data.startswith(old):
        raise FileRuleBroken(
            ruling.path,
            f"Denied. {who} may not change line {first_difference(old, content.data)} of {ruling.path}, "
            f"which is {ruling}. Read it again, keep all of its {len(old):,} bytes unchanged, and add "
            "your text at the end. If the old text is wrong, the user edits it and accepts the edit with "
            f"`agentx pipeline amend {ruling.path} --reason …`.",
        )


def first_difference(old: bytes, new: bytes) -> int:
    r"""Return the number of the first line in which two contents differ.

    >>> first_difference(b"a\nb\nc\n", b"a\nb\n"), first_difference(b"a\n", b"a\r\n")
    (3, 1)
    """
    pairs = zip(old.splitlines(keepends=True), new.splitlines(keepends=True), strict=False)
    return 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def rulings_on(state: State, paths: Iterable[str]) -> list[FileRuling]:
    """Return the classes that pipelines give to the files."""
    sorters = [(name, sorter(rules)) for name, rules in state.files.items() if rules]
    return [
        FileRuling(path, sort, name) for path in paths for name, sort_of in sorters if (sort := sort_of(path))
    ]


@lru_cache(maxsize=32)
def sorter(rules: tuple[FileRule, ...]) -> Callable[[str], FileClass | None]:
    """Return a function that finds the class of a path.

    A full path takes precedence over a pattern; otherwise the first matching rule applies.
    """
    exact = {rule.path: rule.sort for rule in reversed(rules) if "*" not in rule.path}
    patterns = [(path_pattern(rule.path), rule.sort) for rule in rules if "*" in rule.path]

    def sort_of(path: str) -> FileClass | None:
        found = exact.get(path)
        return found or next((sort for pattern, sort in patterns if pattern.fullmatch(path)), None)

    return sort_of


def _name(actor: str) -> str:
    """Return an agent's role, or the name of any other actor."""
    sort, role = Actor.parse(actor)
    return f"Role {role}" if sort == "agent" else actor


def is_person(actor: str) -> bool:
    """Return whether an actor is a person, or represents what people did outside."""
    return Actor.parse(actor).role in PEOPLE


# --- secrets ------------------------------------------------------------------------------------------------


def why_approval(
    engine: Engine, contents: Mapping[str, Content | None], amended: Sequence[FileAmended], actor: str
) -> str:
    """Return why a write needs approval: static files that it changes, and secrets; empty if it does not.

    Raises:
        SecretRefused: It would put a secret into a file, and the settings deny that without asking.
    """
    why = told(engine, [made.path for made in amended], actor)
    rule = engine.config.secrets.artifacts
    if rule == "allow" or not (found := new_secrets(engine.write_path, contents)):
        return why
    secret = f"The write would put a possible secret into {tell(found)}"
    if rule == "deny":
        raise SecretRefused(
            f"Denied. {secret}. Keep secrets out of files: "
            "read them from the environment (secrets.artifacts)."
        )
    return f"{why} {secret}.".lstrip()


def new_secrets(write_path: WritePath, contents: Mapping[str, Content | None]) -> list[str]:
    """Return the secrets that a write would add: those in none of the current files that it changes."""
    texts = {path: text_of(content.data) for path, content in contents.items() if content}
    holding = {path: text for path, text in texts.items() if find(text)}
    if not holding:
        return []
    before = [
        text_of(write_path.git.repo.read_blob(entry.oid))
        for entry in write_path.git.tracked_all(contents).values()
        if entry
    ]
    known = frozenset(text[found.start : found.end] for text in before for found in find(text))
    return [secret for path, text in holding.items() for secret in secrets_in(path, text, known)]


def check_marks(write_path: WritePath, contents: Mapping[str, Content | None]) -> None:
    """Prevent a redaction mark from replacing a secret: the agent that read the file did not see the secret.

    Raises:
        UsageError: A file that holds a secret would hold a mark in its place.
    """
    for path, content in contents.items():
        text = text_of(content.data) if content else ""
        if MARK not in text or not (entry := write_path.git.tracked_all([path])[path]):
            continue
        before = text_of(write_path.git.repo.read_blob(entry.oid))
        if find(before) and text.count(MARK) > before.count(MARK):
            raise UsageError(
                f"{path} contains a secret that was shown to you as “{MARK}…]”; this write would replace "
                "the secret with that mark. Change the other lines with edit_file."
            )
