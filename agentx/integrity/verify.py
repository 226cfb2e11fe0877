"""``agentx verify``: check the integrity of everything that a workspace keeps; read-only.

The latest commit is looked up first and the log is read afterwards, so the log holds at least what the commit
holds, even while others write. A working file that differs is compared again under the lock, which is held
for that alone. The log, the commits and the fold are streamed: memory grows with the number of files, not
with the length of the history.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agentx.config import FILE as CONFIG_FILE
from agentx.config import ConfigInvalid, read_config
from agentx.core import layout
from agentx.core.cache_dir import CACHE
from agentx.core.findings import Finding
from agentx.core.layout import ARTIFACTS
from agentx.integrity.check_commits import CommitChain, Logged
from agentx.integrity.check_index import look_at_index
from agentx.integrity.check_log import LogLook
from agentx.storage.artifacts import Artifacts
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.ignore import IgnoreRules
from agentx.storage.files.lock import FileLock
from agentx.storage.git.checked_reader import ObjectReader, TreeEntry
from agentx.storage.git.checking import find_faults
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.recovery.git_repair import read_ref
from agentx.storage.log.history import History
from agentx.storage.log.snapshots import Snapshots
from agentx.storage.progress import Progress
from agentx.synthesis.memory.record_codec import record_codec
from agentx.synthesis.state.state import FOLD_VERSION, State


class IntegrityCheck(msgspec.Struct, frozen=True):
    """One integrity check.

    Attributes:
        name: Its name, one word.
        what: What was checked, with counts; or why it was not.
        findings: Number of findings.
        duration_ms: Its duration, in milliseconds.
    """

    name: str
    what: str
    findings: int
    duration_ms: int


class Purge(msgspec.Struct, frozen=True):
    """An event whose content was purged."""

    seq: int
    type: str


class Verified(msgspec.Struct, frozen=True):
    """The result of an integrity check.

    Attributes:
        head: Latest commit at the start.
        seq: Last event of the log.
        checks: The checks, in order.
        findings: Everything that is wrong.
        purged: Events whose content was purged; the hash chain still includes them.
        notes: What was skipped, and why.
    """

    head: str
    seq: int
    checks: tuple[IntegrityCheck, ...]
    findings: tuple[Finding, ...]
    purged: tuple[Purge, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def verify(
    root: Path, *, since: str = "", states: Sequence[State] = (), progress: Progress | None = None
) -> Verified:
    """Check the integrity of a workspace; works without opening it.

    Args:
        root: Its directory.
        since: ID of a commit: only what came after it is checked, and the hash at the end of its log is
            trusted.
        states: States in use, to compare with a fold from zero.
        progress: Receives progress.

    Raises:
        NotAWorkspace: The directory is not a workspace.
        UsageError: ``since`` does not name a commit of the history.
    """
    if not layout.is_workspace(root):
        raise layout.NotAWorkspace(f"{root} is not a workspace. Create one with `agentx init {root}`.")
    layout.check(root)
    return _Verification(root, progress or (lambda *_: None)).run(since, states)


class _Verification:
    def __init__(self, root: Path, progress: Progress) -> None:
        self._root = root
        self._git_dir = root / ".git"
        self._progress = progress
        self._codec = record_codec()
        self._reader = ObjectReader(self._git_dir)
        self._head = read_ref(self._git_dir)
        self._findings: list[Finding] = []
        self._checks: list[IntegrityCheck] = []
        self._notes: list[str] = []

    def run(self, since: str, states: Sequence[State]) -> Verified:
        damaged: set[str] = set()
        found = self._findings.append
        self._check("objects", lambda: self._look_at_objects(damaged))
        chain = CommitChain(self._reader, self._codec, found, damaged)
        # Where to begin, and the end of the latest commit's log
        start, end = Logged(), chain.last_logged(self._head) if self._head else Logged()
        if self._head and since:
            start = chain.logged(self._reader.commit(chain.find(self._head, since)))
        self._check("commits", lambda: chain.check(self._head, start.commit, self._progress))
        self._notes += chain.notes
        # The state that the next open begins with is compared too
        version, folder = f"{FOLD_VERSION}-{self._codec.fingerprint}", self._root / CACHE / "snapshots"
        snapshots = Snapshots(folder, History(self._root, self._codec), version, sealed=True)
        if snapshot := snapshots.load(State.decode):
            states = [*states, snapshot[0]]
        log = LogLook(self._root, self._reader, self._codec, found, chain.purged_changes)
        self._check("history", lambda: log.run(start, end, states, self._progress))
        self._check("artifacts", lambda: self._look_at_artifacts(log, end))
        self._check("state", log.check_states)
        index = (self._root, self._codec, self._reader, found, self._progress)
        self._check("index", lambda: look_at_index(*index))
        purged = tuple(Purge(seq, kind) for seq, kind in log.purged)
        return Verified(
            self._head, log.seq, tuple(self._checks), tuple(self._findings), purged, tuple(self._notes)
        )

    def _check(self, name: str, look: Callable[[], str]) -> None:
        """Run a check, which returns what it checked in a sentence."""
        began, before = time.monotonic(), len(self._findings)
        what = look()
        spent = round((time.monotonic() - began) * 1_000)
        self._checks.append(IntegrityCheck(name, what, len(self._findings) - before, spent))

    def _look_at_objects(self, damaged: set[str]) -> str:
        count = 0

        def told(done: int, total: int) -> None:
            nonlocal count
            count = total
            self._progress("Checking Git objects", done, total)

        for fault in find_faults(self._git_dir, told):
            self._findings.append(Finding("objects", f".git/{fault.path}", fault.what))
            damaged.add(fault.oid)
        return f"{count:,} files of objects and packs, refs and index"

    # --- artifacts ------------------------------------------------------------------------------------------

    def _look_at_artifacts(self, log: LogLook, end: Logged) -> str:
        self._look_at_settings(end.tree)
        expected = log.files
        if log.damaged:
            self._notes.append("The history is damaged, so the artifacts were compared only with the commit.")
            with contextlib.suppress(ObjectDamaged):
                expected = log.files_of(end.tree)
        differing = self._differing(expected)
        if differing:
            # Once more while nobody writes, with what was recorded meanwhile
            lock = FileLock(self._git_dir / "agentx.lock", brief=True)
            with contextlib.ExitStack() as held:
                with contextlib.suppress(OSError):  # in a read-only directory nobody else writes
                    held.enter_context(lock.hold())
                log.go_on(History(self._root, self._codec).read(log.seq, lambda _damage: None), expected)
                now = self._artifacts()
                again = {path: self._differs(now, path, expected.get(path)) for path in differing}
            differing = {path: what for path, what in again.items() if what}
        for path, what in differing.items():
            self._findings.append(Finding("artifacts", f"{ARTIFACTS}/{path}", what, _EDITED))
        return f"{len(expected):,} file{'s' * (len(expected) != 1)}"

    def _look_at_settings(self, tree: str) -> None:
        """Tell if the settings of the latest commit are gone: without a word every setting is the default."""
        if not tree or nofollow.exists(self._root / CONFIG_FILE):
            return
        with contextlib.suppress(ObjectDamaged):  # which has a finding of its own
            if self._reader.entry(tree, CONFIG_FILE):
                what = "is missing, so every setting is the default"
                self._findings.append(Finding("artifacts", CONFIG_FILE, what, _RESTORE))

    def _artifacts(self) -> Artifacts:
        config = read_config(self._root)
        place = layout.artifacts_root(self._root, config.workspace.artifacts)
        return Artifacts(place, config.limits.max_file_bytes, skip=(self._root,))

    def _differing(self, expected: dict[str, TreeEntry]) -> dict[str, str]:
        """Return the working files that differ from the record, and how."""
        found: dict[str, str] = {}
        try:
            artifacts = self._artifacts()
        except (ConfigInvalid, UsageError) as error:
            self._findings.append(Finding("artifacts", CONFIG_FILE, f"cannot be used: {error}", _BY_HAND))
            return found
        for number, path in enumerate(sorted(expected), start=1):
            self._progress("Comparing files", number, len(expected))
            if what := self._differs(artifacts, path, expected[path]):
                found[path] = what
        rules = IgnoreRules(artifacts.root)
        for path, _ in artifacts.walk(lambda name, directory: rules.ignores(name, directory=directory)):
            if path not in expected:
                found[path] = _UNRECORDED
        return found

    def _differs(self, artifacts: Artifacts, path: str, wanted: TreeEntry | None) -> str:
        try:
            now = artifacts.identify(path)
        except (AgentXError, OSError) as error:
            self._notes.append(str(error))
            return ""
        if now == wanted:
            return ""
        if now is None:
            return "is missing"
        return _UNRECORDED if wanted is None else "differs from the recorded version"


_UNRECORDED = "is not recorded"
_RESTORE = "`git checkout -- agentx.toml` restores it; `git rm agentx.toml` and a commit accept it."
_BY_HAND = "Fix it by hand; `git log -p agentx.toml` shows earlier versions."
_EDITED = (
    "If this is your edit, `agentx status` records it; if not, `agentx restore` restores the "
    "recorded version."
)
