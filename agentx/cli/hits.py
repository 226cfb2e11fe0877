"""What a search found, for the terminal."""

from collections.abc import Sequence
from typing import get_args

from rich.padding import Padding
from rich.text import Text

from agentx.cli.terminal import Terminal
from agentx.search.across import Answer
from agentx.search.event_chunks import place
from agentx.storage.errors import UsageError
from agentx.storage.index.port import SearchKind
from agentx.storage.text import one_line, plain
from agentx.synthesis.recall.retrieval import SearchHit

PASSAGE_LINES = 5
PASSAGE_COLUMNS = 400


def check_query(query: str, kind: str) -> None:
    """Check the query and the kind of a search.

    Raises:
        UsageError: The query is empty, or there is no such kind.
    """
    if not query.strip():
        raise UsageError("The query is empty.")
    if kind and kind not in get_args(SearchKind):
        raise UsageError(f"Unknown kind {kind!r}. Kinds: {', '.join(get_args(SearchKind))}.")


def show_answer(terminal: Terminal, query: str, found: Answer) -> None:
    """Print the answer of a search over several workspaces."""
    if terminal.json:
        terminal.document({"query": query, "answer": found})
        return
    show_hits(terminal, [(one.workspace, one.hit) for one in found.hits])
    for one in found.searched:
        if one.at:
            terminal.note(f"{one.workspace}: as of event {one.seq}, published {one.at[:19]}Z", "•")
    for name, why in found.failed.items():
        terminal.note(f"{plain(name)} was not searched: {plain(why)}")
    if found.note:
        terminal.note(found.note)


def show_hits(terminal: Terminal, hits: Sequence[tuple[str, SearchHit]]) -> None:
    """Print hits, each with the name of its workspace; an empty name is left out."""
    for number, (workspace, hit) in enumerate(hits, start=1):
        _show(terminal, number, hit, workspace)
    if not hits:
        terminal.show("Nothing was found.")


def _show(terminal: Terminal, number: int, hit: SearchHit, workspace: str) -> None:
    where = (one_line(place(hit)), "bold cyan")
    named = (one_line(workspace) + "  " if workspace else "", "bold")
    terminal.show(Text.assemble((f"{number:>2}  ", "dim"), named, where, (f"  {hit.kind}  {hit.why}", "dim")))
    lines = [line for line in plain(hit.text).splitlines() if line.strip()]
    shown = "\n".join(line[:PASSAGE_COLUMNS] for line in lines[:PASSAGE_LINES])
    more = f"\n… {len(lines) - PASSAGE_LINES} more lines" if len(lines) > PASSAGE_LINES else ""
    also = f"\nalso {one_line(', '.join(hit.also))}" if hit.also else ""
    terminal.show(Padding(Text.assemble(shown, (more + also, "dim")), (0, 0, 1, 4), expand=False))
