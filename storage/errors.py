"""The common base of the errors that AgentX raises on purpose.

Subclasses are defined beside the code that raises them. A message states what is wrong, where, and what to do
about it.
"""


class AgentXError(Exception):
    """Base of all errors of this project; its message is one clear sentence for a human reader.

    Attributes:
        exit_code: Exit status of the command line: 1 for a failure, 2 for wrong usage.
    """

    exit_code = 1


class DiskRefused(AgentXError):
    """The file system refused an operation: it is full or read-only, or permissions are missing."""


class UsageError(AgentXError):
    """The request is invalid: a wrong argument, an unknown name, an unknown setting."""

    exit_code = 2


class WriterConflict(AgentXError):
    """Another writer got in first without holding the lock: it appended to the log or moved the branch."""
