"""The memory tools: query what is known. All of them work without a model."""

import time
from typing import Annotated

import msgspec
from pydantic import Field

from agentx.core.layout import ARTIFACTS
from agentx.engine import models
from agentx.memory import settling
from agentx.memory.settling import Settlement
from agentx.search.event_chunks import place
from agentx.storage.artifacts import ArtifactMissing
from agentx.storage.errors import UsageError
from agentx.storage.files.paths import check_folder
from agentx.storage.index.port import Filter, SearchKind
from agentx.storage.text import is_binary
from agentx.synthesis.judgement.settling import Act, KeptAs, SettleVerdict
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.recall.describing import purpose_by
from agentx.synthesis.recall.retrieval import SearchHit
from agentx.synthesis.recall.summaries import directory_purpose, summarize_decisions
from agentx.tools.quality_tools import QualityTools
from agentx.tools.toolset import Job, tool
from agentx.trust.trust import Restricted

MAX_HITS = 50
DESCRIBE_S = 20.0
"""Longest wait for a model that describes a directory, in seconds."""

_CACHED_SUMMARIES = 64
_SUMMARY_FILES = 400
_SUMMARY_BYTES = 200_000


class Hits(msgspec.Struct, frozen=True):
    """The hits of a search, best first.

    Attributes:
        note: Why the search was limited to words; empty if it was not.
    """

    query: str
    hits: tuple[SearchHit, ...]
    note: str = ""

    def render(self) -> str:
        """Return each passage with its location."""
        found = [f"{n}. {place(hit)}\n{hit.text}{_also(hit)}" for n, hit in enumerate(self.hits, start=1)]
        return "\n\n".join(
            [*(found or [f"Nothing was found for {self.query!r}."]), *filter(None, [self.note])]
        )


def _also(hit: SearchHit) -> str:
    return f"\nalso: {', '.join(hit.also)}" if hit.also else ""


class Summary(msgspec.Struct, frozen=True):
    """A summary, as Markdown."""

    text: str

    def render(self) -> str:
        """Return the text."""
        return self.text


class MemoryTools(QualityTools):
    """Tools that query the memory."""

    @tool
    def search_memory(
        self,
        job: Job,
        query: Annotated[
            str, Field(min_length=1, description="What to look for, in words, symbols or exact text.")
        ],
        k: Annotated[int, Field(ge=1, le=MAX_HITS, description="How many passages.")] = 8,
        path: Annotated[str, Field(description="Only below this directory, or matching this glob.")] = "",
        kind: Annotated[
            SearchKind | None,
            Field(description="Only source code, tests, docs, …, or messages, tool output or memory."),
        ] = None,
        source: Annotated[str | None, Field(description="Only this read-only source.")] = None,
        since: Annotated[str, Field(description="Only from this ISO date on.")] = "",
        before: Annotated[str, Field(description="Only before this ISO date.")] = "",
    ) -> Hits:
        """Search everything that was written, said and printed in this task, and the sources beside it."""
        del job
        where = Filter(kinds=(kind,) if kind else (), path=path, source=source, since=since, before=before)
        hits = self.engine.search(query, k, where, grouped=True)
        note = ""
        if self.engine.indexer.unread:
            note = "Many changed files are still being read and are not all found yet; ask again in a minute."
        elif self.engine.indexer.behind:
            note = "Many passages are not embedded yet, so only words were compared; ask again in a minute."
        return Hits(query, tuple(hits), note)

    @tool
    def summarize_directory_purpose(
        self,
        job: Job,
        path: Annotated[str, Field(description="Directory relative to the artifacts; empty for all.")] = "",
    ) -> Summary:
        """Describe a directory: a README made from its files, docstrings and symbols, with its rules."""
        del job
        folder = check_folder(path.strip().lstrip("/"))
        rules = self.engine.demands()
        write_path = self.engine.write_path
        tree = write_path.git.repo.subtree(write_path.git.tree, f"{ARTIFACTS}/{folder}".rstrip("/"))
        if folder and not tree:
            raise ArtifactMissing(f"The artifacts have no directory {folder!r}.")
        key = (tree, folder, ",".join(f"{rule.id}@{rule.changed_seq}" for rule in rules))
        cache = self.engine.summaries
        if key not in cache:
            cache[key] = directory_purpose(folder, self._texts(tree, folder), rules, self._describe).text
            while len(cache) > _CACHED_SUMMARIES:
                cache.popitem(last=False)
        return Summary(cache[key])

    @tool
    def summarize_decisions(self, job: Job) -> Summary:
        """List the user's rules, rejections, decisions and open tasks in effect, each with its events."""
        del job
        state = self.engine.state
        return Summary(summarize_decisions(state.items.values(), state.messages))

    @tool
    def settle(  # noqa: PLR0913 - the fields of a verdict
        self,
        job: Job,
        *,
        id: Annotated[str, Field(description="The candidate, or the rule that is perhaps ended.")],  # noqa: A002
        verdict: Annotated[
            Act, Field(description="keep, drop, or it says the same as, ends or replaces `other`.")
        ],
        quote: Annotated[
            str, Field(description="The user's words, copied exactly; only drop may omit them.")
        ] = "",
        text: Annotated[str, Field(description="keep: a sentence clear on its own, in your words.")] = "",
        kind: Annotated[KeptAs, Field(description="keep: as what; empty for its own kind.")] = "",
        scope: Annotated[str, Field(description="The user's words for where it applies.")] = "",
        until: Annotated[str, Field(description="The user's words for what ends it.")] = "",
        other: Annotated[str, Field(description="ID of the item that it repeats, ends or replaces.")] = "",
        reason: Annotated[str, Field(description="Why, in one short line for the user.")] = "",
    ) -> Settlement:
        """Settle whether what the user said is meant to last; only what their own words show is kept."""
        del job
        given = SettleVerdict(
            id=id,
            verdict=verdict,
            quote=quote,
            text=text,
            kind=kind,
            scope=scope,
            until=until,
            other=other,
            reason=reason,
        )
        settled = settling.settle(self.engine, (given,), by=self.actor)
        if settled.refused:
            raise UsageError(f"Refused: {settled.refused[0].why}")
        return settled

    def _describe(self, outline: str) -> str:
        """Return what the model in use says a directory is for; empty without one, or if it fails."""
        if not models.model_name(self.engine) or self.engine.write_path.read_only:
            return ""
        try:
            model = models.model(self.engine)
            words, usage = purpose_by(model, outline, time.monotonic() + DESCRIBE_S)
        except (ModelError, Restricted):
            return ""
        self.engine.synthesizer.record((), "directory", asked=model.name, usage=usage)
        return f"{words} (described by {model.name})" if words else ""

    def _texts(self, tree: str, folder: str) -> dict[str, str | None]:
        """Return the files below a directory with their texts; beyond a limit, only the names."""
        prefix = folder + "/" if folder else ""
        repo = self.engine.git.repo
        found: dict[str, str | None] = {}
        for number, (path, entry) in enumerate(repo.files(tree, prefix)):
            found[path] = None
            if number < _SUMMARY_FILES:
                data = repo.read_blob(entry.oid)
                if len(data) <= _SUMMARY_BYTES and not is_binary(data):
                    found[path] = data.decode("utf-8", "replace")
        return found
