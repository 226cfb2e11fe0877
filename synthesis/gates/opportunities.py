"""Count the tasks in which a rule's situation came up, and what they did with the rule."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import (
    AgentMessageSent,
    Event,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.synthesis.gates.action_relevance import Action, MemoryBoard
from agentx.synthesis.gates.situations import comes_up, is_done
from agentx.synthesis.learning.following import checked_rules, is_reading
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.rule_lifecycle import RuleOutcome
from agentx.synthesis.state.state import State

_COUNTED = ToolCallExecuted | AgentMessageSent | TaskGraded | RunEnded
_VALUE_CHARACTERS = 400
_TASK_CHARACTERS = 2_000


class _Task(msgspec.Struct):
    """A run, a user's message with actions, or a grade without a run.

    Attributes:
        checked: By rule, whether its last check was kept.
    """

    said: list[Action]
    at: str = ""
    seq: int = 0
    done: list[Action] = msgspec.field(default_factory=list)
    checked: dict[str, bool] = msgspec.field(default_factory=dict)
    grade: TaskGraded | None = None
    ended: bool = False

    @property
    def counts(self) -> bool:
        return bool(self.done or self.checked or self.grade or self.ended)


def outcomes(state: State, events: Iterable[Event]) -> list[RuleOutcome]:
    """Return what the tasks since the last maintenance did with the rules whose situation came up, in order.

    Args:
        state: The memory.
        events: The events since then, read to the end. Of earlier ones, only the beginnings of tasks count.
    """
    rules = {
        item.id: item
        for item in state.items.values()
        if item.kind == "rule" and item.status in ("active", "dormant")
    }
    board = MemoryBoard(State(items=rules))
    found = sorted(_tasks(events, state.maintained), key=lambda task: task.seq)
    return [outcome for task in found for outcome in _outcomes(board, task)] if rules else []


def _outcomes(board: MemoryBoard, task: _Task) -> Iterator[RuleOutcome]:
    kept, broke = (task.grade.kept, task.grade.broke) if task.grade else ((), ())
    said, acted = (
        [(action, action.words.keys()) for action in _each_once(part)] for part in (task.said, task.done)
    )
    actions = [*said, *acted]
    done = frozenset[str]().union(*(words for _, words in acted))
    if task.grade:
        done |= Action(text=task.grade.task).words.keys()
    every = frozenset[str]().union(*(words for _, words in actions))
    checked = {name: item for name in (*kept, *broke, *task.checked) if (item := board.items.get(name))}
    for item in (board.having(every) | checked).values():
        named = item.id in kept or item.id in broke
        measured = item.id in task.checked
        if task.seq < item.created_seq or not (named or measured or _reached(board, item, actions)):
            continue
        shown = task.checked.get(item.id, is_done(board, item, done))
        yield RuleOutcome(
            rule=item.id,
            at=task.at,
            kept=item.id not in broke and (item.id in kept or bool(shown)),
            broke=item.id in broke or (not named and task.checked.get(item.id) is False),
            unknown=shown is None and not named,
            graded=named,
        )


def _each_once(actions: Iterable[Action]) -> Iterable[Action]:
    return {(one.said, one.tool, one.paths, one.domain): one for one in actions}.values()


def _reached(
    board: MemoryBoard, item: MemoryItem, actions: Sequence[tuple[Action, AbstractSet[str]]]
) -> bool:
    return any(comes_up(board, item, action, words) for action, words in actions)


def _tasks(events: Iterable[Event], since: int) -> list[_Task]:
    found: list[_Task] = []
    open_tasks: dict[str, _Task] = {}
    running: set[str] = set()

    def begin(event: Event, text: str) -> _Task:
        actor = Actor.parse(event.actor)
        said = Action(text=text[:_TASK_CHARACTERS], agent="" if actor.is_user else actor.name)
        task = _Task(said=[said] if text else [])
        open_tasks[event.run] = task
        found.append(task)
        return task

    for event in events:
        data = event.data
        if isinstance(data, RunStarted):
            running.add(event.run)
            before = open_tasks.get(data.resumes) if data.resumes else None
            if before is None:
                begin(event, data.task.text)
            else:
                open_tasks[event.run] = before
        elif isinstance(data, UserMessageSent):
            if Actor.parse(event.actor).is_user and event.run not in running:
                begin(event, data.body.text)
        elif event.seq > since and isinstance(data, _COUNTED):
            task = open_tasks.get(event.run)
            if task is None or (isinstance(data, TaskGraded) and not event.run and task.grade):
                task = begin(event, "")
            _take(task, event)
    return [task for task in found if task.counts]


def _take(task: _Task, event: Event) -> None:
    """Add a call, a grade or an end to a task."""
    task.seq, task.at = event.seq, event.at
    match event.data:
        case TaskGraded() as grade:
            task.grade = grade
            task.said.append(Action(text=grade.task, domain=grade.domain))
        case RunEnded():
            task.ended = True
        case AgentMessageSent() as answer:
            _check(task, answer)
        case ToolCallExecuted() as call if not event.actor.startswith("tool:"):
            _check(task, call)
            if call.changes or not is_reading(call.tool, call.command):
                (task.said if call.status == "DENIED" else task.done).append(_action(event, call))


def _check(task: _Task, fact: ToolCallExecuted | AgentMessageSent) -> None:
    kept, broke = checked_rules([fact])
    task.checked |= dict.fromkeys(kept, True) | dict.fromkeys(broke, False)


def _action(event: Event, call: ToolCallExecuted) -> Action:
    texts = (value for name, value in call.arguments.items() if name != "command")
    return Action(
        text=" ".join(text[:_VALUE_CHARACTERS] for text in texts if isinstance(text, str)),
        command=call.command or str(call.arguments.get("command", ""))[:_TASK_CHARACTERS],
        tool=call.tool,
        paths=tuple(change.path for change in call.changes),
        agent=Actor.parse(event.actor).name if event.actor.startswith("agent:") else "",
    )
