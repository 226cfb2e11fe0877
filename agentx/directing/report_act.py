"""Tell the process of the run that an act was done: what ``agentx done`` is inside a run.

Runs as a separate program, ``python -I -S report_act.py PLACE WORD…``, so that it starts in an instant. It
uses only the standard library. If the process of the run does not answer, it becomes the whole ``agentx``.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence

SOCKET = "socket"
NOBODY = 75
"""Status if the process of the run does not answer. The caller records the act itself then."""

COMMAND = "--"
"""What stands between an act and the command that does it."""
BEGIN, END = "--begin", "--end"
"""The two requests around such a command: ``--begin NAME KEY…`` and ``--end CALL STATUS NAME KEY…``."""

_WRONG, _NOT_RECORDED, _CANNOT_RUN, _NOT_FOUND, _SIGNALLED = 2, 1, 126, 127, 128

_ANSWER_BYTES = 1 << 16
_END = b"\0"


def ask(place: str, words: Sequence[str]) -> tuple[int, str]:
    """Send the words of a report.

    Args:
        place: Directory of the run's socket.
        words: The arguments of ``agentx done``.

    Returns:
        The exit status and the sentence to print.
    """
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(os.path.join(place, SOCKET))
            connection.sendall(request(words))
            while part := connection.recv(_ANSWER_BYTES):
                answer += part
        except OSError:
            pass
    status, found, text = answer.partition(b" ")
    return (int(status), text.decode()) if found else (NOBODY, "")


def request(words: Sequence[str]) -> bytes:
    """Return the request that says these words: its length, then a NUL behind each word."""
    content = b"".join(os.fsencode(word) + _END for word in words)
    return b"%d\n" % len(content) + content


def words_of(heard: bytes) -> list[bytes] | None:
    """Return the words of a request; ``None`` while it is not complete.

    >>> words_of(request(["offer", ""])), words_of(request(["offer", ""])[:-1])
    ([b'offer', b''], None)
    """
    length, _, content = heard.partition(b"\n")
    return content.split(_END)[:-1] if length == b"%d" % len(content) else None


def parted(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the words of an act, and those of the command that does it; ``None`` for no command.

    >>> parted(["offer", "id=7", "--", "mail", "--", "x"]), parted(["offer"])
    ((['offer', 'id=7'], ['mail', '--', 'x']), (['offer'], None))
    """
    if COMMAND not in words:
        return list(words), None
    place = list(words).index(COMMAND)
    return list(words[:place]), list(words[place + 1 :])


def carry_out(
    tell: Callable[[Sequence[str]], tuple[int, str]],
    act: Sequence[str],
    command: Sequence[str],
    environ: Mapping[str, str],
) -> tuple[int, str]:
    """Announce an act, run the command that does it, and report how it ended.

    Args:
        tell: Sends a request; returns the status, and the sentence to print or what was asked for.
        act: The words of the act.
        command: The command and its arguments. It gets this process's directory and open files.
        environ: Its environment.

    Returns:
        The exit status, and the sentence to print on stderr.
    """
    if not command:
        return _WRONG, f"Name the command that does it behind {COMMAND}."
    status, call = tell([BEGIN, *act])
    if status:
        return status, call
    ended, problem = _run(command, environ)
    if ended < 0:  # by a signal: it may have done its work
        return (
            _SIGNALLED - ended,
            f"{command[0]} was ended by signal {-ended}: nobody knows whether it was done.",
        )
    status, said = tell([END, call, str(ended), *act])
    if status:
        problem = f"How it ended was not recorded, so nobody knows whether it was done: {said}"
        return ended or _NOT_RECORDED, problem
    return ended, problem


def _run(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """Run a command to its end; return its status, negative for a signal, and why it could not be run."""
    # Ctrl-C reaches the command, too. A handler is reset there; what was ignored before stays ignored.
    waited = [one for one in (signal.SIGINT, signal.SIGQUIT) if signal.getsignal(one) != signal.SIG_IGN]
    before = {one: signal.signal(one, lambda *_: None) for one in waited}
    try:
        # Python itself ignores these two.
        own = os.posix_spawnp(command[0], list(command), environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
        return os.waitstatus_to_exitcode(os.waitpid(own, 0)[1]), ""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_RUN
        return status, f"{command[0]} cannot be run: {why}."
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _main(place: str, words: Sequence[str]) -> int:
    engine = [sys.executable, "-P", "-m", "agentx", "done"]

    def tell(told: Sequence[str]) -> tuple[int, str]:
        status, text = ask(place, told)
        if status != NOBODY:
            return status, text
        if told[:1] != [END]:
            os.execv(engine[0], [*engine, *words])  # noqa: S606
        # The command has run: only this is left to do.
        return os.spawnv(os.P_WAIT, engine[0], [*engine, *told]), ""  # noqa: S606

    act, command = parted(words)
    status, text = tell(act) if command is None else carry_out(tell, act, command, os.environ)
    to_stderr = command is not None or status in (_WRONG, _NOT_RECORDED)
    os.write(2 if to_stderr else 1, f"{text}\n".encode() if text else b"")
    return status


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
