"""The quality tools: run a task's own checks in a copy of the artifacts, with a structured result.

The checks run code that the agent wrote. Files that they change are recorded as changed by the check.
"""

import shlex
from pathlib import Path
from typing import Annotated, cast

import msgspec
from pydantic import Field

from agentx.config import CheckSection
from agentx.engine.engine import Engine
from agentx.policy import file_policy
from agentx.policy.approvals import NotApproved
from agentx.policy.file_policy import FileRuleBroken
from agentx.quality.document import check_document as check_prose
from agentx.quality.sandbox import SandboxPolicy, SandboxResult, Wanted, isolation_for, run_in_copy
from agentx.recording.secret_report import tell
from agentx.recording.staging import Content
from agentx.storage.artifacts import Artifacts, FileTooLarge
from agentx.storage.errors import UsageError
from agentx.storage.events.types import Body, FileChange, ToolCallExecuted, changes_of
from agentx.storage.files import nofollow
from agentx.storage.files.paths import PathRefused, check_path
from agentx.storage.secrets.redaction import clean
from agentx.synthesis.checks import CheckReport, parse_output, recorded_form
from agentx.synthesis.checks.check_report import compared
from agentx.synthesis.checks.command import normal_form, selection
from agentx.synthesis.checks.issue_endings import comparable, counts_key
from agentx.tools.storage_tools import PathArgument, StorageTools
from agentx.tools.toolset import Job, WriteDenied, tool

SHOWN_OUTPUT = 4_000
"""Characters of a program's output in an agent's answer; the record holds all of the captured output."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check run.

    Attributes:
        tool: The tool that ran.
        command: The command line.
        report: What failed, where, and what else the runner reported.
        exit_code: The exit status; ``None`` after a time-out.
        output: What it printed, cut in the middle if it was long.
        notes: What a reader should know about the run (no isolation, time-out, files that were left out).
        changed: Files in the artifacts that it changed.
    """

    tool: str
    command: str
    report: CheckReport
    exit_code: int | None
    output: str
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a check failed."""
        return self.report.outcome == "failed" or self.exit_code not in (0, None) or self.exit_code is None

    def render(self) -> str:
        """Return the result as an agent reads it: the verdict, each failing check, then the output."""
        verdict = "failed" if self.failed else "passed"
        counts = [f"{self.report.ran} ran" if self.report.ran is not None else "", _exit(self.exit_code)]
        lines = [f"{self.tool} {verdict}: `{self.command}` ({', '.join(part for part in counts if part)})"]
        for found in self.report.failing[:30]:
            where = f" at {found.path}:{found.line}" if found.path else ""
            message = "" if found.message in found.check else f": {found.message}"
            lines.append(f"- FAILED {found.check}{where}{message}")
        if len(self.report.failing) > 30:  # noqa: PLR2004 - as above
            lines.append(f"- and {len(self.report.failing) - 30} more")
        lines += [f"[{note}]" for note in self.notes]
        if self.changed:
            lines.append(f"[it changed {', '.join(self.changed[:10])}]")
        return "\n".join([*lines, "--- output", _middle_cut(self.output)])


class QualityTools(StorageTools):
    """Tools that run the task's checks."""

    @tool
    def run_tests(
        self,
        job: Job,
        select: Annotated[
            str, Field(description="Narrow the run to a test or file, as the runner takes it.")
        ] = "",
    ) -> CheckResult:
        """Run the task's tests in a copy of the artifacts; tells which failed, where, and the message."""
        return self._run_check(job, "tests", self.engine.config.checks.tests, select)

    @tool
    def run_lint(self, job: Job) -> CheckResult:
        """Run the task's linter in a copy of the artifacts."""
        return self._run_check(job, "lint", self.engine.config.checks.lint)

    @tool
    def run_build(self, job: Job) -> CheckResult:
        """Run the task's build in a copy of the artifacts."""
        return self._run_check(job, "build", self.engine.config.checks.build)

    @tool
    def run_command(
        self, job: Job, command: Annotated[str, Field(min_length=1, description="A shell command line.")]
    ) -> CheckResult:
        """Run a shell command in a copy of the artifacts; keep its changes. agentx.toml must allow it."""
        if not self.engine.config.tools.run_command:
            raise NotApproved(
                "run_command is off; a person can allow it with `agentx config set tools.run_command true`."
            )
        if isolation_for(sandbox_policy(self.engine, "tools.run_command"))[0] == "none":
            self.engine.trust.require_commands()
        return self._run(job, CheckSection(command=command), "tools.run_command")

    @tool
    def check_document(self, job: Job, path: PathArgument) -> CheckResult:
        """Check a text: spelling, usage, broken links and headings."""
        path = check_path(path)
        artifacts = self.engine.artifacts
        report = check_prose(
            path,
            self.read_text(path),
            extra_words=self.engine.config.tools.words,
            exists=lambda other: _exists(artifacts, other),
            read=lambda other: self.read_text(other) if _exists(artifacts, other) else None,
        )
        output = clean("\n".join(str(found) for found in report.findings) or "No findings.")
        job.command, job.exit_code = f"check_document {shlex.quote(path)}", int(bool(report.findings))
        job.printed, job.failed = output, bool(report.findings)
        return CheckResult(
            tool=job.tool,
            command=job.command,
            report=parse_output(output, command=job.command, exit_code=job.exit_code),
            exit_code=job.exit_code,
            output=output,
            notes=report.notes,
        )

    # --- running --------------------------------------------------------------------------------------------

    def _run_check(self, job: Job, name: str, section: CheckSection, select: str = "") -> CheckResult:
        if not section.command:
            raise UsageError(
                f"No command is set for {job.tool}. A person sets one with "
                f'`agentx config set checks.{name}.command "…"`.'
            )
        command = f"{section.command} {_quoted(select)}" if select else section.command
        return self._run(job, section.model_copy(update={"command": command}), f"checks.{name}.command")

    def _run(self, job: Job, section: CheckSection, setting: str) -> CheckResult:
        policy = sandbox_policy(self.engine, setting)
        self.engine.edits.scan(noticed="scan")
        job.announce()
        result = run_in_copy(
            self.engine.artifacts.root,
            section.command,
            timeout_s=section.timeout_s,
            max_output_bytes=section.max_output_bytes,
            policy=policy,
            ask_for_reports=True,
        )
        notes = list(result.notes)
        if result.timed_out:
            notes.append(f"it was ended after {section.timeout_s:g} s")
        job.command, job.exit_code = section.command, result.exit_code
        output = clean(result.output)  # once, before anything reads or truncates it
        job.printed = output
        job.report = recorded_form((report.runner, clean(report.text)) for report in result.reports)
        changed = self._keep_changes(job, result, notes)
        report = parse_output(
            output, command=section.command, exit_code=result.exit_code, recorded=job.report
        )
        if left_out := self._left_out(job, report):
            notes.append(left_out)
        made = CheckResult(
            tool=job.tool,
            command=section.command,
            report=report,
            exit_code=result.exit_code,
            output=output,
            notes=tuple(notes),
            changed=changed,
        )
        job.failed = made.failed
        return made

    def _left_out(self, job: Job, report: CheckReport) -> str:
        """Return what a run left out that the run of the same command before it ran; empty for nothing."""
        before = self.engine.log.state.tallies.get(counts_key(report.runner, normal_form(job.command)))
        now = comparable(report, selection(job.command))
        return compared(now, before) if now and before else ""

    def _keep_changes(self, job: Job, result: SandboxResult, notes: list[str]) -> tuple[str, ...]:
        """Apply what the command wrote in its copy, in a separate event before the call's event."""
        contents: dict[str, Content | None] = {}
        for made in result.changes:
            try:
                path = check_path(made.path)
            except PathRefused as error:
                notes.append(str(error))
                continue
            contents[path] = None if made.content is None else Content(made.content, made.executable)
        if not contents:
            return ()

        def payload(changes: tuple[FileChange, ...]) -> ToolCallExecuted:
            # The output is only in the call's own event; otherwise its failing checks would be counted twice.
            return ToolCallExecuted(
                call_id=job.call_id,
                tool=job.tool,
                status="SUCCEEDED",
                arguments=job.arguments,
                output=Body(f"{job.tool} changed files"),
                changes=changes,
            )

        with self.engine.write_path.exclusive():
            if refused := self._refused(job, contents):
                notes.append(f"its changes were not applied. {refused}")
                job.printed += f"\n[{notes[-1]}]"  # also in the record: an agent tried it
                return ()
            try:
                events = self.engine.write_path.write(
                    contents, payload, actor=f"tool:{job.tool}", run=self.run
                )
            except FileTooLarge as error:
                notes.append(f"its changes were not applied. {error}")
                return ()
        return tuple(made.path for event in events for made in changes_of(event))

    def _refused(self, job: Job, contents: dict[str, Content | None]) -> str:
        """Return why the command's changes are not applied. It is too late to ask the user."""
        evaluation = self.engine.evaluate_write(contents, actor=self.actor)
        job.evaluated(evaluation)
        if evaluation.stopping:
            denied = WriteDenied(evaluation.stopping)
            job.denied_by = denied.rules
            return str(denied)
        try:
            file_policy.require(self.engine, contents, actor=self.actor, run=self.run)
        except FileRuleBroken as error:
            return str(error)
        if self.engine.config.secrets.artifacts == "allow":
            return ""
        found = file_policy.new_secrets(self.engine.write_path, contents)
        return f"A possible secret is in {tell(found)}." if found else ""


def sandbox_policy(engine: Engine, command: str) -> SandboxPolicy:
    """Return what a command may see that runs in a copy of the artifacts. This is also the trust gate.

    No command runs without this policy.

    Args:
        engine: The workspace.
        command: Where the command comes from: a setting, or another source.

    Raises:
        Restricted: The workspace is not trusted.
    """
    engine.trust.require(command)
    place = engine.artifacts.root
    is_inside = place in engine.root.parents  # an outer work tree: the workspace is not copied
    return SandboxPolicy(
        environ=engine.settings.environ,
        isolation=cast("Wanted", engine.config.tools.isolation),
        readable=[Path(place).expanduser() for place in engine.config.checks.readable],
        hidden=[engine.root, engine.settings.state_dir],
        never=[engine.settings.runtime_dir],
        exclude=[f"/{engine.root.relative_to(place).as_posix()}/"] if is_inside else [],
    )


def _exists(artifacts: Artifacts, path: str) -> bool:
    try:
        return nofollow.exists(artifacts.locate(check_path(path), follow=True))
    except PathRefused:
        return False


def _quoted(select: str) -> str:
    return " ".join(shlex.quote(part) for part in select.split())


def _exit(code: int | None) -> str:
    return "no exit status" if code is None else f"exit {code}"


def _middle_cut(output: str) -> str:
    if len(output) <= SHOWN_OUTPUT:
        return output
    half = SHOWN_OUTPUT // 2
    return f"{output[:half]}\n[… {len(output) - 2 * half:,} characters left out …]\n{output[-half:]}"
