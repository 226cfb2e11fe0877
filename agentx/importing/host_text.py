"""What a host put into a text of the user, and what hosts say above the output of a command."""

import re

_OPENS = re.compile(r"<([a-z]{1,30}(?:[-_][a-z]{1,30}){1,4})>")
"""What the host wraps in a tag of several words: reminders, command names, command output, notifications."""

_EXITED = re.compile(
    r"(?:Exit code:?|exited with code|exit code is|finished with exit code)[ :]+(-?\d{1,3})\b", re.IGNORECASE
)


def unwrapped(text: str) -> tuple[str, dict[str, str]]:
    """Return a text without the elements that the host put into it, and the first content of each by tag."""
    rest, wrapped, at, unclosed = [], dict[str, str](), 0, set[str]()
    while opens := _OPENS.search(text, at):
        tag = opens[1]
        end = -1 if tag in unclosed else text.find(f"</{tag}>", opens.end())
        if end < 0:
            unclosed.add(tag)
            rest.append(text[at : opens.end()])
            at = opens.end()
        else:
            wrapped.setdefault(tag, text[opens.end() : end])
            rest.append(text[at : opens.start()])
            at = end + len(tag) + 3
    return "".join([*rest, text[at:]]).strip(), wrapped


def exit_code_in(text: str) -> int | None:
    r"""Return the exit status in the first lines that a host puts above the output of a command.

    >>> exit_code_in("Exit code: 1\nWall time: 0.4 seconds\nOutput:\nexit code 7")
    1
    """
    head = text[:400].partition("Output:")[0]
    found = _EXITED.search(head)
    return int(found[1]) if found else None
