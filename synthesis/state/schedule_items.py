"""Which memory items concern the runs of a schedule: no run is held to the task of another one."""

import msgspec

from agentx.synthesis.memory.items import CheckpointDetail, MemoryItem
from agentx.synthesis.state.state import State


def concerns(state: State, item: MemoryItem, schedule: str) -> bool:
    """Return whether an item concerns the runs of a schedule; the empty id is for runs without one.

    An item that rests on the tasks of schedules alone concerns these, as long as the task is in effect. A
    checkpoint concerns the schedule whose director made it.
    """
    if isinstance(item.detail, CheckpointDetail):
        return item.detail.schedule == schedule
    seqs = {one.seq for one in item.evidence}
    if not seqs or not seqs.issubset(seq for told in state.tasks.values() for seq in told):
        return True
    known = state.schedules.get(schedule)
    return known is not None and known.told in seqs


def of_schedule(state: State, schedule: str) -> State:
    """Return the state without the items, pending calls and messages that concern other schedules only."""
    items = {name: item for name, item in state.items.items() if concerns(state, item, schedule)}
    others = {run.run for run in state.runs if run.schedule != schedule}
    pending = {name: call for name, call in state.pending.items() if call.run not in others}
    told = {seq for name, seqs in state.tasks.items() if name != schedule for seq in seqs}
    messages = [message for message in state.messages if message.seq not in told]
    return msgspec.structs.replace(state, items=items, pending=pending, messages=messages)


def stated_by(state: State, schedule: str) -> State:
    """Return the state with the items that rest on a schedule's tasks only.

    A new task is compared with these alone: it changes neither other schedules' demands nor those for all.
    """
    told = set(state.tasks.get(schedule, ()))
    items = {
        name: item
        for name, item in state.items.items()
        if item.evidence and told.issuperset(one.seq for one in item.evidence)
    }
    return msgspec.structs.replace(state, items=items)
