"""Mistakes of usage, found by proselint.

Calls proselint as its own command line does: checks registered once, a ``LintFile``, a configuration. Only
checks that a copy editor would act on are enabled. Matters of taste (typography in plain text, "very",
contested words) are not.
"""

import functools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from agentx.storage.extras import QUALITY, needs

MAX_FOUND = 1000

CHECKS = (
    *("cliches", "dates_times.dates", "hedging", "industrial_language.bureaucratese"),
    *("industrial_language.chatspeak", "industrial_language.commercialese"),
    *("industrial_language.corporate_speak", "lexical_illusions", "malapropisms", "misc.false_plurals"),
    *("misc.illogic", "misc.inferior_superior", "misc.many_a", "misc.not_guilty", "misc.whence"),
    *("mixed_metaphors", "mondegreens", "nonwords", "redundancy", "spelling"),
    *("typography.punctuation.misplaced", "uncomparables"),
)
"""The enabled checks, by their proselint names."""


def usage_mistakes(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Find mistakes of usage in English prose.

    The prose has no lone surrogates.

    Yields:
        Line number (from 1) and a sentence that states the mistake.

    Raises:
        ExtraMissing: proselint is not installed.

    Example:
        >>> for line, mistake in usage_mistakes(["All is well.", "He should of gone to the the bank."]):
        ...     print(line, mistake)
        2 -ve vs. -of. 'should've' is the preferred spelling.
        2 There's a lexical illusion in 'the the' - a phrase is repeated.
    """
    text = "\n".join(lines)
    if not text.strip():
        return
    lint_file = _linter()
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for found in lint_file("", text).lint({"max_errors": MAX_FOUND, "checks": dict.fromkeys(CHECKS, True)}):
        offset = found.check_result.span[0] - 1  # proselint puts a newline before the text
        yield bisect_right(starts, max(0, offset)), found.check_result.message


@functools.cache
def _linter() -> Any:
    with needs(QUALITY):
        from proselint.checks import __register__  # noqa: PLC0415 - heavy: loads when prose is first checked
        from proselint.registry import CheckRegistry  # noqa: PLC0415
        from proselint.tools import LintFile  # noqa: PLC0415

    CheckRegistry().register_many(__register__)
    return LintFile
