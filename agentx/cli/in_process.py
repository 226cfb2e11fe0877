"""Run a command line in this process, return an exit status, and report any error in one sentence."""

import errno
import gc
import io
import logging
import os
import sys
import threading
import traceback
from collections.abc import Sequence

import typer

from agentx.cli.app import execute
from agentx.cli.commands import line
from agentx.cli.forward import served
from agentx.cli.terminal import NotServed, Terminal, hang_up
from agentx.search.background_worker import WORKERS
from agentx.settings import read_settings, take_environment
from agentx.storage.errors import AgentXError
from agentx.storage.pattern_cache import PATTERNS

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT."""

_TODO = {
    errno.EROFS: " Choose a writable place.",
    errno.EACCES: " Change its permissions, or run this as its owner.",
    errno.EPERM: " Change its permissions, or run this as its owner.",
    errno.ENOSPC: " Free some space and try again.",
    errno.EDQUOT: " Free some space and try again.",
}
"""Advice for errors of the operating system."""

_COLLECT_EACH = 200_000
"""Number of new objects between two runs of the garbage collector.

While a command loads nothing becomes garbage, but the collector took a sixth of its time.
"""


def run(arguments: Sequence[str] | None = None, *, key: str = "") -> int:
    """Run a command line in this process.

    Args:
        arguments: The arguments after the program's name; by default those of this process.
        key: Makes an event that the command records idempotent.

    Returns:
        The exit status: 0, 1 for a failure, 2 for wrong use, 130 after Ctrl-C, 141 for a closed pipe.
    """
    for stream in (sys.stdout, sys.stderr):
        # Characters that a terminal cannot show must not end the program.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # Called with arguments, this runs inside another program, whose environment must not change.
    terminal = Terminal(take_environment() if arguments is None else read_settings(), key=key)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        PATTERNS.open(terminal.settings.cache_dir / "patterns")
    collects = gc.get_threshold()
    gc.set_threshold(_COLLECT_EACH, *collects[1:])
    if arguments is None:
        gc.freeze()  # what was imported stays until the end: no need to walk through it
    gc.enable()
    try:
        status = carry_out(words, terminal)
    finally:
        gc.set_threshold(*collects)
        PATTERNS.save()
    if arguments is None and (served(words) or any(one.name in WORKERS for one in threading.enumerate())):
        # Nothing of a short command is left to be tidied up, and freeing each object took a quarter of its
        # time. A thread left behind by a deadline may be inside a library: waiting for it would take seconds,
        # or crash.
        sys.stderr.flush()
        os._exit(status)
    return status


def carry_out(words: Sequence[str], terminal: Terminal) -> int:
    """Run a command line on a terminal, which also gets its notes and its error; return the exit status.

    Raises:
        NotServed: It is a command for the server that the server does not run.
    """
    notes, log = _Notes(terminal), logging.getLogger("agentx")
    log.addHandler(notes)
    try:
        status = execute(words, terminal)
        terminal.stdout.flush()
    except BrokenPipeError:
        hang_up()
    except KeyboardInterrupt:
        return INTERRUPTED
    except NotServed:
        raise
    except Exception as error:  # noqa: BLE001 - the user gets a sentence; a traceback only on request
        if terminal.settings.debug:
            traceback.print_exc()
        return _tell(error, words, terminal)
    finally:
        log.removeHandler(notes)
    return status


def report(error: OSError) -> int:
    """Report an error of the thin start, and return the exit status."""
    return _tell(error, (), Terminal(read_settings()))


def _tell(error: Exception, words: Sequence[str], terminal: Terminal) -> int:
    """Report an error in one sentence and return the exit status."""
    match error:
        case AgentXError():
            terminal.fail(str(error))
            return error.exit_code
        case typer.Abort():
            return INTERRUPTED
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "agentx"
            message = error.format_message()
            terminal.fail(f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{path} --help`.")
            return error.exit_code
        case OSError() if error.strerror:
            about = f"{error.filename}: " if error.filename else ""
            todo = _TODO.get(error.errno or 0, "")
            terminal.fail(f"{about}{error.strerror}.{todo}")
        case _:
            name = next(iter(line(words)), "agentx")
            terminal.fail(
                f"A fault in AgentX itself ended {name}: {type(error).__name__}: {error}. "
                "Everything recorded is kept. Set AGENTX_DEBUG=1 for the traceback."
            )
    return 1


class _Notes(logging.Handler):
    """Prints the engine's log messages as one-line notes; in the server, those of the command's thread."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal
        self._thread = threading.get_ident() if terminal.caller else 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._thread not in {0, record.thread}:
            return
        if self._terminal.settings.debug and record.exc_info:
            traceback.print_exception(*record.exc_info)
        self._terminal.note(record.getMessage())
