"""The thin start of ``agentx``: hand the command line to the server, or load what runs it in this process.

Loads only the standard library, and little of that: a command that the server runs must not wait for the
libraries that only the server needs.
"""

import gc
import os
import sys

from agentx import __version__

TYPE_CHECKING = False  # `typing` would be loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command line.

    Args:
        arguments: The arguments after the program's name; by default those of this process.

    Returns:
        The exit status: 0, 1 for a failure, 2 for wrong use, 130 after Ctrl-C, 141 for a closed pipe.
    """
    key = ""
    if arguments is None:
        words = sys.argv[1:]
        if words == ["--version"] and _written(f"agentx {__version__}\n"):
            return 0
        if words[:1] == ["hook"]:
            return int(__import__("agentx.hosts.hook", fromlist=["main"]).main(words[1:]))
        if words:
            thin = __import__("agentx.cli.forward", fromlist=["forward"])
            try:
                return int(thin.forward(words))
            except thin.Here as here:
                key = here.key
    gc.disable()  # nothing that is imported becomes garbage
    return int(__import__("agentx.cli.in_process", fromlist=["run"]).run(arguments, key=key))


def _written(text: str) -> bool:
    """Return whether a text could be written to stdout; otherwise the whole command line reports why."""
    try:
        return os.write(1, text.encode()) == len(text)
    except OSError:
        return False
