"""The front matter of a file of rules: for which files its rules are.

Cursor has ``globs`` (https://cursor.com/docs/context/rules), Copilot ``applyTo``
(https://docs.github.com/en/copilot/how-tos/configure-custom-instructions), Claude Code ``paths``
(https://code.claude.com/docs/en/memory). Cursor's is not YAML: ``globs: *.ts, src/**`` stands without quotes.
So it is read line by line.
"""

import re

import msgspec

_KEYS = frozenset(("globs", "applyto", "paths"))
_LINES = 100
_EVERYTHING = frozenset(("**", "**/*", "*", "**/**", "/**"))
_VALID = re.compile(r"[^\s<>|;\x00-\x1f\\]{1,200}")
MOST = 32
"""Maximum number of patterns."""


class FrontMatter(msgspec.Struct, frozen=True):
    """What a front matter says.

    Attributes:
        globs: Patterns of the files for which the rules are, relative to the directory of the project; empty
            for all.
        text: The whole text with the front matter blanked out, each line at its place.
    """

    globs: tuple[str, ...]
    text: str


def read_front_matter(text: str) -> FrontMatter:
    r"""Return the patterns of a file, and its text without the front matter.

    >>> read_front_matter("---\nglobs: *.ts, src/**\nalwaysApply: false\n---\n- Use tabs.").globs
    ('*.ts', 'src/**')
    >>> read_front_matter('---\npaths:\n  - "api/**/*.py"\n---\n').globs
    ('api/**/*.py',)
    """
    lines = text.split("\n")
    marks = (n for n in range(1, min(len(lines), _LINES)) if lines[n].strip() in ("---", "..."))
    end = next(marks, 0) if lines[0].removeprefix("\ufeff").strip() == "---" else 0
    if not end:
        return FrontMatter((), text)
    found: list[str] = []
    listed = always = False
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if listed and line.lstrip().startswith("- "):
            found += _patterns(line.lstrip().removeprefix("- "))
        elif colon and not line[:1].isspace():
            listed = key.strip().casefold() in _KEYS
            found += _patterns(value) if listed else []
            always = always or (key.strip() == "alwaysApply" and value.strip() == "true")
    blank = "\n".join(["" if number <= end else line for number, line in enumerate(lines)])
    everywhere = always or _EVERYTHING.intersection(found)
    return FrontMatter(() if everywhere else tuple(dict.fromkeys(found))[:MOST], blank)


def _patterns(value: str) -> list[str]:
    parts = re.split(r",(?![^{]*\})", value.strip().strip("[]"))
    tidy = [part.strip().strip("\"'").strip() for part in parts]
    valid = [one.removeprefix("./") for one in tidy if _VALID.fullmatch(one) and ".." not in one.split("/")]
    return [each for one in valid for each in _expanded(one)]


def _expanded(pattern: str) -> list[str]:
    """Return a pattern without braces (``*.{js,ts}``), as gitignore rules know none."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    parts = found[1].split(",")[:MOST]
    made = (f"{pattern[: found.start()]}{part.strip()}{pattern[found.end() :]}" for part in parts)
    return [each for one in made for each in _expanded(one)][:MOST]
