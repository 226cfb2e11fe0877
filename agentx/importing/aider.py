"""Chat histories of aider: ``.aider.chat.history.md`` in a project.

After ``aider/io.py`` (versions 0.30 to 0.86): a heading when a chat starts, the user's lines behind
``####`` with two blanks at their end, notes of aider behind ``>``, and everything else is the model's
answer. The form marks answers by nothing, so an answer that writes such a line with its two blanks would
pass for the user's; outputs of commands cannot, because aider quotes them.
"""

import re
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import Any

from agentx.importing.entries import (
    AgentWords,
    CallResult,
    FileStep,
    HostAside,
    PassedOver,
    ProjectRoot,
    RequestedCall,
    Spent,
    TranscriptEntry,
    UserWords,
)
from agentx.importing.lines import Lines

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*")
_SPENT = re.compile(
    r"> Tokens: (?P<sent>[\d.,]+)(?P<ks>[kM]?) sent,.*?(?P<got>[\d.,]+)(?P<kg>[kM]?) received"
    r"(?:.*?Cost: \$(?P<cost>[\d.]+) message)?"
)
_MODEL = re.compile(r"> (?:Main )?[Mm]odel: (\S+)")
_TALK = re.compile(r"/(?:ask|code|architect|chat-mode \w+)\s+(?P<said>.+)", re.DOTALL)
_BLOCK = re.compile(
    r"^(?P<path>[^\n]{1,300})\n```[^\n]*\n<{5,9} SEARCH\n(?P<old>.*?)^={5,9}\n(?P<new>.*?)^>{5,9} REPLACE",
    re.DOTALL | re.MULTILINE,
)
_APPLIED = re.compile(r"^> Applied edit to (.+?)\s*$", re.MULTILINE)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


def read(lines: Lines) -> Generator[TranscriptEntry]:
    """Read a chat history; see :data:`agentx.importing.entries.Read`."""
    project = lines.path.parent
    session, at, model, number = f"{project.name} 0", "", "", 0
    proposed: list[FileStep] = []
    yield ProjectRoot(id=f"{project} place", session=session, root=str(project))
    for sort, block in groupby(lines.whole().split("\n"), key=_sort):
        text = "\n".join(block)
        number += 1
        own: dict[str, Any] = {"id": f"{session} block {number}", "at": at, "session": session}
        match sort:
            case "started":
                for started in _STARTED.finditer(text):
                    at = f"{started[1]}T{started[2]}"
                    session, number = f"{project.name} {at}", 0
                lines.records += 1
            case "user":
                yield from _said("\n".join(line[5:].rstrip() for line in text.split("\n")), own)
                lines.records += 1
            case "note":
                found = _MODEL.search(text)
                model = found[1] if found else model
                yield HostAside(
                    **own, sort="note of aider", text="\n".join(line[2:] for line in text.split("\n"))
                )
                yield from _spent(text, own, model)
                yield from _applied(text, own, proposed)
                lines.records += 1
            case _ if text.strip():
                yield AgentWords(**own, text=text.strip(), model=model)
                proposed = [
                    FileStep(path=block["path"].strip(), how="edited", old=block["old"], new=block["new"])
                    for block in _BLOCK.finditer(text)
                ]
                lines.records += 1


def _sort(line: str) -> str:
    if _STARTED.fullmatch(line):
        return "started"
    if line.startswith("#### ") and line.endswith("  "):
        return "user"
    return "note" if line.startswith(("> ", ">\n")) else "answer"


def _said(text: str, own: dict[str, Any]) -> Iterator[TranscriptEntry]:
    talk = _TALK.fullmatch(text)
    if talk:
        yield UserWords(**own, text=talk["said"])
    elif text.startswith(("/", "!")):
        yield HostAside(**own, sort="command", text=text)
    elif text.strip() in ("", "<blank>"):
        yield PassedOver(**own, sort="blank input")
    else:
        yield UserWords(**own, text=text)


def _applied(text: str, own: dict[str, Any], proposed: list[FileStep]) -> Iterator[TranscriptEntry]:
    """Tell the edits that aider says it applied, of those in the answer before."""
    for path in dict.fromkeys(_APPLIED.findall(text)):
        call = f"{own['id']} {path}"
        steps = tuple(step for step in proposed if step.path == path)
        yield RequestedCall(
            **{**own, "id": f"{call} call"}, call_id=call, tool="edit", arguments={"path": path}
        )
        yield CallResult(**{**own, "id": f"{call} result"}, call_id=call, output="Applied edit.", steps=steps)


def _spent(text: str, own: dict[str, Any], model: str) -> Iterator[TranscriptEntry]:
    for number, used in enumerate(_SPENT.finditer(text)):
        yield Spent(
            **{**own, "id": f"{own['id']} usage {number}"},
            call=f"{own['id']} {number}",
            model=model,
            prompt_tokens=_count(used["sent"], used["ks"]),
            completion_tokens=_count(used["got"], used["kg"]),
            cost_usd=_number(used["cost"]) if used["cost"] else None,
        )


def _count(digits: str, unit: str) -> int:
    return int(_number(digits.replace(",", "")) * _TIMES[unit])


def _number(digits: str) -> float:
    try:
        return min(float(digits), 1e9)
    except ValueError:
        return 0.0
