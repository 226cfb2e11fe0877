"""What a program prints, where its arguments alone decide it: ``echo``, ``printf``, ``cat``, ``which``."""

import re
from collections.abc import Sequence
from itertools import takewhile

_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_SIGNS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_LAST_UNICODE = 0x10FFFF
_DIRECTIVE = re.compile(r"%(.?)")
_MOST_ROUNDS = 64
_LOOKS_UP = {"which", "command", "basename"}


def unescaped(text: str) -> str:
    r"""Return a text with the escapes of ``$'…'``, ``echo -e`` and ``printf`` replaced.

    >>> unescaped(r"\x67it\040commit")
    'git commit'
    """
    return _ESCAPE.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and code[1:]:
        number = int(code[1:], 16)
    elif code[0] in "01234567":
        number = int(code, 8) & 0xFF
    elif code[0] == "c" and code[1:]:
        number = ord(code[1]) & 0x1F
    else:
        return _SIGNS.get(code, code if code in "\\'\"?" else found[0])
    return chr(number) if number <= _LAST_UNICODE and not 0xD800 <= number < 0xE000 else "\ufffd"  # noqa: PLR2004


def printed(program: str, arguments: Sequence[str], given: str) -> str | None:
    """Return what a program prints; ``None`` if its arguments do not decide it.

    >>> printed("echo", ["-n", "git", "commit"], ""), printed("printf", ["%s %s", "git", "commit"], "")
    ('git commit', 'git commit')
    >>> printed("which", ["git"], ""), printed("cat", ["notes"], "")
    ('git', None)
    """
    words = list(arguments)
    if program == "cat":
        return given if given and not words else None
    if program == "echo":
        flags = list(takewhile(re.compile("-[neE]+").fullmatch, words))
        text = " ".join(words[len(flags) :])
        return unescaped(text) if any("e" in flag for flag in flags) else text
    if program == "printf" and words and not words[0].startswith("-"):
        return _formatted(unescaped(words[0]), words[1:])
    if program in _LOOKS_UP:
        named = [word for word in words if not word.startswith("-")]
        looks = program != "command" or any(word in {"-v", "-V"} for word in words)
        return named[0].rpartition("/")[2] if looks and len(named) == 1 else None
    return None


def _formatted(form: str, words: list[str]) -> str | None:
    """Return the text of ``printf``, which uses its format again until no word is left."""
    if set(_DIRECTIVE.findall(form)) - {"s", "b", "%"}:
        return None
    rest, parts = iter(words), list[str]()
    rounds = max(1, -(-len(words) // max(1, len(re.findall("%[sb]", form)))))
    if rounds > _MOST_ROUNDS:
        return None
    for _ in range(rounds if "%" in form else 1):
        parts.append(_DIRECTIVE.sub(lambda one: "%" if one[1] == "%" else next(rest, ""), form))
    return "".join(parts)
