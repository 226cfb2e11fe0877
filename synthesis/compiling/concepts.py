"""What programmers call things in code, and what finds them: the data of ``concepts.yaml``."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from agentx.synthesis.enforcement.syntax_trees import LANGUAGES
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.pipelines.definition.yaml_lines import data_of

Finder = dict[str, Any] | tuple[str, ...]
"""A rule of ast-grep, or patterns of which any matches."""

_ALL = tuple(dict.fromkeys(LANGUAGES.values()))


class Concept(msgspec.Struct, frozen=True, kw_only=True):
    """A thing that rules name in words.

    Attributes:
        words: The words.
        finders: By language, what finds it.
    """

    words: re.Pattern[str]
    finders: dict[tuple[str, ...], Finder]


class Concepts(msgspec.Struct, frozen=True, kw_only=True):
    """All of them.

    Attributes:
        forbidden: What may not be written.
        required: What declarations must have; the finders find those without it.
        opposites: What is demanded, and the concept that takes its place otherwise.
        texts: Words for marks and forms of text, the regular expressions that find them, and
            the globs of the files that can have them; none for any text.
    """

    forbidden: tuple[Concept, ...]
    required: tuple[Concept, ...]
    opposites: tuple[tuple[re.Pattern[str], Concept], ...]
    texts: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...]


@cache
def concepts() -> Concepts:
    """Return the concepts of the data file."""
    text = (files("agentx.synthesis.compiling") / "concepts.yaml").read_text("utf-8")
    data = data_of(text)
    forbidden = tuple(map(_concept, data["forbidden"]))
    opposites = tuple(
        (on_use(one["words"], re.IGNORECASE), next(c for c in forbidden if c.words.search(one["forbids"])))
        for one in data["opposites"]
    )
    return Concepts(
        forbidden=forbidden,
        required=tuple(map(_concept, data["required"])),
        opposites=opposites,
        texts=tuple(
            (on_use(one["words"], re.IGNORECASE), one["pattern"], tuple(one.get("files", "").split()))
            for one in data["texts"]
        ),
    )


def _concept(entry: dict[str, Any]) -> Concept:
    finders = {
        tuple(names.split()) if names != "all" else _ALL: tuple(one) if isinstance(one, list) else one
        for names, one in entry["in"].items()
    }
    return Concept(words=on_use(entry["words"], re.IGNORECASE), finders=finders)
