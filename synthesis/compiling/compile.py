"""Compiles a demand into the checks that enforce it, if it is certain what code has to look for.

First the narrow parsers of :mod:`.certain` read the sentence to its end. Otherwise each kind of rule looks
for its own words and objects in the clauses. A demand with an exception that no check can see ("unless I
ask"), and a preference, have no check: they are only shown to the agent.
"""

import msgspec

from agentx.synthesis.compiling import certain
from agentx.synthesis.compiling.code import compile_code
from agentx.synthesis.compiling.commands import compile_commands, compile_follow_up
from agentx.synthesis.compiling.contents import compile_contents
from agentx.synthesis.compiling.files import compile_files, compile_origins
from agentx.synthesis.compiling.packages import compile_libraries, compile_packages, compile_perhaps_libraries
from agentx.synthesis.compiling.reading.rule import read_rule
from agentx.synthesis.compiling.sizes import compile_sizes
from agentx.synthesis.compiling.texts import compile_texts
from agentx.synthesis.demands.tables.vocabulary import Modality
from agentx.synthesis.memory.checks import Check
from agentx.synthesis.memory.items import Scope

_COMPILERS = (
    compile_sizes,
    compile_contents,
    compile_packages,
    compile_commands,
    compile_libraries,
    compile_files,
    compile_code,
    compile_texts,
    compile_origins,
    compile_perhaps_libraries,
)
"""By kind of rule, from the most specific wording to the least."""

_LOCAL = (compile_sizes, compile_contents, compile_code, compile_texts)
"""Those that see for themselves whether an exception concerns them."""


def compile_checks(text: str, modality: Modality, scope: Scope) -> tuple[Check, ...]:
    """Return the checks that enforce a demand; none if it is not certain what to look for.

    Args:
        text: The demand in the user's words.
        modality: A preference is never enforced.
        scope: Where it applies; only text checks understand a topic.

    >>> (check,) = compile_checks("Never create a requirements.txt file", "must_not", Scope())
    >>> check.paths
    ('**/requirements.txt', 'requirements.txt')
    >>> compile_checks("Never be rude", "must_not", Scope())
    ()
    """
    if modality == "prefer":
        return ()
    if check := certain.compile_certain(text, modality, scope):
        return (check,)
    reading = read_rule(text, modality, scope)
    if follow_up := compile_follow_up(reading):
        return follow_up
    if scope.topic:
        return ()
    for compiler in _LOCAL if reading.conditional else _COMPILERS:
        if checks := compiler(reading):
            return tuple(_approvable(check) for check in checks) if reading.approvable else checks
    return ()


def asking(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """Return the checks of an idea that was ruled out in passing: they ask instead of denying."""
    doubt = "whether this is what was ruled out"
    return tuple(msgspec.structs.replace(check, doubt=check.doubt or doubt) for check in checks)


def _approvable(check: Check) -> Check:
    return msgspec.structs.replace(check, doubt=check.doubt or "The user may have allowed it.")
