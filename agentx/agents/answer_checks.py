"""Evaluate the user's rules on an answer, and at the end of the run that it ends."""

from typing import TYPE_CHECKING

import msgspec

from agentx.agents.conversation import Conversation
from agentx.synthesis.enforcement.evaluate import STOPPING, Evaluation, Violation, all_of
from agentx.tools.run_checks import evaluate_end, has_run_checks

if TYPE_CHECKING:
    from agentx.workspace import Workspace


class CheckedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say about an answer.

    Attributes:
        violations: What sends it back, once.
        notes: What the user reads with it: what it breaks without being sent back, what was not checked.
        kept: IDs of the rules with a check that applied and was kept.
        broke: IDs of the rules that it breaks, in any mode.
    """

    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()


def check_answer(ws: "Workspace", text: str, conversation: Conversation) -> CheckedAnswer:
    """Return what the rules say about an answer and the run that it ends.

    A rule that the user may have ended, or whose check is doubtful, does not send it back.
    """
    evaluation = ws.engine.evaluate_answer(text, conversation.message)
    ended, unchecked = Evaluation(), tuple[str, ...]()
    if has_run_checks(ws.engine):
        events = ws.events(after=conversation.start - 1)
        of_it = [event for event in events if event.run and conversation.belongs(event.run)]
        ended, unchecked = evaluate_end(ws.engine, of_it, conversation.message)
    whole = all_of(evaluation, ended)
    again = ws.gates.before_answer(text)
    stopping = tuple(
        one for one in whole.violations if one.mode in STOPPING or (one.mode == "ask" and not one.doubt)
    )
    told = [one for one in whole.of("warn", "ask") if one not in stopping]
    warned = tuple(f"It breaks {one.item_id}: {one.reason}" for one in told)
    broke = tuple(dict.fromkeys((*whole.broken, *(one.item_id for one in again))))
    return CheckedAnswer(
        violations=(*stopping, *again), notes=(*warned, *unchecked), kept=whole.kept, broke=broke
    )
