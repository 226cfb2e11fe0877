"""Keep the files of ``export.keep`` up to date while a workspace is open.

It listens to the workspace's events, whichever process recorded them: after a conclusion that changes memory,
and after a change of such a file. So a file follows in commands, in the server, in an agent's run and under
`agentx watch`, without a timer.
"""

import logging

from agentx.core.event_bus import ALL
from agentx.engine.engine import Engine
from agentx.rule_files.exporting import keep
from agentx.storage.errors import AgentXError
from agentx.storage.events.types import Event, changes_of
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.rule_files import block

_LOG = logging.getLogger("agentx.rule_files.kept")


class KeptRules:
    """Exports again when memory or a kept file changes.

    Args:
        engine: The workspace, whose settings name the files.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._files = frozenset(engine.config.export.keep)
        self._busy = False
        self._written: tuple[tuple[str, int], ...] | None = None
        engine.bus.subscribe(ALL, self._hear)

    def _hear(self, event: Event) -> None:
        touched = any(made.path in self._files for made in changes_of(event))
        if self._busy or not (touched or isinstance(event.data, Concluded)):
            return
        rules = tuple(
            (item.id, item.changed_seq) for item in block.exported(self._engine.log.state.items.values())
        )
        if rules == self._written and not touched:
            return
        path = self._engine.write_path
        if path.read_only or self._engine.health.unsound or self._engine.trust.why_restricted():
            return
        self._busy = True
        try:
            done = keep(self._engine)
            self._written = rules
        except AgentXError as error:  # such as broken markers: the work goes on
            _note(path.notes, f"The exported rules are not up to date: {error}")
            return
        finally:
            self._busy = False
        for one in done:
            if one.proposals:
                count = len(one.proposals)
                made = "1 change is a proposal" if count == 1 else f"{count} changes are proposals"
                _note(path.notes, f"{one.path} was edited: {made} now. Settle with `agentx memory review`.")


def _note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)
        _LOG.info(text)
