"""Links: read another workspace's artifacts in place, as last committed; nothing is copied or written.

A link names the other workspace, which of its artifacts are readable, and their maximum age. So agents see
each other's work without exchanging messages. If a file has not changed for too long, the answer says so.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from agentx.config import Config, LinkSection
from agentx.core import layout
from agentx.core.layout import ARTIFACTS
from agentx.engine.engine import Engine
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.errors import AgentXError
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused, check_path
from agentx.storage.git.checked_reader import TreeEntry
from agentx.storage.git.repository import GitRepository, NotARepository
from agentx.storage.log.history import LIVE
from agentx.storage.matching import globs

SEPARATOR = ":"
"""Separates the name of a link from the path in its workspace; no artifact has it in its name."""

MOST_COMMITS = 2_000
"""Maximum number of commits searched for the latest change of a file."""

MOST_NAMED = 50
"""Maximum number of files listed if the requested one does not exist."""

_LINK = 0o120000


class LinkBroken(AgentXError):
    """A link is not declared, or does not lead to a workspace."""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A file of another workspace.

    Attributes:
        name: The requested name, ``LINK:path``.
        data: Its content in the last commit.
        at: When it last changed there, in UTC. If that is longer ago than the searched commits, the time of
            the earliest of them.
        stale: Whether that is longer ago than the link allows.
        note: The age in a sentence.
    """

    name: str
    data: bytes
    at: datetime
    stale: bool
    note: str


def is_linked(path: str) -> bool:
    """Return whether a path is in another workspace; ``C:/x`` is not."""
    return path.find(SEPARATOR) > 1


def read(engine: Engine, name: str, now: datetime | None = None) -> Linked:
    """Read a file of a linked workspace.

    Args:
        engine: The workspace that declares the link.
        name: ``LINK:path``.
        now: The current time; the clock's by default.

    Raises:
        LinkBroken: The link does not exist, or no workspace at its target.
        Restricted: The workspace is not trusted.
        PathRefused: The path leads out of the artifacts, is not shared by the link, or is itself a symbolic
            link.
        ArtifactMissing: Its last commit has no such file.
        FileTooLarge: It exceeds the size limit of this workspace.
        ObjectDamaged: The other repository is damaged.
    """
    now = now or datetime.now(tz=UTC)
    link, _, path = name.partition(SEPARATOR)
    section = next((one for one in engine.config.links if one.name == link), None)
    if section is None:
        known = ", ".join(one.name for one in engine.config.links) or "none"
        raise LinkBroken(
            f"Unknown link {link[:64]!r}; `links` in agentx.toml declares: {known}. Paths in this "
            f"workspace do not contain {SEPARATOR!r}."
        )
    engine.trust.require("links")
    path = check_path(path) if path else ""
    with _opened(engine, section) as repo:
        tree = repo.tree_of(repo.head) if repo.head else ""
        if not path:
            raise ArtifactMissing(f"Name a file behind {name!r}. {_listed(repo, tree, section)}")
        if not _shares(section, path):
            shared = _listed(repo, tree, section)
            raise PathRefused(name, f"the link {section.name!r} does not share it. {shared}")
        entry = repo.entry(tree, f"{ARTIFACTS}/{path}")
        if entry is None:
            missing = f"The workspace that {link!r} links to has no file {path!r}."
            raise ArtifactMissing(f"{missing} {_listed(repo, tree, section)}")
        if entry.mode == _LINK:
            raise PathRefused(name, "it is a link in the other workspace; read its target instead.")
        data = repo.read_blob(entry.oid)
        engine.artifacts.check_size(name, len(data))
        at, whole = _changed_at(repo, f"{ARTIFACTS}/{path}", entry)
    stale = now - at > timedelta(hours=section.max_age_hours)
    return Linked(
        name=name, data=data, at=at, stale=stale, note=_note(section, now, at, stale=stale, whole=whole)
    )


def names(config: Config) -> tuple[str, ...]:
    """Return the declared links as path prefixes."""
    return tuple(f"{section.name}{SEPARATOR}" for section in config.links)


@contextlib.contextmanager
def _opened(engine: Engine, section: LinkSection) -> Iterator[GitRepository]:
    """Open the repository of the other workspace, read-only."""
    root = (engine.root / section.path).resolve()
    broken = LinkBroken(
        f"The link {section.name!r} leads to {root}, which is not a workspace; fix `links` in "
        "agentx.toml, or mount it."
    )
    if not nofollow.is_file(root / LIVE):
        raise broken
    layout.check(root)
    try:
        repo = GitRepository(root)
    except NotARepository as error:
        raise broken from error
    try:
        yield repo
    finally:
        repo.close()


def _shares(section: LinkSection, path: str) -> bool:
    return globs.spec(section.paths).match_file(path)


def _listed(repo: GitRepository, tree: str, section: LinkSection) -> str:
    files = (path for path, _ in repo.files(repo.subtree(tree, ARTIFACTS)))
    shared = list(islice((path for path in files if _shares(section, path)), MOST_NAMED + 1))
    if not shared:
        return "It shares no file yet."
    more = ", …" if len(shared) > MOST_NAMED else ""
    return f"It shares: {', '.join(section.name + SEPARATOR + path for path in shared[:MOST_NAMED])}{more}."


def _changed_at(repo: GitRepository, path: str, entry: TreeEntry) -> tuple[datetime, bool]:
    """Return when a file last changed, and whether that is certain: only part of the history is searched."""
    at, whole = 0, True
    for number, commit in enumerate(repo.log()):
        if number == MOST_COMMITS:
            whole = False
            break
        if repo.entry(commit.tree, path) != entry:
            break
        at = commit.at
    return datetime.fromtimestamp(at, tz=UTC), whole


def _note(section: LinkSection, now: datetime, at: datetime, *, stale: bool, whole: bool) -> str:
    hours = (now - at).total_seconds() / 3600
    ago = f"{hours:.0f} hours" if hours >= 1.5 else f"{hours * 60:.0f} minutes"  # noqa: PLR2004
    changed = f"last changed {'' if whole else 'more than '}{ago} ago ({at:%Y-%m-%d %H:%M} UTC)"
    if stale:
        limit = f"{section.max_age_hours:g} hours"
        return (
            f"Stale: {changed}, and the link {section.name!r} allows {limit}. "
            "What it says may no longer hold; say so where you use it."
        )
    return f"From the workspace that {section.name!r} links to, {changed}."
