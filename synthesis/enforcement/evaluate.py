"""Check an agent's write, command or answer against the rules that code can check.

Pure: texts in, violations out. Only active items are enforced. For a rule that the user may have ended, and
for a doubtful check, the user is asked. What cannot be checked with certainty (a file that does not parse,
binary content) passes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from agentx.storage.matching.matcher import Undecided
from agentx.synthesis.enforcement.breaches import Breach, CheckedChange, undecided
from agentx.synthesis.enforcement.commands import broken_commands
from agentx.synthesis.enforcement.contents import missing_contents
from agentx.synthesis.enforcement.dependencies import broken_dependencies, installed_dependencies
from agentx.synthesis.enforcement.paths import forbidden_paths, matches
from agentx.synthesis.enforcement.runs import RunStep, TryProgram, failing_program, missing_follow_up
from agentx.synthesis.enforcement.sizes import too_large, too_long_answer
from agentx.synthesis.enforcement.structure import broken_structures, missing_decorators
from agentx.synthesis.enforcement.texts import forbidden_in_answer, forbidden_in_command, forbidden_texts
from agentx.synthesis.enforcement.topics import about, perhaps_about
from agentx.synthesis.memory.checks import (
    Check,
    CommandCheck,
    ContentCheck,
    DecoratorCheck,
    DependencyCheck,
    FollowUpCheck,
    Mode,
    PathCheck,
    ProgramCheck,
    SizeCheck,
    StructureCheck,
    TextCheck,
)
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, checks_of, followed_from
from agentx.synthesis.shell.sessions import sessions
from agentx.synthesis.shell.unanalysed import unanalysed
from agentx.synthesis.shell.unread import named, unread

_OF_FILES: dict[type[Any], Callable[[Any, CheckedChange], Iterator[Breach]]] = {
    PathCheck: forbidden_paths,
    TextCheck: forbidden_texts,
    StructureCheck: broken_structures,
    SizeCheck: too_large,
    ContentCheck: missing_contents,
    DecoratorCheck: missing_decorators,
    DependencyCheck: broken_dependencies,
}
"""By kind of check, the function that yields its breaches by the change of a file."""

_OF_ANSWERS: dict[type[Any], Callable[[Any, str], Iterator[Breach]]] = {
    TextCheck: forbidden_in_answer,
    SizeCheck: too_long_answer,
}
"""By kind of check, the function that yields its breaches by an answer."""

_OF_COMMANDS: dict[type[Any], Callable[[Any, str], Iterator[Breach]]] = {
    TextCheck: forbidden_in_command,
    DependencyCheck: installed_dependencies,
    CommandCheck: broken_commands,
}
"""By kind of check, the function that yields its breaches by a command line."""

MAX_CORRECTIONS = 20
"""Maximum number of corrections of one action, one after the other; what is still wrong then is denied."""

STOPPING: frozenset[Mode] = frozenset(("deny", "fix"))


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a write, a command or an answer breaks.

    Attributes:
        item_id: The rule's id.
        rule: The rule, in full.
        sentence: The user's sentence that the rule came from.
        reason: One sentence: what breaks the rule, and where.
        path: The file; empty for an answer or a command.
        line: Line in the new text, from 1; 0 if none applies.
        mode: What the check demands; ``ask`` in place of denying if there is a doubt.
        doubt: Why it is uncertain whether the rule is broken; empty if it is certain.
        correction: The whole text or command line that would not break it; empty if none is mechanical.
    """

    item_id: str
    rule: str
    sentence: str
    reason: str
    path: str = ""
    line: int = 0
    mode: Mode = "deny"
    doubt: str = ""
    correction: str = ""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks found about an action.

    Attributes:
        violations: Every rule that would be broken, in any mode.
        kept: Ids of the rules with a check that applied and was kept.
        checks: Number of checks that applied.
        corrected: The text or command line that breaks none of them; empty if not all corrections are
            mechanical.
        unread: Parts of a command line that were not analysed, where a check is about what commands do.
    """

    violations: tuple[Violation, ...] = ()
    kept: tuple[str, ...] = ()
    checks: int = 0
    corrected: str = ""
    unread: tuple[str, ...] = ()

    def of(self, *modes: Mode) -> tuple[Violation, ...]:
        """Return the violations whose check has one of these modes."""
        return tuple(one for one in self.violations if one.mode in modes)

    @property
    def stopping(self) -> tuple[Violation, ...]:
        """The violations that stop the action."""
        return self.of(*STOPPING)

    @property
    def fixed(self) -> str:
        """The corrected command line, if the broken rules demand that it is run in place of this one."""
        return self.corrected if self.of("fix") and not self.of("deny", "ask") else ""

    @property
    def broken(self) -> tuple[str, ...]:
        """Ids of the broken rules, without duplicates."""
        return tuple(dict.fromkeys(one.item_id for one in self.violations))


def evaluate_changes(items: Iterable[MemoryItem], changes: Iterable[CheckedChange]) -> Evaluation:
    """Evaluate the checks on the changes of files.

    Existing content is not held against a change: a phrase, a function or an import that is already in the
    text before passes. Of binary content, only the path is checked.

    Args:
        items: Memory items; those that are not enforced are skipped.
        changes: The changes that are made together.

    >>> from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem
    >>> detail = ConstraintDetail(checks=(PathCheck(paths=("**/requirements.txt",)),))
    >>> rule = MemoryItem(id="c-1", kind="constraint", text="No requirements.txt", detail=detail)
    >>> change = CheckedChange(path="api/Requirements.TXT", after="flask")
    >>> [violation.reason for violation in evaluate_changes([rule], [change]).violations]
    ['No file may be written at api/Requirements.TXT.']
    """
    enforced = tuple(_enforced(items))

    def evaluated(*changes: CheckedChange) -> Evaluation:
        return _evaluated(
            (item, told, change.path, breaches(told, change))
            for item, check in enforced
            if (breaches := _OF_FILES.get(type(check)))
            for change in changes
            if _is_about(item, check, change.path)
            and (told := _on_topic(check, change.after or "", change.path, change.message))
        )

    made = tuple(changes)
    found = evaluated(*made)
    if len(made) != 1:
        return found
    corrected = _corrected(
        found, lambda text: evaluated(msgspec.structs.replace(made[0], after=text, parsed={}))
    )
    return msgspec.structs.replace(found, corrected=corrected)


def evaluate_answer(items: Iterable[MemoryItem], text: str, *, message: str = "") -> Evaluation:
    """Evaluate the checks on a final answer.

    Args:
        items: Memory items; those that are not enforced are skipped.
        text: The answer.
        message: The user's message that it answers, which may name the topic.
    """
    return _evaluated(
        (item, told, "", breaches(told, text))
        for item, check in _enforced(items)
        if (breaches := _OF_ANSWERS.get(type(check)))
        and not (check.paths or item.scope.paths)
        and (told := _on_topic(check, text, message))
    )


def evaluate_command(items: Iterable[MemoryItem], command: str, *, message: str = "") -> Evaluation:
    """Evaluate the checks on a command line; the files that it changes are evaluated as changes.

    Args:
        items: Memory items; those that are not enforced are skipped.
        command: The command line, in the language of Bash.
        message: The user's message that the agent works on, which may name the topic.
    """
    enforced = tuple(_enforced(items))

    def evaluated(line: str) -> Evaluation:
        return _evaluated(
            (item, told, "", breaches(_in_scope(item, told), line))
            for item, check in enforced
            if (breaches := _OF_COMMANDS.get(type(check))) and (told := _on_topic(check, line, message))
        )

    found = evaluated(command)
    corrected = _corrected(found, evaluated)
    if opened := _session(enforced, command):
        found = all_of(found, Evaluation(violations=(opened,)))
    return msgspec.structs.replace(found, corrected=corrected, unread=_unanalysed(enforced, command))


def _unanalysed(enforced: Sequence[tuple[MemoryItem, Check]], command: str) -> tuple[str, ...]:
    """Return the parts of a command line that no check read, where a check is about what commands do."""
    checks = [check for _, check in enforced]
    programs = tuple(name for check in checks if isinstance(check, CommandCheck) for name in check.programs)
    globs = tuple(check.paths for check in checks if isinstance(check, PathCheck) and check.paths)
    if programs or globs:
        return unanalysed(command, programs, globs, matches)
    concerned = any(isinstance(check, PathCheck | DependencyCheck) for check in checks)
    return unread(command) if concerned else ()


def _session(enforced: Sequence[tuple[MemoryItem, Check]], command: str) -> Violation | None:
    """Return the violation of a command line that opens a shell whose commands no check would see."""
    ruling = [
        (item, check)
        for item, check in enforced
        if isinstance(check, PathCheck | CommandCheck) and check.mode in STOPPING and not check.topic
    ]
    opened = sessions(command) if ruling else ()
    if not opened:
        return None
    item, check = ruling[0]
    reason = (
        f"`{named(opened[0])}` waits for commands that no check would see. Give it what it is to run at "
        "once, such as `bash -c '…'`, a file, or a text on its input."
    )
    return _violation(item, check, Breach(reason=reason))


def _corrected(found: Evaluation, evaluated: Callable[[str], Evaluation]) -> str:
    """Return what is left of an action after one correction after the other; empty if it breaks a rule."""
    corrected = ""
    for _ in range(MAX_CORRECTIONS):
        wrong = [one.correction for one in found.violations if one.mode != "observe"]
        if not wrong or not all(wrong):
            return "" if wrong else corrected
        corrected = wrong[0]
        found = evaluated(corrected)
    return ""


def evaluate_run(
    items: Iterable[MemoryItem], steps: Sequence[RunStep], run: TryProgram, *, message: str = ""
) -> Evaluation:
    """Evaluate the checks at the end of a run that changed the files that they are about.

    Args:
        items: Memory items; those that are not enforced are skipped.
        steps: What the run did, in order.
        run: Runs a command.
        message: The user's message, which may name the topic.
    """
    found: list[_Found] = []
    for item, check in _enforced(items):
        if not isinstance(check, ProgramCheck | FollowUpCheck) or not about(check.topic, message):
            continue
        changed = [
            (number, path)
            for number, step in enumerate(steps)
            for path in step.paths
            if _is_about(item, check, path)
        ]
        if changed:
            last, path = changed[-1]
            if isinstance(check, FollowUpCheck):
                found.append((item, check, path, missing_follow_up(check, steps[last:], path)))
            elif (breaches := failing_program(check, run)) is not None:
                found.append((item, check, path, breaches))
    return _evaluated(found)


def all_of(*evaluations: Evaluation) -> Evaluation:
    """Return several evaluations as one: a rule that was broken in one of them was not kept."""
    violations = tuple(one for evaluation in evaluations for one in evaluation.violations)
    broken = {one.item_id for one in violations}
    kept = dict.fromkeys(name for evaluation in evaluations for name in evaluation.kept if name not in broken)
    wrong = [one for one in evaluations if any(found.mode != "observe" for found in one.violations)]
    return Evaluation(
        violations=violations,
        kept=tuple(kept),
        checks=sum(evaluation.checks for evaluation in evaluations),
        corrected=wrong[0].corrected if len(wrong) == 1 else "",
        unread=tuple(part for evaluation in evaluations for part in evaluation.unread),
    )


_Found = tuple[MemoryItem, Check, str, Iterator[Breach]]


def _evaluated(found: Iterable[_Found]) -> Evaluation:
    """Collect the breaches of each check that applies."""
    violations: list[Violation] = []
    applied: dict[str, None] = {}
    checks = 0
    for item, check, path, breaches in found:
        checks += 1
        applied[item.id] = None
        violations += [_violation(item, check, breach, path) for breach in _decided(breaches, path)]
    broken = {one.item_id for one in violations}
    kept = tuple(name for name in applied if name not in broken)
    return Evaluation(violations=tuple(violations), kept=kept, checks=checks)


def _decided(breaches: Iterator[Breach], path: str) -> Iterator[Breach]:
    """Yield breaches; a check that cannot be made leaves the decision to a person."""
    try:
        yield from breaches
    except Undecided as why:
        yield undecided(why, path or "this")


def _enforced(items: Iterable[MemoryItem]) -> Iterator[tuple[MemoryItem, Check]]:
    for item in items:
        wish = isinstance(item.detail, ConstraintDetail) and item.detail.modality == "prefer"
        if item.status == "active":
            for check in checks_of(item):
                if check.by_hand or check.written_by or not wish:
                    yield item, check


def _on_topic(check: Check, *texts: str) -> Check | None:
    """Return a check if texts are about its topic, as a doubtful one if they only may be."""
    if about(check.topic, *texts):
        return check
    if not perhaps_about(check.topic, *texts):
        return None
    return msgspec.structs.replace(check, doubt=f"It is uncertain whether this is about {check.topic}.")


def _in_scope(item: MemoryItem, check: Check) -> Check:
    """Return a check limited to the paths of its item, if it names none itself."""
    return check if check.paths else msgspec.structs.replace(check, paths=item.scope.paths)


def _is_about(item: MemoryItem, check: Check, path: str) -> bool:
    return (
        (not check.paths or matches(check.paths, path))
        and (not item.scope.paths or matches(item.scope.paths, path))
        and not (check.exceptions and matches(check.exceptions, path, unread=False))
    )


def perhaps_ended(item: MemoryItem) -> str:
    """Return the note that the user may have ended a rule, with the latest words; empty if they did not."""
    words = item.perhaps_ended_by[-1:]
    return f"perhaps ended by “{words[0].quote}”" if words else ""


def why_asked(evaluation: Evaluation) -> str:
    """Return why an action needs the user's approval; empty if it does not."""
    asked = evaluation.of("ask")
    return " ".join(
        " ".join(filter(None, (one.reason, f"Rule {one.item_id}: {one.rule}", one.doubt))) for one in asked
    )


def rule_of(item: MemoryItem) -> str:
    """Return a rule in full, with the workspace and event that it comes from if that is another one.

    >>> rule_of(MemoryItem(id="c-1", kind="constraint", text="Never push."))
    'Never push.'
    """
    source = followed_from(item)
    return f"{item.text} (followed from {source})" if source else item.text


def _violation(item: MemoryItem, check: Check, breach: Breach, path: str = "") -> Violation:
    sentence = item.evidence[0].quote if item.evidence else item.text
    ended = perhaps_ended(item)
    doubt = f"It is {ended}." if ended else check.doubt or breach.doubt
    return Violation(
        item_id=item.id,
        rule=rule_of(item),
        sentence=sentence or item.text,
        reason=breach.reason,
        path=path,
        line=breach.line,
        mode="ask" if doubt and check.mode in STOPPING else check.mode,
        doubt=doubt,
        correction=breach.correction,
    )
