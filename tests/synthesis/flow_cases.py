"""The flows of ``flow_phrasings.txt`` as a state, each way to ask for one, and what no flow is for."""

from pathlib import Path
from typing import NamedTuple

from agentx.synthesis.memory.items import FlowDetail, MemoryItem
from agentx.synthesis.state.state import State

PLACE = Path(__file__).with_name("flow_phrasings.txt")


class Case(NamedTuple):
    """Something that is about to be done, and the flow that it calls for (empty for none).

    Attributes:
        half: 0 for what the thresholds were set on, 1 for the rest.
        own_words: Whether it says what a name or a trigger says; otherwise it is put in other words.
    """

    text: str
    flow: str
    half: int
    own_words: bool = False


def flow(seq: int, name: str, triggers: tuple[str, ...] = (), **detail: object) -> MemoryItem:
    """A flow of one step."""
    made = FlowDetail(("Do it.",), triggers, **detail)
    return MemoryItem(id=f"f-{seq}", kind="flow", text=name, trust="user", detail=made, created_seq=seq)


def read_cases() -> tuple[State, list[Case]]:
    """All of it."""
    state, cases = State(), []
    name, asked, unrelated = "", 0, 0
    for line in PLACE.read_text("utf-8").splitlines():
        match line[:2].strip():
            case "#" | "":
                continue
            case "##":
                name, asked = line[3:], 0
            case ">":
                item = flow(len(state.items) + 1, name, tuple(line[2:].split("; ")))
                state.items[item.id] = item
            case _ if name == "-":
                cases.append(Case(line, "", unrelated % 2))
                unrelated += 1
            case _:
                number = len(state.items)
                cases.append(Case(line, f"f-{number}", (number - 1) % 2, own_words=asked < 3))
                asked += 1
    return state, cases
