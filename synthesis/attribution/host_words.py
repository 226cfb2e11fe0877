"""Tells what a host wrote into the place of the user's message from what the user typed.

Hosts hand an agent more than the user's words in the role of the user: notifications, contexts of hooks, the
reasons of hooks. These stand in an element whose tag is of several words (``<task-notification>``), or are
sentences that AgentX's own hooks said. What is inside may be an agent's words, which may hold the element's
end. So an element at the head of a message reaches to the *last* end of its tag: the host's own end is behind
everything that it wrapped.
"""

import re
from itertools import takewhile
from typing import NamedTuple

from agentx.synthesis.language.patterns import on_use

CONTEXT = "hook_context"
"""The tag in which a host puts what hooks gave it, above the user's words."""

BROKEN = "What the user demands is broken; put it right before you stop:"
SETTLE = (
    "Before you stop, settle with the tool `settle` of the MCP server agentx what the user said and may have "
    "meant to last; leave what you cannot tell:"
)
"""How the texts begin by which a hook keeps an agent from stopping; some hosts send them on as a prompt."""

_HEAD = on_use(r"\s*<([A-Za-z]{1,30}(?:[-_][A-Za-z]{1,30}){1,4})(?:\s[^<>]{0,1000})?>", re.DOTALL)


class HostElement(NamedTuple):
    """An element that a host wrote.

    Attributes:
        tag: Its tag.
        inside: What is inside.
        end: Where it ends in the message.
    """

    tag: str
    inside: str
    end: int


def headed(text: str) -> list[HostElement]:
    """Return the elements at the head of a message.

    >>> headed("<hook_context># Task</hook_context> Use tabs.")
    [HostElement(tag='hook_context', inside='# Task', end=35)]
    """
    found: list[HostElement] = []
    at = 0
    while opens := _HEAD.match(text, at):
        end = text.rfind(f"</{opens[1]}>", opens.end())
        if end < 0:
            break
        at = end + len(opens[1]) + 3
        found.append(HostElement(opens[1], text[opens.end() : end], at))
    return found


def typed(text: str) -> str:
    """Return what the user typed of a prompt; empty if the host wrote all of it.

    A context of hooks is taken from its head. Other elements are the host's if nothing is behind them; with
    words behind them they may be markup that the user pasted, and stay: what is tagged becomes no rule.

    >>> typed("<hook_context># Task</hook_context> Use tabs."), typed("<task-note>No tabs.</task-note>")
    ('Use tabs.', '')
    """
    elements = headed(text)
    contexts = list(takewhile(lambda one: one.tag == CONTEXT, elements))
    others = elements[len(contexts) :]
    own = text[contexts[-1].end :].lstrip() if contexts else text
    behind = text[others[-1].end :] if others else own
    # A context without an end was cut: nothing tells where the user's words begin.
    not_own = BROKEN, SETTLE, f"<{CONTEXT}>"
    return own if behind.strip() and not own.lstrip().startswith(not_own) else ""
