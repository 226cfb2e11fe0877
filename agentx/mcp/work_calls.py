"""The tools that other profiles add: artifacts through the write path as the agent, checks, and grading."""

from collections.abc import Mapping
from typing import Any

from agentx.history import undo_restore
from agentx.history.undo_restore import Allowed, Change
from agentx.mcp.catalogue import DiffWanted, GradeWanted, RestoreWanted, UndoWanted
from agentx.mcp.messages import McpAnswer, UserQuestion
from agentx.policy import approvals, file_policy
from agentx.policy.approval_view import approval_view, as_text
from agentx.recording.staging import Content
from agentx.storage.errors import AgentXError
from agentx.storage.events.actor import Actor
from agentx.storage.files.paths import check_folder
from agentx.storage.text import one_line
from agentx.storage.visible import visible
from agentx.tools.toolset import WriteDenied
from agentx.workspace import Workspace

_QUESTION_CHARACTERS = 8_000
"""A host's form shows a few thousand characters; a person who could not read all of it is not asked there."""

_PATCH_LINES = 400


class UserNeeded(AgentXError):
    """Only the user may do it."""


def own_tool(
    ws: Workspace, name: str, arguments: Mapping[str, Any], agent: str, call_id: str = "", *, may_ask: bool
) -> McpAnswer:
    """Call a tool of the workspace as the agent: gate, approval, record, as in every run."""
    actor = f"agent:{agent}"
    done = ws.tools.call(name, arguments, call_id=call_id, actor=actor)
    if done.approval_needed and may_ask:
        (call,) = (one for one in approvals.waiting(ws.engine) if one.call_id == done.call_id)
        view = approval_view(ws.engine, call)
        why = done.output.partition(f"{name} needs approval:")[0]
        text = visible(why) + as_text(view)
        if len(text) > _QUESTION_CHARACTERS:
            told = f"It is too long to be put to the user here ({len(text):,} characters). {done.output}"
            return McpAnswer(text=told, failed=True)
        question = UserQuestion(text=text, call_id=done.call_id, shown=view.digest)
        return McpAnswer(text=done.output, failed=True, ask=question)
    ws.flush()
    return McpAnswer(text=done.output, failed=done.status != "SUCCEEDED")


def diff(ws: Workspace, given: DiffWanted, _agent: str) -> McpAnswer:
    """Return which files and items differ between two moments, with the changed lines as far as they fit."""
    made = ws.diff(given.first or None, given.last or None, patches=True)
    lines = [f"From event {made.first} to event {made.last}:"]
    left = _PATCH_LINES
    for file in made.files:
        old = f"{file.old_path} → " if file.old_path else ""
        lines.append(f"{file.what} {old}{file.path} (+{file.added} -{file.removed})")
        patch = file.patch.splitlines()
        lines += patch[:left]
        if len(patch) > left:
            lines.append(f"[{len(patch) - left} lines left out: read_file, or a narrower first and last]")
        left = max(0, left - len(patch))
    lines += [
        f"{item.what} [{item.id}] {item.kind} ({item.status}): {one_line(item.text)}" for item in made.items
    ]
    return McpAnswer(text="\n".join(lines) if lines[1:] else f"{lines[0]} no difference.")


def restore(ws: Workspace, given: RestoreWanted, agent: str) -> McpAnswer:
    """Restore a file or directory as the agent, if the agent may write those contents."""
    actor = f"agent:{agent}"
    at = ws.moment(int(given.at) if given.at.isdecimal() else given.at)
    event = undo_restore.restore(
        ws.engine, check_folder(given.path), at, actor, _allowed(ws, actor, "restore")
    )
    ws.flush()
    return McpAnswer(text=event.describe() or "Restored.")


def undo(ws: Workspace, _given: UndoWanted, agent: str) -> McpAnswer:
    """Undo the latest change as the agent, if an agent made it."""
    actor = f"agent:{agent}"
    event = undo_restore.undo(ws.engine, actor, _allowed(ws, actor, "undo"))
    ws.flush()
    return McpAnswer(text=event.describe() or "Undone.")


def _allowed(ws: Workspace, actor: str, tool: str) -> Allowed:
    def check(contents: Mapping[str, Content | None], undone: Change | None) -> None:
        by = undone.events[0].actor if undone else ""
        if by and Actor.parse(by).role != "agent":
            raise UserNeeded(
                f"The latest change is by {by}, not by an agent: ask the user to run `agentx undo`."
            )
        named = {tool, "write_file", "delete_file"}.intersection(ws.config.tools.approve)
        amended = file_policy.check(ws.engine, contents, actor=actor)
        why = file_policy.why_approval(ws.engine, contents, amended, actor)
        if named or why:
            raise UserNeeded(f"{why} It needs approval: ask the user to run `agentx {tool}`.".lstrip())
        if stopping := ws.engine.evaluate_write(contents, actor=actor).stopping:
            raise WriteDenied(stopping)

    return check


def grade(ws: Workspace, given: GradeWanted, agent: str) -> McpAnswer:
    """Grade a task as the agent."""
    graded = ws.gates.after(
        given.task, passed=given.passed, flow=given.flow, lesson=given.lesson, actor=f"agent:{agent}"
    )
    lines = [f"Recorded: {'passed' if given.passed else 'failed'}."]
    if graded.unknown:
        lines.append(f"Unknown: {', '.join(map(one_line, graded.unknown))}.")
    if graded.proposal:
        lines.append(f"To make the lesson permanent, the user can run: {graded.proposal.command}")
    return McpAnswer(text="\n".join(lines))
