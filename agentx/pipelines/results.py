"""What came of a step."""

import msgspec

from agentx.storage.events.types import RunStatus


class Came(msgspec.Struct, frozen=True):
    """The result of a dispatch.

    Attributes:
        status: ``COMPLETED`` where the step is proved; ``INTERRUPTED`` where no model answered.
        reason: Why it failed, or a note for the user.
        final: Whether a retry is useless.
        unsent: Not dispatched: the pipeline's limits are used up.
        reopened: Whether steps that were done must be repeated.
    """

    status: RunStatus
    reason: str = ""
    final: bool = False
    unsent: bool = False
    reopened: bool = False
