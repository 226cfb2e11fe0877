"""Search several workspaces as one: what a search of all returns, and the search of those on this machine."""

import contextlib
from collections.abc import Mapping

import msgspec

from agentx.search.indexer import Indexer
from agentx.storage.errors import AgentXError
from agentx.storage.index.port import Filter, Vector
from agentx.storage.text import one_line
from agentx.synthesis.recall.across import Across, Source
from agentx.synthesis.recall.retrieval import SearchHit, retrieve


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that was searched.

    Attributes:
        workspace: Its name.
        seq: The last event that the answer contains.
        at: When its index was published, UTC ISO 8601; empty for a workspace on this machine.
        passages: Number of its passages; 0 if they were not counted.
    """

    workspace: str
    seq: int = 0
    at: str = ""
    passages: int = 0


class WorkspaceHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found, and its workspace."""

    workspace: str
    hit: SearchHit


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search over several workspaces.

    Attributes:
        hits: The passages, best first.
        searched: The workspaces that were searched, each as of an event.
        failed: Why a workspace was not searched, by its name.
        note: Why words alone were used; empty if they were not.
    """

    hits: list[WorkspaceHit]
    searched: list[Searched]
    failed: dict[str, str]
    note: str = ""


def search_indexes(  # noqa: PLR0913 - each narrows the search
    indexes: Mapping[str, tuple[Source, Searched]],
    query: str,
    vector: Vector | None,
    k: int,
    where: Filter,
    *,
    by_words: frozenset[str] = frozenset(),
    failed: Mapping[str, str] = {},
    note: str = "",
    grouped: bool = False,
) -> Answer:
    """Find the ``k`` best passages in several indexes.

    Args:
        indexes: The indexes, by the name of the workspace.
        query: Words in any form.
        vector: Its embedding; ``None`` ranks by words alone.
        k: Number of hits.
        where: Restricts the search.
        by_words: Workspaces whose vectors cannot be compared with this one.
        failed: Workspaces that could not be opened, for the answer.
        note: For the answer.
        grouped: Return the passages of a file as one hit.
    """
    found = {name: index for name, (index, _) in indexes.items()}
    with contextlib.closing(Across(found, by_words)) as across:
        hits = [across.named(hit) for hit in retrieve(across, query, vector, k, where, grouped=grouped)]
        failed = {**failed, **{name: one_line(why) for name, why in across.failed.items()}}
    return Answer(
        hits=[WorkspaceHit(workspace=name, hit=hit) for name, hit in hits],
        searched=[about for name, (_, about) in indexes.items() if name not in failed],
        failed=failed,
        note=note,
    )


def search_here(
    indexers: Mapping[str, Indexer],
    query: str,
    k: int,
    where: Filter,
    *,
    failed: Mapping[str, str] = {},
    grouped: bool = False,
) -> Answer:
    """Find the ``k`` best passages in workspaces of this machine; each is brought up to date first.

    Args:
        indexers: The workspaces' indexers, by name.
        query: Words in any form.
        k: Number of hits.
        where: Restricts the search.
        failed: Workspaces that could not be opened, for the answer.
        grouped: Return the passages of a file as one hit.
    """
    failed = dict(failed)
    indexes: dict[str, tuple[Source, Searched]] = {}
    vectors: dict[str, Vector] = {}
    models: dict[str, str] = {}
    for name, indexer in indexers.items():
        try:
            asked = indexer.asked(query)
            indexes[name] = indexer.index, Searched(workspace=name, seq=indexer.watermark)
        except AgentXError as error:
            failed[name] = one_line(str(error))
            continue
        if asked is not None:
            models[name] = indexer.index.read_meta("embedder")
            vectors.setdefault(models[name], asked)
    model = next(iter(vectors), "")
    by_words = frozenset(name for name in indexes if not model or models.get(name) != model)
    return search_indexes(
        indexes,
        query,
        vectors.get(model),
        k,
        where,
        by_words=by_words,
        failed=failed,
        note=f"Ranked by words alone: {', '.join(sorted(by_words))}." if by_words else "",
        grouped=grouped,
    )
