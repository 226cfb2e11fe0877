"""Whether the log is sound, and its restoration from the commits if it is not.

While the log is damaged, nothing in the workspace is changed.
"""

import logging
from pathlib import Path

from agentx.core.cache_dir import CACHE, make_cache
from agentx.recording import heal_log, recovery
from agentx.recording.committer import Committer
from agentx.recording.recorded_log import RecordedLog
from agentx.storage.events.codec import Codec
from agentx.storage.files import nofollow
from agentx.storage.git.recovery.git_repair import Aside
from agentx.storage.log.history import LIVE, HistoryDamaged, count_segments, segment_number

_LOG = logging.getLogger("agentx.recording.log_health")


class LogHealth:
    """Detects damage of one log, reports it once, and restores the log from the commits.

    Args:
        root: The workspace's directory.
        codec: Knows the event types.
        log: The log.
        git: The commits.
        notes: Receives the messages for the user.

    Attributes:
        unsound: Why the log must be restored before anything is recorded; empty if it is sound.
    """

    def __init__(self, root: Path, codec: Codec, log: RecordedLog, git: Committer, notes: list[str]) -> None:
        self.unsound = ""
        self._root = root
        self._codec = codec
        self._log = log
        self._git = git
        self._notes = notes
        self._reported: object = None

    def check(self, *, restore: bool) -> None:
        """Check the whole log, after it was folded.

        Args:
            restore: Whether it may be restored if the user's Git set it back.

        Raises:
            HistoryDamaged: The restored log is still damaged.
        """
        self.unsound = self._why_unsound()
        if not self.unsound:
            return
        # The user's Git commands may have restored an older log that is intact; that is not damage.
        git = self._git
        if (
            restore
            and not self._log.damage
            and (git.anchor or recovery.last_recorded(git.repo, git.head).foreign)
        ):
            self.restore()
        else:
            self._report()

    def _why_unsound(self) -> str:
        for found in self._log.damage:
            if found.missing or found.path == LIVE:
                return f"{found.path}, line {found.line}: {found.reason}"
        if why := self.why_taken_out():
            return why
        try:
            segments = count_segments(self._root)
            self._git.log_check.files(self._log.state.seq, segments, self._git.seq, whole=True)
        except HistoryDamaged as error:
            return str(error)
        return ""

    def why_taken_out(self) -> str:
        """Name a file that a user's commit removed from the log; empty if none is missing."""
        return "".join(f"{path} is missing" for path in self._git.lost_files[:1])

    def notice(self, why: str) -> None:
        """Report damage that happened while this process was open."""
        self.unsound = why
        self._report()
        _LOG.warning("%s: %s", self._root, self._notes[-1])

    def _report(self) -> None:
        note = (
            f"The history is damaged: {self.unsound.removesuffix('.')}. Changes are blocked until it is "
            "restored: by `agentx repair`, or from the commits before the next write."
        )
        self._reported = self.stamp()
        if note not in self._notes:
            self._notes.append(note)

    @property
    def may_be_healed(self) -> bool:
        """Whether the log has changed since its damage was reported."""
        return self.stamp() != self._reported

    def stamp(self) -> object:
        """Return a value that changes whenever somebody appended to the log or restored it."""
        try:
            info = nofollow.status(self._root / LIVE)
        except FileNotFoundError:
            return self._git.repo.head
        return (
            self._git.repo.head, count_segments(self._root), info.st_ino, info.st_size, info.st_mtime_ns,
        )  # fmt: skip

    def refuse_damaged(self) -> None:
        """Refuse to hand on a damaged log, or to replace it with another one.

        Raises:
            HistoryDamaged: The log is damaged.
        """
        if self.unsound:
            why = self.unsound.removesuffix(".")
            raise HistoryDamaged(
                f"The history in {self._root} is damaged: {why}. Run `agentx repair`, then try again."
            )

    def restore(self) -> None:
        """Restore the log from the commits and from memory, verified by its hash chain, and fold it again.

        Raises:
            HistoryDamaged: Nothing holds the damaged part.
        """
        log, git = self._log, self._git
        begin, known = git.anchor or git.head, log.writer.known
        rebuilt = heal_log.rebuild(self._root, self._codec, head=begin, known=known, through=log.state.seq)
        heal_log.require_whole(self._root, rebuilt)
        make_cache(self._root)
        mended = list(heal_log.put_in_place(self._root, rebuilt, Aside(self._root)))
        for path in rebuilt.files:
            if segment_number(path):
                git.include(path)  # an earlier version may have committed it damaged
        log.fold_from_zero()
        self.unsound = self._why_unsound()
        if self.unsound:
            raise HistoryDamaged(
                f"The history in {self._root} could not be restored: {self.unsound} Run `agentx repair`."
            )
        restored = "; ".join(f"{file.what} {file.how}" for file in mended)
        self._notes.append(
            f"The history was damaged or reset to an older version: {restored}. The previous files are kept "
            f"in {CACHE}/repaired."
        )
