"""Check an agent's write or answer against the rules that code can check.

Pure: texts in, violations out. Only active constraints and rejections with a compiled check are enforced. A
rule that the user may have ended is not: the user is asked (:func:`asked_about`).
What cannot be checked with certainty (a file that does not parse, binary content) passes.
"""

import ast
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import msgspec
from pathspec import GitIgnoreSpec

from agentx.synthesis.gates.python_functions import (
    PythonFunction,
    functions_of,
    is_meant,
    names_defined,
    parse_python,
)
from agentx.synthesis.language.words import content_words, stem
from agentx.synthesis.memory.items import (
    Check,
    ConstraintDetail,
    ForbidPath,
    ForbidText,
    MemoryItem,
    RejectionDetail,
    RequireDecorator,
    RequireImport,
)

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_BETWEEN_WORDS = r"[\s_*`~\-]{1,8}"
"""Characters allowed between the words of a phrase: a line break, a hyphen, emphasis."""

RELATED: dict[str, str] = {
    "future": (
        "future outlook forecast prospect prospects roadmap upcoming ahead tomorrow long-term prediction"
        " predictions 2030"
    ),
    "history": "history past origin origins founded founding early background",
    "finances": "finances finance financial money budget revenue cost costs",
    "prices": "prices price pricing cost costs fee fees",
    "security": "security secure vulnerability authentication authorization encryption",
    "performance": "performance speed fast slow latency throughput",
}
"""Words that show that a text is about a general subject without naming it."""


@cache
def _related() -> dict[str, frozenset[str]]:
    return {stem(key): frozenset(map(stem, words.split())) for key, words in RELATED.items()}


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a write or an answer breaks.

    Attributes:
        item_id: The rule's id.
        rule: The rule, in full.
        sentence: The user's sentence that the rule came from.
        reason: One sentence: what breaks the rule, and where.
        path: The file; empty for an answer.
        line: Line in the new text, from 1; 0 if none applies.
    """

    item_id: str
    rule: str
    sentence: str
    reason: str
    path: str = ""
    line: int = 0


def check_write(
    items: Iterable[MemoryItem], path: str, before: str | None, after: str | None, *, message: str = ""
) -> tuple[Violation, ...]:
    """Return the rules that a write would break.

    Existing content is not held against a write: a phrase, a function or an import that is already in
    ``before`` passes. If both texts are ``None``, the content is binary and only the path is checked. Call
    :func:`check_path` if binary content replaces a text.

    Args:
        items: Memory items; those that are not enforced are skipped.
        path: Path relative to the artifacts root.
        before: The file's current text; ``None`` if it does not exist or is binary.
        after: The text after the write; ``None`` for a deletion or for binary content.
        message: The user's message that the agent works on, which may name the topic.

    >>> from agentx.synthesis.memory.items import ConstraintDetail, ForbidPath, MemoryItem
    >>> check = ForbidPath(("**/requirements.txt",))
    >>> detail = ConstraintDetail(check=check)
    >>> rule = MemoryItem(id="c-1", kind="constraint", text="No requirements.txt", detail=detail)
    >>> [violation.reason for violation in check_write([rule], "api/Requirements.TXT", None, "flask")]
    ['No file may be written at api/Requirements.TXT.']
    """
    if after is None:
        return check_path(items, path) if before is None else check_removal(items, path)
    found: list[Violation] = []
    for item, check in _enforced(items):
        if not _in_scope(item, path):
            continue
        match check:
            case ForbidPath():
                found += check_path((item,), path)
            case ForbidText():
                found += _forbidden_text(item, check, path, before, after, message)
            case RequireDecorator():
                found += _missing_decorators(item, check, path, before, after)
            case RequireImport():
                found += _imports(item, check, path, before, after)
    return tuple(found)


def check_path(items: Iterable[MemoryItem], path: str) -> tuple[Violation, ...]:
    """Return the rules that a write of binary content would break; only rules about paths can be checked.

    Args:
        items: Memory items; those that are not enforced are skipped.
        path: Path relative to the artifacts root.
    """
    return _forbidden(items, path, f"No file may be written at {path}.")


def check_removal(items: Iterable[MemoryItem], path: str) -> tuple[Violation, ...]:
    """Return the rules that deleting or moving a file would break: only rules that freeze existing files.

    Args:
        items: Memory items; those that are not enforced are skipped.
        path: Path relative to the artifacts root.
    """
    return _forbidden(items, path, f"{path} may not be deleted or moved.", frozen=True)


def _forbidden(
    items: Iterable[MemoryItem], path: str, told: str, *, frozen: bool = False
) -> tuple[Violation, ...]:
    """Return violations of path rules; with ``frozen``, only of rules that freeze existing files."""
    return tuple(
        _violation(item, told, path)
        for item, check in _enforced(items)
        if isinstance(check, ForbidPath)
        and (check.frozen or not frozen)
        and _in_scope(item, path)
        and matches(check.globs, path)
    )


def check_answer(items: Iterable[MemoryItem], text: str, *, message: str = "") -> tuple[Violation, ...]:
    """Return the rules that a final answer would break.

    Args:
        items: Memory items; those that are not enforced are skipped.
        text: The answer.
        message: The user's message that it answers, which may name the topic.
    """
    found: list[Violation] = []
    for item, check in _enforced(items):
        if (
            not isinstance(check, ForbidText)
            or not check.answers
            or check.globs
            or not about(check.topic, text, message)
        ):
            continue
        found += [
            _violation(item, f"The answer says “{phrase}”.", "", lines[0])
            for phrase in check.phrases
            if (lines := _lines_of(phrase, text))
        ]
    return tuple(found)


def _enforced(items: Iterable[MemoryItem]) -> Iterator[tuple[MemoryItem, Check]]:
    for item in items:
        detail = item.detail
        if (
            item.status != "active"
            or item.perhaps_ended_by
            or not isinstance(detail, ConstraintDetail | RejectionDetail)
        ):
            continue
        wish = isinstance(detail, ConstraintDetail) and detail.modality == "prefer"
        if detail.check and not wish:
            yield item, detail.check


def asked_about(items: Iterable[MemoryItem]) -> dict[str, MemoryItem]:
    """Return the rules that the user may have ended, by id, as they would be enforced otherwise."""
    doubtful = (item for item in items if item.perhaps_ended_by)
    return {item.id: msgspec.structs.replace(item, perhaps_ended_by=()) for item in doubtful}


def perhaps_ended(item: MemoryItem) -> str:
    """Return the note that the user may have ended a rule, with the latest words; empty if they did not."""
    words = item.perhaps_ended_by[-1:]
    return f"perhaps ended by “{words[0].quote}”" if words else ""


def _violation(item: MemoryItem, reason: str, path: str, line: int = 0) -> Violation:
    sentence = item.evidence[0].quote if item.evidence else item.text
    return Violation(
        item_id=item.id, rule=item.text, sentence=sentence or item.text, reason=reason, path=path, line=line
    )


# --- paths --------------------------------------------------------------------------------------------------


def matches(globs: tuple[str, ...], path: str) -> bool:
    """Return whether a path matches one of the globs (gitignore rules), compared leniently.

    Case, Unicode composition, dots and spaces at the end of a name and backslashes make no difference, as on
    lenient file systems.

    >>> matches(("**/requirements.txt",), "API/Requirements.txt. ")
    True
    """
    visible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", path)).casefold().replace("\\", "/")
    names = [name if name in {".", ".."} else name.rstrip(". ").lstrip(" ") for name in visible.split("/")]
    plain = posixpath.normpath("/".join(name for name in names if name)).lstrip("/")
    return bool(globs) and _spec(globs).match_file(plain)


@lru_cache(maxsize=512)
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(unicodedata.normalize("NFKC", glob).casefold() for glob in globs)


def _in_scope(item: MemoryItem, path: str) -> bool:
    return not item.scope.paths or matches(item.scope.paths, path)


# --- text ---------------------------------------------------------------------------------------------------


def about(topic: str, *texts: str) -> bool:
    """Return whether texts, taken together, are about a topic.

    They must contain its content words, or related ones: all of one or two words, two thirds of more.
    An empty topic matches everything.

    >>> about("tesla's future", "Tesla has a bright outlook"), about("tesla's future", "The future of SpaceX")
    (True, False)
    """
    wanted = content_words(topic)
    if not wanted:
        return True
    there = frozenset[str]().union(*(content_words(text) for text in texts))
    found = sum(1 for word in wanted if word in there or _related().get(word, frozenset()) & there)
    return 3 * found >= 2 * len(wanted)


def _forbidden_text(
    item: MemoryItem, check: ForbidText, path: str, before: str | None, after: str, message: str
) -> Iterator[Violation]:
    if (
        not check.files
        or (check.globs and not matches(check.globs, path))
        or not about(check.topic, after, path, message)
    ):
        return
    for phrase in check.phrases:
        now, then = _lines_of(phrase, after), _lines_of(phrase, before or "")
        if len(now) > len(then):
            earlier = set((before or "").splitlines())
            lines = after.splitlines()
            fresh = [line for line in now if line > len(lines) or lines[line - 1] not in earlier]
            line = (fresh or now)[0]
            yield _violation(item, f"Line {line} of {path} says “{phrase}”.", path, line)


def _lines_of(phrase: str, text: str) -> list[int]:
    plain = _plain_text(text)
    return [plain.count("\n", 0, match.start()) + 1 for match in _phrase_pattern(phrase).finditer(plain)][
        :100
    ]


def _plain_text(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")


@lru_cache(maxsize=512)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in _plain_text(phrase).split()] or [r"(?!)"]
    # A letter or digit next to the phrase makes it another word. An underscore does not: it joins words in
    # names.
    opens = r"(?<![^\W_])" if re.match(r"\w", _plain_text(phrase).strip() or " ") else ""
    closes = r"(?![^\W_])" if re.search(r"\w$", _plain_text(phrase).strip() or " ") else ""
    return re.compile(opens + _BETWEEN_WORDS.join(words) + closes)


# --- code ---------------------------------------------------------------------------------------------------


def _missing_decorators(
    item: MemoryItem, check: RequireDecorator, path: str, before: str | None, after: str
) -> Iterator[Violation]:
    tree = parse_python(after) if matches(check.globs, path) else ""
    if not isinstance(tree, ast.Module):
        return
    known = names_defined(before or "")
    kind = f"{check.functions} " if check.functions else ""
    for function in functions_of(tree):
        if (
            function.name not in known
            and is_meant(function, check.functions)
            and not _carries(function, check.decorator)
        ):
            reason = (
                f"{function.name} at line {function.line} of {path} is a new {kind}function "
                f"without @{check.decorator}."
            )
            yield _violation(item, reason, path, function.line)


def _carries(function: PythonFunction, decorator: str) -> bool:
    """Return whether a function has the decorator, or is the decorator itself."""
    wanted = decorator.rpartition(".")[2]
    return function.node.name == wanted or any(
        name == decorator or name.rpartition(".")[2] == decorator or (name == wanted and "." in decorator)
        for name in function.decorators
    )


def _imports(
    item: MemoryItem, check: RequireImport, path: str, before: str | None, after: str
) -> Iterator[Violation]:
    tree = parse_python(after) if matches(check.globs, path) else ""
    if not isinstance(tree, ast.Module):
        return
    lines = _import_lines(tree, check.module)
    if check.forbidden:
        earlier = parse_python(before or "")
        if lines and not (
            isinstance(earlier, ast.Module) and len(_import_lines(earlier, check.module)) >= len(lines)
        ):
            yield _violation(item, f"Line {lines[0]} of {path} imports {check.module}.", path, lines[0])
    elif not lines and not all(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree.body
    ):  # a file with only a docstring needs no import
        yield _violation(item, f"{path} does not import {check.module}.", path, 1)


def _import_lines(tree: ast.Module, module: str) -> list[int]:
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        if any(name == module or name.startswith(f"{module}.") for name in names):
            lines.append(node.lineno)
    return sorted(lines)
