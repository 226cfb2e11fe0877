"""Parse the output of check runs: one table of parsers, one result type.

May import: storage, synthesis.memory.
"""

from agentx.synthesis.checks.check_report import CheckName, CheckReport, FailedCheck
from agentx.synthesis.checks.command import is_check_command
from agentx.synthesis.checks.registry import parse_output, parse_reports

__all__ = ["CheckName", "CheckReport", "FailedCheck", "is_check_command", "parse_output", "parse_reports"]
