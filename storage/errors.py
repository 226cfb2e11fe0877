"""The one base of every error that AgentX raises on purpose.

Subclasses stand beside the code that raises them. A message says what is wrong, where, and what to do about it.
"""


class AgentXError(Exception):
    """Base of all errors of this project; its text is one clear sentence for a person.

    Attributes:
        exit_code: What the command line exits with: 1 for a failure, 2 for wrong use.
    """

    exit_code = 1


class DiskRefused(AgentXError):
    """The file system refused: it is full or read-only, or rights are missing."""


class UsageError(AgentXError):
    """What was asked for cannot be meant: a wrong argument, an unknown name, a setting that is no setting."""

    exit_code = 2


class WriterConflict(AgentXError):
    """Another writer was first, although it did not hold the lock: it appended, or it moved the branch."""
