"""``agentx recap``: what was learned, in one screen."""

from collections.abc import Iterator

import msgspec
from rich.table import Table
from rich.text import Text

from agentx.cli.opened import opened
from agentx.cli.terminal import Terminal, counted
from agentx.memory.learned import Learned, LearnedLine, LearnedPart, learned
from agentx.storage.text import clip, plain

_TITLES = {
    "rules": ("Rules you gave", "agentx memory list --kind constraint"),
    "ruled_out": ("What you ruled out", "agentx memory list --kind rejection --all"),
    "decisions": ("What you decided", "agentx memory list --kind decision"),
    "open_problems": ("Still failing", "agentx memory list --kind hot_issue"),
    "recurring": ("What keeps coming back", ""),
}
_ENTRIES = 22
"""What the screen shows where the terminal's height is not known; each takes up to two lines."""

_FEWEST = 10
_AROUND = 20
"""Lines of the screen for headings, blank lines and the prompt."""

_WHEN = 10
_SESSION = 8
_MARGIN = 23


def recap(terminal: Terminal) -> None:
    """Show in one screen what was learned: your rules, what you ruled out and decided, and what still fails.

    Each line is a sentence of yours with its date and session. What nobody has confirmed has a question mark.
    """
    with opened(terminal) as ws:
        found, title = learned(ws.engine), ws.state.title
    terminal.result(msgspec.to_builtins(found), *_screen(found, title, terminal))


def _screen(found: Learned, title: str, terminal: Terminal) -> Iterator[Text | Table]:
    width = min(terminal.out.width, 120)
    yield _head(found, title)
    room = max((terminal.out.height - _AROUND) // 2, _FEWEST) if terminal.out.is_terminal else _ENTRIES
    shown = _shares([len(part.lines) for part in found.parts], room)
    if not any(shown):
        yield Text("\nNothing was learned yet: no rule, refusal, decision or failing check was found.")
    for part, number in zip(found.parts, shown, strict=True):
        if number or part.doubtful:
            yield from _section(part, number, width)
    if any(not line.sure for part in found.parts for line in (*part.lines, *part.doubtful)):
        yield Text("\n? is not confirmed: agentx memory review", "dim")


def _head(found: Learned, title: str) -> Text:
    span = f"{found.began[:10]} to {found.ended[:10]}" if found.began else ""
    said = [
        counted(found.sessions, "session"),
        counted(found.messages, "message"),
        counted(found.calls, "tool call"),
    ]
    tokens = sum(one.prompt_tokens + one.completion_tokens for one in found.usage)
    cost = sum(one.cost_usd for one in found.usage)
    said += [f"{_sized(tokens)} tokens"] * bool(tokens) + [f"${cost:,.2f}"] * bool(cost)
    return Text.assemble((plain(title), "bold"), "  ", (span, "dim"), "\n", (", ".join(said), "dim"))


def _sized(count: int) -> str:
    for size, unit in ((1_000_000_000, "bn"), (1_000_000, "m"), (1_000, "k")):
        if count >= size:
            return f"{count / size:,.1f}{unit}"
    return str(count)


def _shares(wanted: list[int], room: int) -> list[int]:
    """Share lines among the parts: one to each in turn until the room or the lines are used up.

    >>> _shares([1, 9, 3], 7)
    [1, 3, 3]
    """
    given = [0] * len(wanted)
    while room > 0 and given != wanted:
        for place, most in enumerate(wanted):
            if given[place] < most and room > 0:
                given[place] += 1
                room -= 1
    return given


def _section(part: LearnedPart, number: int, width: int) -> Iterator[Text | Table]:
    title, command = _TITLES[part.name]
    more, doubtful = len(part.lines) - number, len(part.doubtful)
    yield Text.assemble("\n", (title, "bold"))
    grid = Table.grid(padding=(0, 1, 0, 0), expand=False)
    grid.add_column(width=1, style="yellow")
    grid.add_column(width=width - _MARGIN, overflow="fold")
    grid.add_column(style="dim", no_wrap=True, width=_WHEN)
    grid.add_column(style="dim", no_wrap=True, width=_SESSION)
    for line in part.lines[:number]:
        mark = "" if line.sure else "?"
        grid.add_row(mark, _words(line, width - _MARGIN), line.at[:10], line.session[:_SESSION])
    if number:
        yield grid
    left = [f"{more:,} more"] * bool(more) + [f"{doubtful:,} doubtful"] * bool(doubtful)
    if left:
        yield Text(f"  and {' and '.join(left)}{f': {command}' if command else ''}", "dim")


def _words(line: LearnedLine, width: int) -> Text:
    """Return in at most two lines what was said and, if that leaves room, what it is about."""
    times = f" ({line.times}×)" if line.times > 1 else ""
    said = plain(line.text)
    short = len(said) + len(times) <= width
    text = Text.assemble(said if short else clip(said, 2 * width - len(times) - width // 8), (times, "bold"))
    if short and line.about:
        text.append(f"\n← {clip(plain(line.about), width - 3)}", "dim")
    return text
