"""The context budget of a dispatch: window, less the provider's prompt, less what is kept free for the answer.

Everything that an agent is given is counted before it is sent, with the headers and fences that it stands in. Where there is not room
for all, it is cut in one order, and only as far as needed: of files that grow, the latest sections whole and of older ones a
sentence; of others, the sections that matter; the task split over many files; and at last secondary files left out. What was cut is
said in words with each file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agentx.storage.errors import AgentXError
from agentx.synthesis.pipelines.definition import AgentType, Read
from agentx.synthesis.tokens import count_tokens


class NoRoom(AgentXError):
    """What an agent has to read does not fit into its window, whatever is cut.

    Attributes:
        needed: Tokens of the prompt and of what is left after all cuts.
        max_tokens: What there is room for.
        path: The largest of the files.
    """

    def __init__(self, needed: int, max_tokens: int, path: str) -> None:
        largest = f"; the largest of its files is {path}" if path else ""
        super().__init__(
            f"What the agent is to read takes {needed:,} tokens and there is room for {max_tokens:,}{largest}. "
            "Give it a larger `window`, let files be cut (`fit: recent` or `fit: sections`), mark one `if_room`, or split the task (`split`)."
        )
        self.needed, self.max_tokens, self.path = needed, max_tokens, path


class Candidate(msgspec.Struct, frozen=True):
    """A file that a role reads, as it stands.

    Attributes:
        path: As the agent is told it: relative to the artifacts, ``NAME:path`` for a source tree.
        blob: Git blob id of the whole of it.
    """

    rule: Read
    path: str
    text: str
    blob: str = ""


class Given(msgspec.Struct, frozen=True):
    """A file as an agent is given it.

    Attributes:
        text: What it is given of it, with a note wherever something was left out.
        tokens: Of that text, with its header, its fence and its line in the prompt.
        whole_tokens: What the whole file would have taken.
        cut: What was cut, in words; empty where it is whole.
        blob: Git blob id of the whole file.
    """

    path: str
    purpose: str
    text: str
    tokens: int
    whole_tokens: int
    cut: str = ""
    blob: str = ""


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is given, and how that fills its window.

    Attributes:
        given: Its files; where the task is split, those of all parts.
        left_out: Secondary files that there was no room for, each with why.
        parts: Where the task is split, the paths that belong to each part alone; what stands in none of them belongs to all.
        reads_tokens: Of what is given and of the lines that tell what is left out; where the task is split, of its largest part.
        prompt_tokens: Of the rest of the prompt.
        max_tokens: What prompt and files may take: the window, less ``system``, less ``output``.
    """

    given: tuple[Given, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    reads_tokens: int
    prompt_tokens: int
    system: int
    output: int
    window: int
    max_tokens: int

    def part(self, number: int) -> "Fitted":
        """What one part of a split task is given.

        Args:
            number: From 1.
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
) -> Fitted:
    """Fit what a role reads into the window of the agent that plays it; what fits is given whole.

    Args:
        prompt_tokens: Of the prompt without the lines and contents of files.
        about: Words of the task; they decide which sections matter.
        split: Name of the file of many that the task may be split over; empty for none.
        item: Values of the item (``id``, ``number``, ``title``): a section with one of them in its heading matters most.

    Raises:
        NoRoom: It does not fit, whatever is cut.
    """
    max_tokens = agent.window - agent.system - agent.output
    given = tuple(_whole(one) for one in candidates)
    reads = sum(one.tokens for one in given)
    if prompt_tokens + reads > max_tokens:
        largest = max(given, key=lambda one: one.tokens).path if given else ""
        raise NoRoom(prompt_tokens + reads, max_tokens, largest)
    return Fitted(
        given=given,
        reads_tokens=reads,
        prompt_tokens=prompt_tokens,
        system=agent.system,
        output=agent.output,
        window=agent.window,
        max_tokens=max_tokens,
    )


def fenced(given: Given) -> str:
    """A file as it stands in a prompt: between fences longer than any in it, so that it cannot end its own quotation."""
    fence = _fence(given.text)
    cut = f" ({given.cut})" if given.cut else ""
    return f"File {given.path}{cut}:\n{fence}\n{given.text.rstrip()}\n{fence}"


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _whole(one: Candidate) -> Given:
    given = Given(one.path, one.rule.purpose, one.text, 0, 0, "", one.blob)
    tokens = count_tokens(f"- Read: {one.path} — {one.rule.purpose}\n\n{fenced(given)}\n\n")
    return msgspec.structs.replace(given, tokens=tokens, whole_tokens=tokens)


def _left_out_tokens(left_out: Sequence[tuple[str, str]]) -> int:
    return sum(count_tokens(f"- Read only if there is room: {path} — {why}\n") for path, why in left_out)
