"""A workspace: the public interface, for users and for programs that embed it."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentx import factory
from agentx.config import FILE as CONFIG_FILE
from agentx.config import Config
from agentx.context import service, startup
from agentx.context.assembler import Context
from agentx.core import layout
from agentx.core.layout import ARTIFACTS
from agentx.engine import models, moment_parser
from agentx.engine.followed import Upstreams
from agentx.history import bisect, diff, event_stream, undo_restore
from agentx.history import status as standing
from agentx.history.bisect import Trace
from agentx.history.diff import Difference
from agentx.history.status import Rebuilt, WorkspaceStatus
from agentx.integrity import repair, verify
from agentx.integrity.purge import purge as purging
from agentx.integrity.purge.purge import PurgePlan, PurgeReport
from agentx.integrity.repair import Repaired
from agentx.integrity.verify import Verified
from agentx.memory import check_writing, editing, maintenance, settling
from agentx.memory.backtest import Backtested, backtest
from agentx.memory.check_writing import WrittenChecks
from agentx.memory.flows import Flows
from agentx.memory.note_taking import Scribe
from agentx.memory.settling import Settlement, Unsettled
from agentx.policy import approvals, hook_checks
from agentx.policy.approval_view import require_shown
from agentx.recording.file_watcher import Watcher
from agentx.recording.idle_committer import Keeper
from agentx.rule_files.exporting import Exported, export
from agentx.rule_files.importing import ImportedRules, import_rules
from agentx.rule_files.kept import KeptRules
from agentx.settings import Settings, read_settings
from agentx.storage.errors import UsageError
from agentx.storage.events.types import (
    ApprovalDecided,
    Body,
    Draft,
    Event,
    FileChange,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.storage.files import nofollow
from agentx.storage.files.paths import check_folder, check_path
from agentx.storage.index.port import Filter, SearchKind
from agentx.storage.progress import Progress
from agentx.storage.secrets.redaction import clean
from agentx.storage.text import one_line
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.synthesis.judgement.settling import SettleVerdict
from agentx.synthesis.memory.checks import Check
from agentx.synthesis.memory.items import FormerKind, Kind, MemoryItem, Scope, Status
from agentx.synthesis.model.port import ModelClient
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.state.state import State
from agentx.tools.capabilities import Capabilities
from agentx.tools.toolbox import Toolbox
from agentx.transfer import fork, importing, push_pull
from agentx.transfer.external_sources import SourceReport, Sources
from agentx.transfer.push_pull import Exchanged
from agentx.trust.trust import set_value
from agentx.trust.trusted_items import in_state

TITLE_CHARACTERS = 200
"""Maximum length of a title; a longer one is cut."""

ASKED_CHARACTERS = 100
"""Maximum length of how the user was asked; the rest is cut."""


class Workspace:
    """One open workspace. Use :meth:`create` or :meth:`open`.

    Attributes:
        root: Its directory.
        artifacts: Directory of the artifacts.
        config: The settings from ``agentx.toml``.
        flows: Procedures and how well they work.
        gates: What is checked before each action and recorded about each task after it.
        capabilities: Tools and credentials, and whether they work.
        scribe: Takes notes of events; use it to see the backlog or to process it.
        tools: The tools of an agent; from Python they return typed results and raise our errors.
        engine: The internal parts, for code that extends AgentX.

    >>> import tempfile
    >>> with Workspace.create(tempfile.mkdtemp() + "/report", title="Report") as ws:
    ...     _ = ws.tools.write_file("report.md", "# Outlook")
    ...     ws.tools.read_file("report.md").text
    '# Outlook'
    """

    def __init__(self, root: Path, settings: Settings, *, new: bool = False) -> None:
        self.settings = settings
        self.engine = factory.open_engine(root, settings, new=new)
        self.root = root
        self.artifacts = self.engine.artifacts.root
        self.flows = Flows(self.engine)
        self.scribe = Scribe(self.engine)
        self.capabilities = Capabilities(self.engine)
        self.tools = Toolbox(self.engine)
        self.gates = self.tools.gates
        if self.engine.config.export.keep:
            KeptRules(self.engine)
        self._keeper = Keeper(self.engine.write_path)
        self._closed = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        title: str = "",
        from_dir: str | Path | None = None,
        artifacts: str = ARTIFACTS,
        settings: Settings | None = None,
    ) -> Self:
        """Create a new workspace and open it.

        Args:
            path: A directory that is empty or does not exist.
            title: Title of the task, in one line; the directory's name by default.
            from_dir: An existing project whose files become the artifacts, except those that its
                ``.gitignore`` excludes.
            artifacts: ``artifacts``, or ``..`` to place the workspace beside an existing project, whose own
                repository is never written.
            settings: Overrides settings read from the environment.

        Raises:
            NotEmpty: The directory is not empty.
            UsageError: ``from_dir`` does not exist, or ``artifacts`` cannot be used.
        """
        settings = settings or read_settings()
        root = nofollow.canonical(path)
        if from_dir is not None and not Path(from_dir).is_dir():
            raise UsageError(f"The directory {from_dir} does not exist.")
        factory.write_layout(root, artifacts, Path(from_dir) if from_dir is not None else None)
        ws = cls(root, settings, new=True)
        title = clean(" ".join((title or root.name).split()))[:TITLE_CHARACTERS]
        created = WorkspaceCreated(title=title, format=layout.FORMAT, artifacts=artifacts)
        ws.record(Draft(data=created, actor=settings.actor))
        if note := ws.engine.trust.created():
            ws.engine.write_path.notes.append(note)
        ws.engine.git.include(CONFIG_FILE)
        ws.engine.write_path.commit()
        if from_dir is not None:
            ws.import_project(Path(from_dir))
        elif artifacts != ARTIFACTS:
            ws.engine.edits.scan(noticed="import")
        ws.flush()
        return ws

    @classmethod
    def open(cls, path: str | Path, *, settings: Settings | None = None) -> Self:
        """Open the workspace in a directory.

        Raises:
            NotAWorkspace: No workspace was found; :meth:`find` also searches the directories above.
            ConfigInvalid: ``agentx.toml`` cannot be read.
        """
        return cls(nofollow.canonical(path), settings or read_settings())

    @classmethod
    def find(cls, start: str | Path = ".", *, settings: Settings | None = None) -> Self:
        """Open the workspace at or above a directory.

        Raises:
            NotAWorkspace: No workspace was found.
        """
        return cls.open(layout.find_root(Path(start)), settings=settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commit what is pending, release Git's index lock and all files; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._keeper.stop()
        try:
            self.engine.indexer.close()
            self.engine.meanings.close()
            # Nothing is written into a directory that was deleted, or into another one in its place
            if self.engine.write_path.held.is_there:
                if not self.engine.write_path.read_only:
                    self.engine.synthesizer.advance_watermark()
                self.flush()
        finally:
            self.engine.synthesizer.close()
            self.engine.write_path.close()

    @property
    def restricted(self) -> str:
        """Why nothing that the workspace brings along runs, is called or read outside; empty if trusted."""
        return self.engine.trust.why_restricted()

    def trust(self, *, commands: bool = False) -> None:
        """Trust the workspace's current settings, schedules and capabilities, from the next open on.

        Args:
            commands: Allow ``run_command`` where nothing isolates it: such a command can read your keys and
                act as you.

        Raises:
            StoreUnusable: It cannot be recorded in your state directory, or this process was started by an
                agent's run.
        """
        self.engine.trust.grant("trusted", in_state(self.state), commands=commands)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The content of ``agentx.toml`` when the workspace was opened."""
        return self.engine.config

    @property
    def state(self) -> State:
        """A copy of the state after everything that any process recorded."""
        return self.engine.snapshot()

    @property
    def told(self) -> State:
        """The state as agents are shown it: with the rules of followed workspaces."""
        return self.engine.told(self.engine.snapshot())

    def memory(
        self,
        kind: Kind | FormerKind | None = None,
        *,
        status: Status | None = "active",
        as_of: int | str | None = None,
    ) -> list[MemoryItem]:
        """List memory items, oldest first; those of followed workspaces, ``NAME:ID``, before the own ones.

        Args:
            kind: Only of this kind; a kind of format 1, such as ``learning``, selects its sort.
            status: Only with this status; ``None`` for all.
            as_of: As it was at a moment; see :meth:`moment`.

        Raises:
            UsageError: The kind, status or moment does not exist.
        """
        followed = self.engine.following.current() if as_of is None else Upstreams()
        state = self.state if as_of is None else self.state_at(as_of)
        return editing.listed(followed.merged(state).state, kind, status)

    def status(self) -> WorkspaceStatus:
        """Return the status of the workspace, after recording the user's edits."""
        return standing.status(self.engine)

    def events(
        self, after: int = 0, *, follow: bool = False, timeout_s: float | None = None
    ) -> Iterator[Event]:
        """Yield the events after a seq, in order, each once, whichever process wrote them.

        Args:
            after: Begin after this event.
            follow: Continue with future events.
            timeout_s: With ``follow``: end after this time without a new event; ``None`` waits forever.
        """
        return event_stream.events(self.engine.log, after, follow=follow, timeout_s=timeout_s)

    def on(self, name: str, receiver: Callable[[Any], object]) -> Callable[[], None]:
        """Subscribe ``receiver`` to a name from now on: an event type, ``MemoryChanged`` or ``*``.

        Events of other processes are included, in the order of the history. An exception in a receiver stops
        nothing.

        Returns:
            A function that unsubscribes it.
        """
        return self.engine.bus.subscribe(name, receiver)

    # --- acting -----------------------------------------------------------------------------------

    def say(
        self, text: str, *, actor: str = "", schedule: str = "", key: str = "", task: bool = False
    ) -> Event:
        """Send a message to the agents; on return it is recorded and its demands are concluded.

        Args:
            text: The message.
            actor: Who says it; by default the user of the settings.
            schedule: Id of the directed schedule whose task it is; it concerns no other schedule.
            key: Makes it idempotent: a second message with the same key is not recorded.
            task: Whether it is the task of a run. Its repetition is the same work again, not a demand that is
                repeated.

        Raises:
            UsageError: The text is empty.
        """
        if not text.strip():
            raise UsageError("The message is empty.")
        (event,) = self.record(
            Draft(
                data=UserMessageSent(body=self.body(text), schedule=schedule, task=task),
                actor=actor or self.settings.actor,
                key=key,
            )
        )
        return event

    def record(self, *drafts: Draft) -> list[Event]:
        """Append events durably; for channels and agents that extend AgentX."""
        return self.engine.write_path.record(drafts)

    def body(self, text: str) -> Body:
        """Return a text in the form an event stores: redacted, and in a blob if it is long."""
        return self.engine.write_path.body(text)

    def read_body(self, body: Body) -> str:
        """Return the whole text of a body."""
        return self.engine.read_body(body)

    def approve(
        self, call_id: str, *, approved: bool = True, reason: str = "", asked: str = "", shown: str = ""
    ) -> Event:
        """Approve or deny a pending tool call.

        Args:
            call_id: The call.
            approved: Whether it may run.
            reason: The user's words.
            asked: How the user was asked, if another program asked.
            shown: Digest of the view that the user decided on; empty if nobody was shown one.

        Raises:
            UsageError: No such call is pending, or it is not what the user was shown.
            StoreUnusable: The approval cannot be recorded in your state directory.
        """
        with self.engine.write_path.exclusive():
            return self._approve(call_id, approved=approved, reason=reason, asked=asked, shown=shown)

    def _approve(self, call_id: str, *, approved: bool, reason: str, asked: str, shown: str) -> Event:
        waiting = self.state.pending.get(call_id)
        if waiting is None or not waiting.awaits_approval:
            names = [call.call_id for call in approvals.waiting(self.engine)]
            raise UsageError(
                f"No call {call_id!r} is waiting for approval. Waiting: {', '.join(names) or 'none'}."
            )
        if shown:
            require_shown(self.engine, waiting, shown)
        if approved:
            approvals.grant(self.engine, waiting)
        decided = ApprovalDecided(
            call_id=call_id, approved=approved, reason=reason, asked=one_line(clean(asked))[:ASKED_CHARACTERS]
        )
        (event,) = self.record(
            Draft(data=decided, actor=self.settings.actor, run=waiting.run, cause=waiting.seq)
        )
        if not approved:
            approvals.forget_arguments(self.root, waiting.call_id)
        return event

    def configure(self, name: str, value: str) -> Config:
        """Set one value in ``agentx.toml`` as its owner, so that a trusted workspace stays trusted.

        It takes effect at the next open.

        Args:
            name: Section and key, with a dot between.
            value: In TOML syntax; a bare word counts as a string.

        Raises:
            ConfigInvalid: The setting does not exist, or the value is not allowed.
        """
        return set_value(self.root, self.settings, name, value)

    def add(self, paths: Sequence[str | Path], to: str = "") -> tuple[list[FileChange], list[str]]:
        """Copy files and directories into the artifacts.

        Returns:
            What changed, and what was left out and why.

        Raises:
            UsageError: A path does not exist.
        """
        added = importing.add(self.engine, [Path(path) for path in paths], to, self.settings.actor)
        self.flush()
        return added

    def import_project(self, source: Path) -> list[str]:
        """Make the files of an existing project the artifacts; return what was left out and why."""
        return importing.import_project(self.engine, source, self.settings.actor)

    def import_rules(self, *files: str | Path) -> ImportedRules:
        """Propose what files of rules say (AGENTS.md, Cursor rules, …); nothing applies until accepted.

        Args:
            files: Files, and directories of them; by default the usual ones among the artifacts.

        Raises:
            RuleFileRefused: A file does not exist or cannot be read.
        """
        return import_rules(self.engine, [Path(file) for file in files], self.settings.actor)

    def export_rules(
        self, form: str, file: str | Path | None = None, *, max_tokens: int | None = None, check: bool = False
    ) -> Exported:
        """Write the active rules to a file for other agents, between markers.

        Args:
            form: ``agents-md``, ``claude-md`` or ``cursor-rules``.
            file: The file; by default the usual one among the artifacts.
            max_tokens: Budget; by default that of the settings.
            check: Change nothing; only report whether the file is up to date.

        Raises:
            UsageError: The form does not exist, the markers are broken, or the file cannot be used.
        """
        budget = self.config.export.max_tokens if max_tokens is None else max_tokens
        return export(self.engine, form, Path(file) if file else None, max_tokens=budget, check=check)

    def bulk(self) -> contextlib.AbstractContextManager[None]:
        """Batch writes into few commits, for imports; durability is unchanged."""
        return self.engine.write_path.bulk()

    def undo(self) -> Event:
        """Undo the latest change to artifacts, as a new event.

        Raises:
            NothingToUndo: Nothing is left to undo.
        """
        event = undo_restore.undo(self.engine, self.settings.actor)
        self.flush()
        return event

    def restore(self, path: str, at: int | str) -> Event:
        """Restore a file or directory (``"."`` for all) to its content at a moment, as a new event.

        Args:
            path: Relative to the artifacts. Files moved since are moved back.
            at: See :meth:`moment`.

        Raises:
            NoSuchMoment: The event does not exist, or nothing of that name.
            PathRefused: The path leads out of the artifacts.
        """
        event = undo_restore.restore(self.engine, check_folder(path), self.moment(at), self.settings.actor)
        self.flush()
        return event

    def fork(self, new: str | Path, at: int | str | None = None, *, progress: Progress | None = None) -> Self:
        """Create and open an independent workspace with the history up to a moment (by default, all of it).

        Raises:
            ForkRefused: Something exists at ``new``, or it is inside this workspace.
            NoSuchMoment: The moment does not exist.
        """
        root = fork.fork(self.engine, Path(new), at, progress)
        self.engine.trust.forked(root)
        return type(self).open(root, settings=self.settings)

    def push(self, remote: str = "", *, url: str = "", progress: Progress | None = None) -> Exchanged:
        """Push to a Git remote (``origin`` by default; give a new remote with its URL).

        Raises:
            HistoriesDiverged: The remote has events that this workspace does not have; nothing was changed.
            RemoteFailed: It cannot be reached.
        """
        return push_pull.push(self.engine, remote, url, progress)

    def pull(self, remote: str = "", *, url: str = "", progress: Progress | None = None) -> Exchanged:
        """Pull from a Git remote, after checking every event.

        Raises:
            HistoriesDiverged: This workspace has events that the remote does not have; nothing was changed.
            RemoteRefused: The remote's content is damaged or forged; nothing was taken over.
        """
        return push_pull.pull(self.engine, remote, url, progress)

    def plan_purge(self, *events: int, also: bool = False) -> PurgePlan:
        """Return what :meth:`purge` would do; nothing is purged."""
        return purging.plan(self.engine, events, also=also)

    def purge(
        self,
        *events: int,
        also: bool = False,
        reason: str = "",
        backup: str | Path | None = None,
        agreed: PurgePlan | None = None,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Remove events with every copy of them; this rewrites history.

        See :func:`agentx.integrity.purge.purge.purge`.

        Raises:
            PurgeRefused: It cannot be done; nothing was changed.
        """
        place = Path(backup) if backup else None
        return purging.purge(
            self.engine, events, also=also, reason=reason, backup=place, agreed=agreed, progress=progress
        )

    # --- memory by hand ---------------------------------------------------------------------------

    def remember(
        self,
        kind: Kind | FormerKind,
        text: str,
        *,
        scope: Scope | None = None,
        until: str = "",
        score: float = 5.0,
        checks: Sequence[Check] | None = None,
        asked: str = "",
    ) -> MemoryItem:
        """Add a memory item in the user's own words; its checks are compiled unless they are given.

        With ``asked``, the user agreed to these words when another program asked: it names which and how.
        """
        scope, actor = scope or Scope(), self.settings.actor
        return editing.add(
            self.engine,
            kind,
            text,
            scope=scope,
            until=until,
            score=score,
            actor=actor,
            checks=checks,
            reason=f"The user agreed, asked by {one_line(clean(asked))[:ASKED_CHARACTERS]}" if asked else "",
        )

    def edit_memory(self, item: str, text: str) -> MemoryItem:
        """Replace an item's text."""
        return editing.edit(self.engine, item, text, self.settings.actor)

    def write_checks(self, item: str, model: ModelClient | None = None) -> WrittenChecks:
        """Let a model write the checks of a rule that has none; they only observe until you set their mode.

        Args:
            item: The rule's ID.
            model: The model; the configured one by default.

        Raises:
            UsageError: The rule has checks, is not active, or does not exist.
            ModelError: No model is configured, or it could not be reached.
        """
        return check_writing.write_checks(self.engine, model or models.model(self.engine), item)

    def retire(self, item: str, *, reason: str = "") -> MemoryItem:
        """End an item, for a reason in a line if you give one; it stays in the history."""
        return editing.retire(self.engine, item, self.settings.actor, reason)

    def pin(self, item: str, *, pinned: bool = True) -> MemoryItem:
        """Pin an item, so that every context shows it; or unpin it."""
        return editing.pin(self.engine, item, self.settings.actor, pinned=pinned)

    def review(self, item: str, *, accept: bool) -> MemoryItem:
        """Accept or reject a candidate or a proposed merge."""
        return editing.review(self.engine, item, self.settings.actor, accept=accept)

    def merge(self, item: str, other: str, *, undo: bool = False) -> MemoryItem:
        """Merge a rule into another that says the same; or separate them again."""
        return (editing.unmerge if undo else editing.merge)(self.engine, item, other, self.settings.actor)

    def to_settle(self, message: str = "", *, most: int = settling.MOST, agent: str = "") -> list[Unsettled]:
        """Return the candidates and perhaps-ended rules that touch the work, the newest words first.

        Show them to your agent, and pass its verdicts to :meth:`settle_candidates`.

        Args:
            message: What the agent works on; the latest six messages count as well.
            most: Maximum number of items.
            agent: Role of the agent; items about another role are left out.
        """
        return settling.to_settle(self.engine, message, most=most, agent=agent)

    def settle_candidates(self, verdicts: Iterable[SettleVerdict], *, by: str = "agent:main") -> Settlement:
        """Apply an agent's verdicts on candidates as far as the user's words prove them.

        What a person decided by hand is never overturned. A refused verdict changes nothing.

        Args:
            verdicts: The verdicts, in order.
            by: The agent's actor, ``agent:<role>``.

        Raises:
            UsageError: ``by`` is not an agent.
            ReadOnly: The workspace was written by a newer version.
        """
        return settling.settle(self.engine, verdicts, by=by)

    def maintain(self, *, dry_run: bool = False) -> maintenance.Maintained:
        """Run overdue memory maintenance: decay, merge, promote, set aside."""
        return maintenance.maintain(self.engine, dry_run=dry_run)

    # --- queries ----------------------------------------------------------------------------------

    def search(  # noqa: PLR0913 - each narrows the search
        self,
        query: str,
        k: int = 10,
        *,
        kind: SearchKind | None = None,
        path: str = "",
        source: str | None = None,
        actor: str = "",
        since: str = "",
        before: str = "",
        as_of: int | str | None = None,
        files: bool = False,
        grouped: bool = False,
    ) -> list[SearchHit]:
        """Find passages in files, messages, outputs and sources; fresh writes included.

        Args:
            query: Words in any form.
            k: Maximum number of hits.
            kind: Only ``artifact``, ``message``, ``tool`` or ``memory``; or only files of a kind: ``source``,
                ``test``, ``docs``, ``config`` or ``data``.
            path: Only below this directory, or matching this glob.
            source: Only this read-only source; ``""`` for the workspace itself.
            actor: Only of this actor, or of a class of them (``agent:``).
            since: Only from this ISO date or time on.
            before: Only before this ISO date or time.
            as_of: As it was at a moment; see :meth:`moment`.
            files: Return one hit for each file: its most relevant passage, with the score of the whole file.
            grouped: Return the passages of a file as one hit: the best, whose ``also`` names the others.
        """
        kinds, seq = (kind,) if kind else (), None if as_of is None else self.moment(as_of)
        where = Filter(
            kinds=kinds, path=path, source=source, actor=actor, since=since, before=before, as_of=seq
        )
        return service.search(self.engine, query, k, where, seq, files=files, grouped=grouped)

    def boot(self, agent: str = "", *, max_tokens: int = 2_000) -> Context:
        """Return what every agent needs at its start.

        That is: mission, rules, demands, rejections, flows, capabilities, lessons, and where the work stands.

        Raises:
            UsageError: The budget is not positive.
        """
        return startup.boot(self.engine, agent, max_tokens=max_tokens)

    def get_relevant_context(
        self,
        message: str = "",
        *,
        max_tokens: int | None = None,
        tier: int = 1,
        as_of: int | str | None = None,
        deadline_ms: float | None = service.DEADLINE_MS,
    ) -> Context:
        """Return what an agent must not forget, and what is relevant now.

        With ``as_of``, as it was then. If an agent was shown a context at that moment and no message is
        given, return that very context, with its original budget and tier.

        Args:
            message: What the agent is about to work on; the user's last message by default.
            max_tokens: Budget of the whole text; 1,000, 10,000, 15,000 or 70,000 by tier.
            tier: 0 no conversation, 1 the last 30 messages, 2 a recap of the day too, 3 the log, before a
                day's first answer.
            as_of: As it was at a moment; see :meth:`moment`.
            deadline_ms: Trade depth for time: what is not ready by then is left out, and listed. ``None``
                waits for everything: the first search in a process loads the index, and reads new events into
                it.

        Raises:
            UsageError: The tier or event does not exist, or the budget is not positive.
        """
        seq = None if as_of is None else self.moment(as_of)
        return service.relevant_context(
            self.engine, message, max_tokens=max_tokens, tier=tier, seq=seq, deadline_ms=deadline_ms
        )

    # --- earlier moments --------------------------------------------------------------------------

    def moment(self, moment: int | str) -> int:
        """Resolve a seq, a time or a commit to an event.

        Args:
            moment: A seq (0 is before the first); an ISO date or time, UTC if it names no zone, or ``2h
                ago``; a commit's id of at least 7 characters, or another name that Git has for it
                (``HEAD~2``).

        Returns:
            Seq of the last event then: a date, minute or second means its end, a commit the last event that
                it holds.

        Raises:
            NoSuchMoment: The moment does not exist.
        """
        return moment_parser.resolve_moment(self.engine, moment)

    def state_at(self, moment: int | str) -> State:
        """Return the state as it was at a moment (see :meth:`moment`), folded again from the history.

        Raises:
            NoSuchMoment: The moment does not exist.
        """
        return moment_parser.state_at(self.engine, self.moment(moment))

    def diff(
        self, first: int | str | None = None, last: int | str | None = None, *, patches: bool = False
    ) -> Difference:
        """Compare artifacts and memory at two moments.

        Args:
            first: See :meth:`moment`; by default the start of the latest turn.
            last: The later moment; now by default.
            patches: Also return the line differences of each text file.

        Raises:
            NoSuchMoment: The moment does not exist, or the second is before the first.
        """
        begin = diff.turn_begin(self.engine) if first is None else self.moment(first)
        end = self.state.seq if last is None else self.moment(last)
        return diff.compare(self.engine, begin, end, patches=patches)

    def bisect(self, item: str = "", *, path: str = "", every: bool = False) -> Trace:
        """Find the event that made a memory item or a file what it is, with its causes.

        The causes go back to the user's sentence.

        Args:
            item: Id of the item.
            path: A file of the artifacts, existing or deleted, instead of an item.
            every: Return each event that changed it, not only the last one.

        Raises:
            NoSuchItem: The item does not exist.
            ArtifactMissing: There never was such a file.
        """
        if path:
            return bisect.trace_file(self.engine, check_path(path), every=every)
        return bisect.trace_item(self.engine, item, every=every)

    def check_answer(self, text: str, message: str = "") -> tuple[Violation, ...]:
        """Return which of the user's rules an answer would break.

        This includes suggestions that the user has ruled out.
        """
        return (
            *self.engine.evaluate_answer(text, message).stopping,
            *self.gates.before_answer(text),
        )

    def scan_sources(self, progress: Progress | None = None) -> list[SourceReport]:
        """Update the index from the read-only sources that ``agentx.toml`` declares."""
        return Sources(self.engine).scan(progress)

    # --- upkeep -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """End a turn: commit what is pending, update Git's index, and release its lock."""
        self.engine.write_path.flush()
        hook_checks.refresh(self.engine)

    @contextlib.contextmanager
    def watching(self, failed: Callable[[Exception], object] | None = None) -> Iterator[Watcher]:
        """Record the user's edits moments after they are made, while the body of the ``with`` runs.

        A burst of changes, such as a `git switch` of the project, is recorded when it has settled.

        Args:
            failed: Called with the exception of a scan that failed; by default it is logged.
        """
        skip = (self.root,) if self.artifacts != self.root / ARTIFACTS else ()
        edits = self.engine.edits

        def look() -> list[FileChange]:
            edits.secure()
            return edits.scan(noticed="watch")

        with Watcher(self.artifacts, look, skip, failed=failed) as watcher:
            yield watcher

    def settle(self, timeout_s: float = 30.0, progress: Progress | None = None) -> bool:
        """Wait until synthesis has caught up: everything concluded, indexed and embedded.

        Without an embedding model nothing is embedded.

        Returns:
            Whether it has; false if the time was not enough.
        """
        end = time.monotonic() + timeout_s
        self.engine.write_path.refresh()
        return self.engine.indexer.settle(end, progress)

    def verify(self, *, since: str = "", progress: Progress | None = None) -> Verified:
        """Check integrity; read-only.

        Args:
            since: Id of a commit: check only what came after it.
            progress: Called with the step, the amount done and the total.

        Raises:
            UsageError: ``since`` is not a commit of the history.
        """
        return verify.verify(self.root, since=since, states=(self.state,), progress=progress)

    def repair(self, *, dry_run: bool = False, accept_loss: bool = False) -> Repaired:
        """Restore what is damaged or missing, from any place that provably holds the same content.

        Args:
            dry_run: Change nothing.
            accept_loss: Continue without events that cannot be found anywhere; each keeps its place, marked
                as lost.
        """
        return repair.repair(self.root, dry_run=dry_run, accept_loss=accept_loss)

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Drop every cache and rebuild state and index from the history, without a model.

        Args:
            progress: Called with the step, the amount done and the total.
        """
        return standing.rebuild(self.engine, progress)

    def backtest(self, since: int | str | None = None, *, dry_run: bool = False) -> Backtested:
        """Replay past runs, and propose the flows and lessons that they teach.

        See :func:`agentx.memory.backtest.backtest`.
        """
        return backtest(self.engine, since=since, dry_run=dry_run)

    def resynthesize(self) -> list[Event]:
        """Read the raw facts again with the current extractors; record and return their new conclusions."""
        return self.engine.synthesizer.resynthesize()
