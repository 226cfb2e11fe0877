"""Deliver a report to the program that ``report.command`` names: a mail program, a chat's webhook, a file."""

import tempfile
from pathlib import Path

from agentx.directing.configured import program_environ
from agentx.directing.piped_program import Program
from agentx.engine.engine import Engine
from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.text import one_line, shorten

_OUTPUT_BYTES = 4_000
_SAID_WORDS = 40
_NOT_DELIVERED = "The report was not delivered: report.command"


class NotDelivered(AgentXError):
    """The command of ``report.command`` did not take the report."""


def deliver(engine: Engine, report: str) -> None:
    """Run the configured command in a shell with a report on stdin, in an empty directory.

    Raises:
        UsageError: No command is configured.
        Restricted: The configuration of an untrusted workspace names it.
        NotDelivered: It could not be started, failed, or took too long.
    """
    section = engine.config.report
    if not section.command.strip():
        raise UsageError(
            "No command is configured; set one: `agentx config set report.command "
            "'mail -s Audit you@example.org'`."
        )
    engine.trust.require("report.command")
    with tempfile.TemporaryDirectory(prefix="agentx-report-", ignore_cleanup_errors=True) as place:
        words = ("/bin/sh", "-c", section.command)
        try:
            started = Program(words, program_environ(engine), Path(place), section.timeout_s)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise NotDelivered(
                f"The report was not delivered: report.command cannot be run: {why}."
            ) from error
        with started as program:
            output = program.rest(report.encode(), _OUTPUT_BYTES)
    if program.late:
        raise NotDelivered(
            f"The report may not be delivered: report.command took longer than {section.timeout_s:g} seconds "
            "and was ended."
        )
    if program.exit_status:
        told = shorten(one_line(program.aside.text() or output), _SAID_WORDS)
        shown = f": {told}" if told else "."
        raise NotDelivered(f"{_NOT_DELIVERED} ended with exit status {program.exit_status}{shown}")
