"""The output of a run as a parser sees it: clean, bounded lines, and the command that printed them.

The work is bounded for any length of output. If an output is larger than the window, only its head and its
tail are read, because runners announce themselves at the start and summarise at the end.
"""

import re

import msgspec

from agentx.storage.text import encodable
from agentx.synthesis.checks.command import (
    Selection,
    cuts_end,
    cuts_output,
    echoed_status,
    filters_output,
    masks_exit_status,
    selection,
)

HEAD_CHARS = 1_000_000
TAIL_CHARS = 4_000_000
MAX_LINE = 8_000
_LONGEST_MARK = 80
MAX_AFTER_STATUS = 20
"""Number of last lines that are searched for an exit status that the command printed."""

# ECMA-48: CSI sequences, OSC strings (titles, links), character sets (``tput sgr0``), two-character escapes
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]{1,2}[0-~]|[@-Z\\^_])")
_LEFT_OUT = re.compile(
    r"^\W{0,6}[\d,]* ?(?:characters|bytes|chars|lines|output) (?:left out|truncated|omitted)\W{0,6}$",
    re.IGNORECASE,
)
"""The line that our own tools, or those of another host, leave where they truncated an output."""

_STAMP = re.compile(
    r"^\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: |$)"
)
_COMPOSE = re.compile(r"^([A-Za-z][\w.-]{0,60}-\d+) +\|(?: |$)")
_JOB = re.compile(r"^([^\t]{1,80}\t[^\t]{1,80})\t(?=\ufeff?\d{4}-\d\d-\d\dT)")  # gh run view --log
_LABELS = (
    _COMPOSE,
    re.compile(r"^([\w.-]{1,60}) +\|(?: |$)"),  # foreman
    _JOB,
    re.compile(r"^([\w./-]{1,60}:[A-Za-z][\w.-]{0,40}): "),  # turbo
    re.compile(r"^\[([\w@:./-]{1,60})\](?: |$)"),  # concurrently, mise
)
"""Labels in front of each line where a host or a task runner shows the output of several programs."""

_FRONTED = 0.9
"""Minimum share of the lines that carry a time stamp or label."""

_LEAST = 3
"""Minimum number of lines with a label: a single one may be a finding."""

_SAMPLE = 2_000
"""Number of lines that are examined for time stamps and labels."""

_FEW = 4
"""Minimum average number of lines per label: the first column of a table differs from row to row."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A run's output, ready to be parsed.

    Attributes:
        lines: Lines without colours, carriage returns and line ends.
        text: The lines joined by newlines.
        command: The command line, if known.
        exit_code: The exit status, if known.
        selected: The checks that the command selects.
        masked: Whether the exit status is that of another program (``pytest | tail``).
        cut: Whether part of the output is missing, because of the window, a pipe into ``head``, ``tail`` or
            ``grep``, or our own tools.
        gap: Whether part of the output is missing between its first and its last shown line.
        end_cut: Whether the end is missing.
    """

    lines: list[str]
    text: str
    command: str
    exit_code: int | None
    selected: Selection
    masked: bool
    cut: bool
    gap: bool = False
    end_cut: bool = False

    @property
    def status(self) -> int | None:
        """The exit status of the check itself; ``None`` if it is unknown or hidden by a pipe."""
        return None if self.masked else self.exit_code

    @property
    def silent_success(self) -> bool:
        """Whether a program that prints nothing on success can be assumed to have passed.

        The exit status decides. If a pipe hides it, an empty output does.
        """
        if self.status is not None:
            return self.status == 0
        silent = not self.text.strip() and not self.exit_code
        return silent and not self.cut and not filters_output(self.command)


def read_output(text: str, command: str, exit_code: int | None) -> Output:
    """Clean an output: remove colours, keep the last state of a progress line, bound size and line length."""
    windowed = len(text) > HEAD_CHARS + TAIL_CHARS
    if windowed:
        text = text[:HEAD_CHARS] + "\n" + text[-TAIL_CHARS:]
    shown = text.count("\n") + bool(text and not text.endswith("\n"))
    text = encodable(text)
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\0", "")
    # Of a line that was overwritten with carriage returns, a terminal shows the last state.
    states = (
        next((part for part in reversed(line.split("\r")) if part.strip()), "") if "\r" in line else line
        for line in text.split("\n")
    )
    lines = _unfronted([line[:MAX_LINE].rstrip() for line in states])
    status = (
        echoed_status(command) if "echo" in command else None
    )  # printed by the command line: ``; echo $?``
    echoed = [match[1] for line in lines[-MAX_AFTER_STATUS:] if status and (match := status.match(line))]
    told = int(echoed[-1]) if echoed else None
    marks = [index for index, line in enumerate(lines) if len(line) < _LONGEST_MARK and _LEFT_OUT.match(line)]
    gap = windowed or bool(marks)
    return Output(
        lines=lines,
        text="\n".join(lines),
        command=command,
        exit_code=exit_code if told is None else told,
        selected=selection(command),
        masked=told is None and masks_exit_status(command),
        cut=gap or cuts_output(command, shown),
        gap=gap,
        end_cut=cuts_end(command, shown) or (bool(marks) and not any(lines[marks[-1] + 1 :])),
    )


def _unfronted(lines: list[str]) -> list[str]:
    """Remove time stamps and labels that precede nearly all lines; group the lines of each label."""
    for _ in range(3):  # a label, then a time stamp within it
        told = [line for line in lines if line]
        sample = told[:_SAMPLE]
        if sum(bool(_STAMP.match(line)) for line in sample) > _FRONTED * len(sample):
            lines = [_STAMP.sub("", line) for line in lines]
            continue
        label = next((pattern for pattern in _LABELS if _fronts(pattern, sample)), None)
        if label is None:
            break
        streams: dict[str, list[str]] = {}
        name = ""
        for line in lines:
            match = label.match(line)
            name = match[1] if match else name
            streams.setdefault(name, []).append(line[match.end() :] if match else line)
        lines = [line for stream in streams.values() for line in stream]
    return lines


def _fronts(label: re.Pattern[str], lines: list[str]) -> bool:
    names = [match[1] for line in lines if (match := label.match(line))]
    few = len(set(names)) == 1 or len(set(names)) * _FEW <= len(names)
    certain = label in {_COMPOSE, _JOB} or (few and len(names) >= _LEAST)
    return certain and len(names) > _FRONTED * len(lines)
