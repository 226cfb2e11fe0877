"""The semantics of a :class:`Filter`, as predicate and as SQL; the contract suite checks that they agree."""

import fnmatch
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from agentx.storage.errors import UsageError
from agentx.storage.index.port import OPEN, Chunk, Filter
from agentx.storage.text import encodable

MAX_PATH_CHARS = 1_000
"""A longer path filter is refused."""


def predicate(where: Filter) -> Callable[[Chunk], bool]:
    """Compile a filter to a test of one chunk.

    Raises:
        UsageError: ``since`` or ``before`` is not an ISO date or time, or ``path`` is too long.
    """
    since, before = canonical_time(where.since), canonical_time(where.before)
    source = None if where.source is None else encodable(where.source)
    actor, is_prefix = encodable(where.actor), where.actor.endswith(":")
    in_path = path_test(where.path)

    def matches(chunk: Chunk) -> bool:
        return (
            (not where.kinds or chunk.kind in where.kinds or chunk.file_kind in where.kinds)
            and (source is None or chunk.source == source)
            and (chunk.to_seq == OPEN if where.as_of is None else chunk.seq <= where.as_of < chunk.to_seq)
            and (not actor or chunk.actor == actor or (is_prefix and chunk.actor.startswith(actor)))
            and (not since or (chunk.at != "" and chunk.at >= since))
            and (not before or (chunk.at != "" and chunk.at < before))
            and in_path(chunk.path)
        )

    return matches


def sql(where: Filter, *, closed: bool = False) -> str:
    """Translate a filter to an SQL condition on a table with columns named as the fields of :class:`Chunk`.

    Args:
        where: The filter.
        closed: Let closed chunks pass as well if the filter asks for open ones; the condition may then be
            empty.

    Raises:
        UsageError: As :func:`predicate`.

    >>> sql(Filter(path="it's", as_of=7))
    "(path = 'it''s' OR (path >= 'it''s/' AND path < 'it''s0')) AND seq <= 7 AND to_seq > 7"
    """
    parts = []
    if where.kinds:
        parts.append(f"({any_of('kind', where.kinds)} OR {any_of('file_kind', where.kinds)})")
    if where.source is not None:
        parts.append(f"source = {literal(where.source)}")
    if where.actor.endswith(":"):
        parts.append(_starts_with("actor", where.actor))
    elif where.actor:
        parts.append(f"actor = {literal(where.actor)}")
    if where.since:
        parts.append(f"at >= {literal(canonical_time(where.since))}")
    if where.before:
        parts.append(f"at < {literal(canonical_time(where.before))}")
    if where.before and not where.since:
        parts.append("at > ''")
    if path := _path_of(where.path):
        exact = f"(path = {literal(path)} OR {_starts_with('path', path + '/')})"
        parts += _glob_sql(path, literal(where.path)) if "*" in path or "?" in path else [exact]
    if where.as_of is None:
        parts += [] if closed else [f"to_seq = {OPEN}"]
    else:
        parts.append(f"seq <= {int(where.as_of)} AND to_seq > {int(where.as_of)}")
    return " AND ".join(parts)


def literal(text: str) -> str:
    """Quote text as an SQL string; only the quote needs escaping, and lone surrogates are replaced."""
    return "'" + encodable(text).replace("'", "''") + "'"


def any_of(column: str, values: Sequence[str]) -> str:
    """Return the condition "this column is one of these texts"; false for no texts."""
    return f"{column} IN ({', '.join(map(literal, values))})" if values else "false"


def canonical_time(text: str) -> str:
    """Convert a date or time to a form that sorts as text with the ``at`` of events: UTC, without ``Z``.

    Raises:
        UsageError: It is not an ISO date or time.

    >>> canonical_time("2026-11-20"), canonical_time("2026-11-20T10:00:00+02:00")
    ('2026-11-20', '2026-11-20T08:00:00')
    """
    if not text or re.fullmatch(r"\d{4}(-\d\d){0,2}", text, re.ASCII):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{text[:40]!r} is not an ISO date or time; write it as 2026-11-20 or 2026-11-20T09:30:00Z."
        ) from error
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat().removesuffix("+00:00")


def path_test(text: str) -> Callable[[str], bool]:
    """Compile the path of a filter to a test of one path.

    Raises:
        UsageError: It is too long.
    """
    text = encodable(text)
    path = _path_of(text)
    if not path:
        return lambda _: True
    if "*" in path or "?" in path:
        return lambda candidate: candidate == text or matches_glob(candidate, path)
    return lambda candidate: candidate == path or candidate.startswith(path + "/")


def matches_glob(path: str, glob: str) -> bool:
    """Return whether a path matches a glob: ``*`` and ``?`` match within one name, ``**`` any directories.

    A glob without a slash matches the name of a file at any depth. There are no character classes.

    >>> matches_glob("src/api/client.py", "src/**/*.py"), matches_glob("src/api/client.py", "src/*.py")
    (True, False)
    """
    tests = _glob_tests(glob)
    states = {0}
    for name in path.split("/"):
        reached = set()
        for state in _past_stars(states, tests) - {len(tests)}:
            test = tests[state]
            if test is None:
                reached.add(state)
            elif test.match(name):
                reached.add(state + 1)
        states = reached
    return len(tests) in _past_stars(states, tests)


@lru_cache(maxsize=64)
def _glob_tests(glob: str) -> tuple[re.Pattern[str] | None, ...]:
    """Return one test for each name of the path; ``None`` matches any number of names."""
    return tuple(
        None if part == "**" else re.compile(fnmatch.translate(part.replace("[", "[[]")))
        for part in _glob_parts(glob)
    )


def _past_stars(states: set[int], tests: tuple[re.Pattern[str] | None, ...]) -> set[int]:
    found = set(states)
    for state in states:
        after = state
        while after < len(tests) and tests[after] is None:
            after += 1
            found.add(after)
    return found


def _glob_parts(glob: str) -> list[str]:
    return glob.split("/") if "/" in glob else ["**", glob]


def _glob_regex(glob: str) -> str:
    """Translate a glob for :func:`matches_glob` to a regular expression of a linear-time engine (Rust's)."""
    parts = _glob_parts(glob)
    written = ""
    for number, part in enumerate(parts, start=1):
        rest = parts[number:]
        if part == "**":
            written += "(?:[^/]*/)*" if rest else "(?:.*)"
            continue
        for char in part:
            wild = {"*": "[^/]*", "?": "[^/]"}
            written += wild.get(char) or ("\\" + char if char in ".^$+{}[]|()\\" else char)
        # A slash before nothing but "**" may also be the end: "app/**" matches "app", as in a walk of names.
        written += "" if not rest else "(?:/|$)" if set(rest) == {"**"} else "/"
    return f"(?s)^{written}$"


def _path_of(text: str) -> str:
    if len(text) > MAX_PATH_CHARS:
        raise UsageError(
            f"The path filter is {len(text)} characters long; at most {MAX_PATH_CHARS} are allowed."
        )
    path = text.removeprefix("./").rstrip("/")
    return "" if path == "." else path


def _glob_sql(glob: str, itself: str) -> list[str]:
    """Return SQL conditions for a glob: on its fixed leading folder, which is indexed, and on the path."""
    parts = _glob_parts(glob)
    fixed = next(number for number, part in enumerate(parts) if "*" in part or "?" in part)
    rest, name = parts[fixed:-1], parts[-1]
    if set(rest) == {"**"} and name.startswith("*") and not set("*?") & set(name[1:]):
        test = f"ends_with(path, {literal(name[1:])})"
    else:
        test = f"regexp_like(path, {literal(_glob_regex(glob))})"
    folder = [_starts_with("path", "/".join(parts[:fixed]) + "/")] if fixed else []
    return [*folder, f"(path = {itself} OR {test})"]


def _starts_with(column: str, prefix: str) -> str:
    # A range instead of LIKE: nothing in the prefix needs escaping. The prefix ends in "/" or ":".
    return f"({column} >= {literal(prefix)} AND {column} < {literal(prefix[:-1] + chr(ord(prefix[-1]) + 1))})"
