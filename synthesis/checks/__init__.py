"""Check runs: recognise them, parse their output, and open and close hot issues by it.

May import: storage, synthesis.memory, synthesis.shell, synthesis.state.
"""

from agentx.synthesis.checks.check_report import CheckName, CheckReport, FailedCheck
from agentx.synthesis.checks.command import is_check_command
from agentx.synthesis.checks.registry import parse_output, parse_reports
from agentx.synthesis.checks.runner_reports import recorded_form

__all__ = [
    "CheckName",
    "CheckReport",
    "FailedCheck",
    "is_check_command",
    "parse_output",
    "parse_reports",
    "recorded_form",
]
