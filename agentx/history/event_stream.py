"""A stream of events, whichever process writes them."""

import time
from collections.abc import Iterator

from agentx.recording.recorded_log import RecordedLog
from agentx.storage.events.types import Event
from agentx.storage.log.history import told_already

_POLL_S = 0.05


def events(log: RecordedLog, after: int, *, follow: bool, timeout_s: float | None) -> Iterator[Event]:
    """Yield the events after a seq, in order, each once; see :meth:`agentx.workspace.Workspace.events`."""
    last, waited = after, 0.0
    while True:
        for event in log.history.read(last, on_damage=told_already):
            last, waited = event.seq, 0.0
            yield event
        if not follow or (timeout_s is not None and waited >= timeout_s):
            return
        time.sleep(_POLL_S)
        waited += _POLL_S
