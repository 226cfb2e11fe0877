"""Creates and opens a workspace: its files on disk, and its parts wired together."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentx.config import FILE as CONFIG_FILE
from agentx.config import Config, read_config, tightened
from agentx.core import layout
from agentx.core.cache_dir import CACHE, make_cache
from agentx.core.event_bus import Bus
from agentx.core.layout import ARTIFACTS, FORMAT, NotAWorkspace, artifacts_root, is_workspace
from agentx.engine.engine import Engine
from agentx.engine.synthesizer import Synthesizer
from agentx.memory.maintenance import Nightly
from agentx.quality.commands import detect_commands
from agentx.recording.write_path import WritePath
from agentx.search.indexer import Indexer
from agentx.settings import Settings
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError, DiskRefused, UsageError
from agentx.storage.events.types import EventsPurged
from agentx.storage.files import nofollow
from agentx.storage.git.branch import RefLocked
from agentx.storage.git.exchange import clones
from agentx.storage.git.index_file import GitIsBusy
from agentx.storage.git.repository import GitRepository
from agentx.storage.index.lance import open_index
from agentx.storage.index.port import MemoryIndex
from agentx.storage.log.history import LIVE, told_already
from agentx.synthesis.attribution.copies import Heard
from agentx.synthesis.checks.hot_issue_extractor import HotIssues
from agentx.synthesis.cognition.cognition_extractor import Cognition
from agentx.synthesis.demands.demand_extractor import DemandExtractor, Lapse
from agentx.synthesis.directing.direction import Direction
from agentx.synthesis.embedding.choose import open_embedder
from agentx.synthesis.embedding.port import Embedder, ModelUnavailable
from agentx.synthesis.learning.grading import Grading
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.model.litellm_client import embed_texts
from agentx.synthesis.pipelines.running.learned import Learned
from agentx.synthesis.scribe.notes import NoteTaker
from agentx.synthesis.scribe.sessions import Sessions
from agentx.trust.caches import claim, readable
from agentx.trust.trust import Restricted, Trust, restricted

if TYPE_CHECKING:
    from agentx.synthesis.state.extractor import Extractor

WRITTEN = (".git", ".git/objects", ".git/refs/heads", LIVE)
"""Where every event and its commit are written, besides the workspace's directory itself."""

_CONFIG = """\
# Settings of this workspace; `agentx config` shows every setting.
[workspace]
artifacts = {artifacts}
"""


class NotEmpty(UsageError):
    """A workspace cannot be created in a directory that is not empty."""


def write_layout(root: Path, artifacts: str, project: Path | None = None) -> Path:
    """Create the files of a new workspace.

    Args:
        root: Its directory, empty or missing.
        artifacts: Where to put the artifacts.
        project: The project that it starts from; its test, lint and build commands are suggested in
            ``agentx.toml``.

    Returns:
        Directory of the artifacts.

    Raises:
        NotEmpty: The directory is not empty.
        UsageError: ``artifacts`` cannot be used.
    """
    if is_workspace(root):
        raise NotEmpty(f"{root} is already a workspace. Open it, or choose another directory.")
    if nofollow.exists(root) and (not nofollow.is_directory(root) or nofollow.names(root)):
        raise NotEmpty(
            f"{root} is not empty. Choose a new directory, and import files with `agentx init --from DIR` "
            "or `agentx add`."
        )
    place = artifacts_root(root, artifacts)
    nofollow.make_directory(root, parents=True)
    GitRepository.init(root).close()
    nofollow.make_directory(place, parents=True)
    commands = detect_commands(project or place)
    checks = "".join(f"\n[checks.{kind}]\ncommand = {json.dumps(line)}\n" for kind, line in commands.items())
    nofollow.write(root / CONFIG_FILE, (_CONFIG.format(artifacts=json.dumps(artifacts)) + checks).encode())
    nofollow.touch(root / LIVE)
    return place


def open_engine(root: Path, settings: Settings, *, new: bool = False) -> Engine:
    """Open a workspace: fold its history, finish what a crash interrupted, conclude from new facts.

    Args:
        root: Its directory.
        settings: The settings from the environment.
        new: Whether this process has just created it.

    Raises:
        NotAWorkspace: The directory is not a workspace.
        ConfigInvalid: ``agentx.toml`` cannot be read.
    """
    if not is_workspace(root):
        raise NotAWorkspace(f"{root} is not a workspace. Create one with `agentx init {root}`.")
    layout.check(root)
    config = read_config(root)
    place = artifacts_root(root, config.workspace.artifacts)
    if place != root / ARTIFACTS and clones.is_fresh(root):
        raise UsageError(
            f"{root} is a clone of a workspace that belongs to a project directory, which is missing "
            f'here. Its files are in {ARTIFACTS}/: set `artifacts = "{ARTIFACTS}"` in {CONFIG_FILE}, '
            "and open it again."
        )
    if clones.is_fresh(root):
        _check_clone(root)
    trust = Trust(root, place, config, settings)
    why = "" if new else trust.why_restricted()
    if why:
        before = trust.last_trusted()
        config = tightened(config, json.loads(before.fields.get("tools.approve", "[]")) if before else ())
    abroad = why if place != root / ARTIFACTS else ""
    # otherwise a scan would record and commit the surroundings of a workspace that somebody else made
    if abroad:
        place = root / ARTIFACTS
    bus = Bus()
    artifacts = Artifacts(place, config.limits.max_file_bytes, skip=(root,), stamps=root / CACHE / "stamps")
    outer = place != root / ARTIFACTS
    write_path = _open_write_path(root, settings, artifacts, bus, outer=outer, abroad=abroad)
    # Lapsed items are set aside before a message is read, because the message may bring them back. Notes are
    # taken last, from what the other extractors made of the same fact.

    def heard_so_far() -> Heard:
        return engine.heard.at(write_path.log.state)

    def hear_ahead() -> None:
        engine.heard.read_ahead(write_path.log.copy_state())

    notes = (
        NoteTaker(heard_so_far, hear_ahead, capture_assistant=config.scribe.capture_assistant),
    ) * config.scribe.auto_capture
    distils = config.scribe.auto_capture and config.scribe.session_strategy == "memory"
    sessions = (Sessions(lambda after: write_path.log.history.read(after, told_already)),) * distils
    extractors: tuple[Extractor, ...] = (
        Lapse(config.memory.lapse_days),
        DemandExtractor(heard_so_far, hear_ahead),
        HotIssues(),
        *notes,
        *sessions,
        Grading(),
        Direction(),
        Cognition(),
        Learned(),
    )
    synthesizer = Synthesizer(write_path, extractors, settings=config.model_dump_json())
    indexer = Indexer(
        write_path,
        root / CACHE / "index",
        open_index=lambda: _open_index(root, write_path),
        open_embedder=lambda: _open_embedder(config, settings, trust),
    )
    bus.subscribe(EventsPurged.__name__, lambda _event: indexer.start_over())
    engine = Engine(root, config, settings, trust, bus, write_path, synthesizer, indexer)
    if not write_path.read_only:
        synthesizer.catch_up()
    if config.memory.maintain == "nightly":
        Nightly(engine)
    return engine


def _open_write_path(
    root: Path, settings: Settings, artifacts: Artifacts, bus: Bus, *, outer: bool, abroad: str
) -> WritePath:
    """Open the write path; read-only if the disk refuses what opening has to write.

    Args:
        root: The workspace's directory.
        settings: The settings from the environment.
        artifacts: The working files.
        bus: Receives each event.
        outer: Whether the artifacts lie outside the working directory.
        abroad: Why artifacts that lie outside may not be recorded; empty if that does not matter.
    """
    codec = record_codec()
    why = why_refused(root)
    if not why:
        write_path: WritePath | None = None
        try:
            claim(root, settings.state_dir)
            clones.set_up(root)
            write_path = WritePath(root, codec, artifacts, bus, outer=outer)
            write_path.load()
            if not _only_reads(write_path, abroad):
                write_path.recover()
        except (DiskRefused, GitIsBusy, RefLocked) as error:
            why = str(error)
        except OSError as error:
            if isinstance(error, AgentXError):
                raise
            why = f"{error.filename or root}: {error.strerror}."
        else:
            return write_path
        if write_path is not None:
            write_path.close()
    cache = readable(root, settings.state_dir)
    reason = f"{root} is open read-only. {why}"
    write_path = WritePath(root, codec, artifacts, bus, outer=outer, cache=cache, read_only=reason)
    write_path.load()
    return write_path


def why_refused(root: Path) -> str:
    """Return why the disk refuses writes; empty if it accepts them, as far as can be checked beforehand."""
    for path in (root, *(root / name for name in WRITTEN)):
        if not nofollow.exists(path) or nofollow.may_write(path):
            continue
        copy = "To record changes, copy the whole directory to a writable place (`cp -a`), and work there."
        if nofollow.is_on_read_only_media(path if nofollow.is_directory(path) else path.parent):
            return f"The file system of {path} is read-only. {copy}"
        return f"You do not have permission to write {path}. {copy}"
    return ""


def _only_reads(write_path: WritePath, abroad: str) -> bool:
    """Return whether the workspace is read-only because of its content, although the disk is writable."""
    root, found = write_path.root, write_path.log.state.format
    if found > FORMAT:
        write_path.make_read_only(
            f"{root} was written by a newer version (format {found}; this one knows {FORMAT}), so it is "
            "open read-only. Upgrade with `pip install --upgrade agentx-workspace`."
        )
    elif abroad:
        outside = f"{root} is open read-only: its files are outside the workspace"
        write_path.make_read_only(str(Restricted(outside, restricted(abroad))))
    return bool(write_path.read_only)


def _check_clone(root: Path) -> None:
    """Refuse a clone whose commit has links in place of the engine's own files."""
    repo = GitRepository(root)
    try:
        if repo.head:
            layout.check_commit(repo, repo.head)
    finally:
        repo.close()


def _open_index(root: Path, write_path: WritePath) -> MemoryIndex:
    make_cache(root)  # it may have been deleted meanwhile
    index, note = open_index(root / CACHE / "index")
    if note:
        write_path.notes.append(note)
    return index


def _open_embedder(config: Config, settings: Settings, trust: Trust) -> tuple[Embedder | None, str]:
    def hosted(model: str) -> "HostedCall":
        trust.require("embeddings.model")
        return HostedCall(model, settings.api_base, settings.api_key, trust)

    try:
        embedder = open_embedder(config.embeddings.model, settings.cache_dir, hosted)
    except (ModelUnavailable, Restricted) as error:
        return None, str(error)
    return (
        embedder,
        "" if embedder else "Embeddings are off (`embeddings.model` is none), so search is lexical.",
    )


class HostedCall(msgspec.Struct, frozen=True):
    """Requests embeddings from a hosted model."""

    model: str
    api_base: str
    api_key: str
    trust: Trust

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text, in order.

        Raises:
            ModelUnavailable: The workspace is no longer trusted.
        """
        try:
            self.trust.require("embeddings.model")
        except Restricted as error:
            raise ModelUnavailable(str(error)) from error
        return embed_texts(self.model, texts, api_base=self.api_base or None, api_key=self.api_key or None)
