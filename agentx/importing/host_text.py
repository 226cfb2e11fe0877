"""What a host put into a text of the user, and what hosts say above the output of a command."""

import re

from agentx.synthesis.attribution.host_words import CONTEXT, headed, typed

_OPENS = re.compile(r"<([a-z]{1,30}(?:[-_][a-z]{1,30}){1,4})>")
"""What the host wraps in a tag of several words: reminders, command names, command output, notifications."""

_EXITED = re.compile(
    r"(?:Exit code:?|exited with code|exit code is|finished with exit code)[ :]+(-?\d{1,3})\b", re.IGNORECASE
)


def unwrapped(text: str) -> tuple[str, dict[str, str]]:
    """Return a text without the elements that the host put into it, and the first content of each by tag.

    Of a text that the host wrote as a whole nothing is left.
    """
    wrapped: dict[str, str] = {}
    for element in headed(text):
        wrapped.setdefault(element.tag, element.inside)
    own = typed(text)
    if not own:
        return "", wrapped or ({CONTEXT: text} if text.strip() else {})
    if own == text:
        wrapped = {}
    rest, at, unclosed = [], 0, set[str]()
    while opens := _OPENS.search(own, at):
        tag = opens[1]
        find = own.rfind if tag == CONTEXT else own.find  # what hooks said may hold the end of its element
        end = -1 if tag in unclosed else find(f"</{tag}>", opens.end())
        if end < 0:
            unclosed.add(tag)
            rest.append(own[at : opens.end()])
            at = opens.end()
        else:
            wrapped.setdefault(tag, own[opens.end() : end])
            rest.append(own[at : opens.start()])
            at = end + len(tag) + 3
    return "".join([*rest, own[at:]]).strip(), wrapped


def exit_code_in(text: str) -> int | None:
    r"""Return the exit status in the first lines that a host puts above the output of a command.

    >>> exit_code_in("Exit code: 1\nWall time: 0.4 seconds\nOutput:\nexit code 7")
    1
    """
    head = text[:400].partition("Output:")[0]
    found = _EXITED.search(head)
    return int(found[1]) if found else None
