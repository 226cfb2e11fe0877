"""The token budget of a dispatch: the window, minus the provider's prompt, minus the reserve for the answer.

Everything an agent is given is counted before it is sent, including headers and fences. If it does not fit,
it is cut in a fixed order, and only as far as needed. Growing files keep their latest sections, and one
sentence of each older one. Other files keep the sections that matter. Then the task is split over many files.
Secondary files are left out last. Each file states what was cut.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.pipelines.definition.pipeline import AgentType, Role
from agentx.synthesis.pipelines.definition.plan import Step
from agentx.synthesis.pipelines.dispatching.cutting import Candidate, Cuttable, Form, Given, fenced, fill
from agentx.synthesis.pipelines.dispatching.passages import Wanted
from agentx.synthesis.pipelines.templates import fill as filled

__all__ = ["Candidate", "Fitted", "Given", "NoRoom", "fenced", "fit", "item_of", "task_words"]


_PART_TOKENS = 64
"""Reserve for a longer prompt of a part: its files have different names."""


_Parts = tuple[tuple[str, ...], ...]
"""The paths of each part of a split task."""


class NoRoom(AgentXError):
    """What an agent has to read does not fit into its window, even after all cuts.

    Attributes:
        needed: Tokens of the prompt and of what remains after all cuts.
        max_tokens: Available tokens.
        path: The largest of the files.
    """

    def __init__(self, needed: int, max_tokens: int, path: str, files: int = 0, max_files: int = 0) -> None:
        if needed > max_tokens:
            said = f"The agent's files need at least {needed:,} tokens, and {max_tokens:,} are available"
            said += f"; the largest file is {path}." if path else "."
        else:
            said = f"The agent has {files:,} files to read; its type allows {max_files:,}."
        super().__init__(
            f"{said} Raise the limits of its type (`window`, `max_files`), let files be cut (`fit: recent`, "
            "`fit: sections`), mark some `if_room`, or split the task (`split`)."
        )
        self.needed, self.max_tokens, self.path = needed, max_tokens, path


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """The files given to an agent, and how they fill its window.

    Attributes:
        given: Its files; for a split task, those of all parts.
        left_out: Secondary files that did not fit, each with the reason.
        parts: For a split task, the paths that belong to one part only. All other files belong to every part.
        done: Number of parts, from the first, that are done.
        reads_tokens: Tokens of the given files and of the lines about those left out; for a split task, of
            its largest part.
        prompt_tokens: Tokens of the rest of the prompt.
        max_tokens: Budget for prompt and files: the window, minus ``system``, minus ``output``.
    """

    given: tuple[Given, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    done: int = 0
    reads_tokens: int
    prompt_tokens: int
    system: int
    output: int
    window: int
    max_tokens: int

    def part(self, number: int) -> "Fitted":
        """Return the files of one part of a split task.

        Parts are counted from 1.
        """
        others = {path for n, paths in enumerate(self.parts, start=1) if n != number for path in paths}
        given = tuple(one for one in self.given if one.path not in others)
        tokens = sum(one.tokens for one in given) + _left_out_tokens(self.left_out)
        return msgspec.structs.replace(self, given=given, parts=(), reads_tokens=tokens)


def fit(
    candidates: Sequence[Candidate],
    agent: AgentType,
    *,
    prompt_tokens: int,
    about: str,
    split: str = "",
    item: Mapping[str, Any] | None = None,
    done: Sequence[tuple[str, int]] = (),
) -> Fitted:
    """Fit what a role reads into the window of its agent; files that fit are given whole.

    Args:
        candidates: Its files, in the order in which they are given.
        agent: The agent type.
        prompt_tokens: Tokens of the prompt without the lines and contents of files.
        about: Words of the task; they decide which sections matter.
        split: Name of the file that the task may be split over; empty for none.
        done: For each finished part of a split task, its last path and its number of files. These parts stay
            as they are; the rest is cut again.
        item: Values of the item (``id``, ``number``, ``title``). A section with one of them in its heading
            matters most.

    Raises:
        NoRoom: It does not fit, even after all cuts.
    """
    room = agent.window - agent.system - agent.output - prompt_tokens
    wanted = Wanted(about, item or {})
    files = [Cuttable(one, wanted) for one in candidates]
    secondary = [file for file in files if file.rule.if_room]
    settled = _settled([one.path for one in candidates if one.rule.file == split], done)
    for kept in range(len(secondary), -1, -1):
        left_out = tuple((file.one.path, _why(file)) for file in secondary[kept:])
        rest = [file for file in files if file not in secondary[kept:]]
        left = room - _left_out_tokens(left_out)
        given = _together(rest, left) if len(rest) <= agent.max_files and not settled else None
        parts: _Parts = ()
        if given is None and (split_up := _in_parts(rest, left, agent.max_files, split, settled)):
            given, parts = split_up
        if given is not None:
            fitted = Fitted(
                given=tuple(given),
                left_out=left_out,
                parts=parts,
                done=len(settled),
                reads_tokens=sum(one.tokens for one in given) + _left_out_tokens(left_out),
                prompt_tokens=prompt_tokens,
                system=agent.system,
                output=agent.output,
                window=agent.window,
                max_tokens=room + prompt_tokens,
            )
            largest = max((fitted.part(n).reads_tokens for n in range(1, len(parts) + 1)), default=0)
            return msgspec.structs.replace(fitted, reads_tokens=largest) if parts else fitted
    unread = _left_out_tokens([(file.one.path, _why(file)) for file in secondary])
    raise _no_room([file for file in files if not file.rule.if_room], split, agent, prompt_tokens + unread)


def item_of(step: Step) -> dict[str, Any]:
    """Return the values of a step's item; empty for a stage that is done once."""
    if step.of is None:
        return {}
    values = {key: one for part in reversed(step.of.parts.values()) for key, one in part.items()}
    return values | {"id": step.item, "number": step.of.number}


def task_words(role: Role, step: Step) -> str:
    """Return the words of a task, which decide what matters in a long file."""
    return " ".join([filled(role.task, step.values), *(str(value) for value in item_of(step).values())])


def _together(files: Sequence[Cuttable], room: int) -> list[Given] | None:
    """Return all files at once, each cut no further than needed; ``None`` if they do not fit."""
    forms: dict[Cuttable, Form] = dict.fromkeys(files, "whole")
    needed = sum(file.whole_tokens for file in files)
    largest = sorted(files, key=lambda file: -file.whole_tokens)
    growing = [file for file in largest if file.rule.fit == "recent"]
    # First growing files are cut to recent sections, then other files to sections that matter, then the older
    # sections of growing files to those that matter; of each, the largest file first.
    cuts: list[tuple[Cuttable, Form]] = [(file, "recent") for file in growing]
    cuts += [(file, "open") for file in largest if file.rule.fit == "sections"]
    cuts += [(file, "open") for file in growing]
    for file, form in cuts:
        if needed <= room:
            break
        saved = file.takes(forms[file]) - file.takes(form)
        if saved > 0:
            forms[file], needed = form, needed - saved
    if needed > room:
        return None
    opened = [file for file in files if forms[file] == "open"]
    closed = [file for file in files if forms[file] != "open"]
    given = {file: file.recent if forms[file] == "recent" else file.whole for file in closed}
    left = room - sum(one.tokens for one in given.values())
    given |= dict(zip(opened, fill(opened, left), strict=True))
    return [given[file] for file in files]


def _in_parts(
    files: Sequence[Cuttable], room: int, max_files: int, split: str, settled: _Parts
) -> tuple[list[Given], _Parts] | None:
    """Split the task over the files of ``split``, in their order, with all other files in every part.

    Returns all files, and the paths of each part; ``None`` if they do not fit.
    """
    many = [file for file in files if file.rule.file == split]
    shared = [file for file in files if file.rule.file != split]
    done = {path for part in settled for path in part}
    rest = [file for file in many if file.one.path not in done]
    each = room - sum(file.smallest for file in shared) - _PART_TOKENS
    most = max_files - len(shared)
    if not settled and (len(many) <= 1 or most < 1):
        return None
    if any(min(file.whole_tokens, file.least) > each for file in rest):
        return None
    given = {file: file.whole if file.whole_tokens <= each else fill([file], each)[0] for file in rest}
    parts: list[list[Given]] = [[]] if rest else []
    for one in given.values():
        if len(parts[-1]) == most or sum(other.tokens for other in parts[-1]) + one.tokens > each:
            parts.append([])
        parts[-1].append(one)
    largest = max((sum(one.tokens for one in part) for part in parts), default=0)
    given |= dict(zip(shared, _together(shared, room - largest) or (), strict=True))
    given |= {file: file.whole for file in many if file not in given}
    paths = (*settled, *(tuple(one.path for one in part) for part in parts))
    return [given[file] for file in files], paths if len(paths) > 1 or settled else ()


def _settled(paths: Sequence[str], done: Sequence[tuple[str, int]]) -> _Parts:
    """Return the paths of each finished part, up to the first whose files changed since."""
    found: list[tuple[str, ...]] = []
    begin = 0
    for last, many in done:
        end = begin + many
        if not many or paths[end - 1 : end] != [last]:
            break
        found.append(tuple(paths[begin:end]))
        begin = end
    return tuple(found)


def _no_room(files: Sequence[Cuttable], split: str, agent: AgentType, prompt_tokens: int) -> NoRoom:
    """Return the error that explains why nothing helps."""
    many = [file for file in files if file.rule.file == split]
    if len(many) > 1:
        alone = _PART_TOKENS + max(min(file.whole_tokens, file.least) for file in many)
        needed = alone + sum(file.smallest for file in files if file not in many)
    else:
        needed = sum(file.smallest for file in files)
    largest = max(files, key=lambda file: file.smallest).one.path if files else ""
    room = agent.window - agent.system - agent.output
    return NoRoom(prompt_tokens + needed, room, largest, len(files), agent.max_files)


def _why(file: Cuttable) -> str:
    return f"left out, no room for its {file.whole_tokens:,} tokens"


def _left_out_tokens(left_out: Sequence[tuple[str, str]]) -> int:
    return sum(count_tokens(f"- Read only if there is room: {path} — {why}\n") for path, why in left_out)
