"""What the sections about contexts share: a conversation told to a workspace, and the messages that a plain way would take."""

from collections.abc import Callable, Iterable, Sequence

from agentx import Workspace
from agentx.storage.events.types import AgentMessageSent, Draft, Event, UserMessageSent
from agentx.synthesis.language.tokens import count_tokens

Told = Callable[[str], None]


def tell(ws: Workspace, actor: str, text: str) -> Event:
    """Record a message of a user or an agent."""
    body = ws.body(text)
    data = (
        AgentMessageSent(body=body, final=True) if actor.startswith("agent") else UserMessageSent(body=body)
    )
    (event,) = ws.record(Draft(data=data, actor=actor))
    return event


def sizes_of(lines: Iterable[str]) -> list[int]:
    """Tokens of each message, as it would be shown on a line."""
    return [count_tokens(f"{line}\n") for line in lines]


def within(budget: int, order: Iterable[int], sizes: Sequence[int], *, until_full: bool = False) -> list[int]:
    """The messages that fit into a budget of tokens, taken in an order.

    Args:
        budget: Tokens.
        order: Places of messages.
        sizes: Tokens of each, as :func:`sizes_of` counts them.
        until_full: Stop at the first that does not fit, instead of passing it over.
    """
    taken: list[int] = []
    for place in order:
        if sizes[place] <= budget:
            taken.append(place)
            budget -= sizes[place]
        elif until_full:
            break
    return taken
