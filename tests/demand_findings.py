"""What the sentences of a message say about rules, in one list."""

from agentx.synthesis.demands.classify import Demand, Rejection, readings
from agentx.synthesis.demands.reversals import Fulfilment, Permission, Retraction, closes

Finding = Demand | Rejection | Retraction | Permission | Fulfilment


def findings(text: str) -> tuple[Finding, ...]:
    """Return everything in a user's message that concerns rules, in order, regardless of existing rules."""
    found: list[Finding] = []
    for reading in readings(text):
        endings = [one for one in reading.reversals if isinstance(one, Retraction | Permission | Fulfilment)]
        if reading.closed:
            found.append(next(one for one in endings if closes(one)))
        elif reading.rules:
            found += reading.rules
        else:
            found += [one for one in endings if isinstance(one, Fulfilment)]
    return tuple(found)
