"""What is out of date: the proved steps that rest on other contents than there are now, and why.

A step is compared with what it was given. It is stale by the contents alone, whoever changed them: if a file
changes back, the steps that read it are up to date again.

A file that several steps write is compared as the steps before this one left it. So neither a review that a
later round reads nor a text that a later stage polishes makes an earlier step stale. A file of the long-term
memory grows with every step: a step is stale only if one before it added something since, or if a person
changed what it was given.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, Protocol

import msgspec

from agentx.storage.events.types import Body
from agentx.storage.secrets.redaction import clean
from agentx.synthesis.pipelines.definition.ancestors import ancestors, numbers_in
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, Step
from agentx.synthesis.pipelines.running.basis import basis_of
from agentx.synthesis.pipelines.running.pipeline_progress import GivenInputs, Progress, Proof

Kind = Literal["input", "added", "removed", "memory", "prompt", "checks", "output"]
"""What changed: a file that it read, one that it did not read yet or does not read any more, the entries of
earlier steps, the role's texts, the checks, or its own file."""

_MOST_BEHIND = 20
"""Maximum number of steps that a stale step is said to follow."""


class StaleCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change since a step was done.

    Attributes:
        path: The file; empty for a change of the pipeline's file.
        before: Blob id of the content that it was given, or that it left.
        after: Blob id of the present content; empty if the file is gone.
        by: For ``memory``, the step that added something.
    """

    kind: Kind
    path: str = ""
    before: str = ""
    after: str = ""
    by: str = ""


class Stale(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step that may be out of date.

    Attributes:
        causes: What changed; empty for a step that only follows others.
        behind: Steps whose files it reads and that are not up to date themselves, or not done.
    """

    step: Step
    causes: tuple[StaleCause, ...] = ()
    behind: tuple[str, ...] = ()

    @property
    def is_taken(self) -> bool:
        """Whether its own files were changed: they count as its result and are not written again."""
        return any(cause.kind == "output" for cause in self.causes)


class _Changed(Protocol):
    def __call__(self, path: str, *, by_hand: bool = False) -> int: ...


class Present(msgspec.Struct, frozen=True):
    """The files as they are now.

    Attributes:
        files: Returns the blob id of each file that a pointer matches, by path.
        blob: Returns that of a file in the artifacts; empty if there is none.
        begins: Returns whether a file begins with the content of a blob.
        changed: Returns the event of the latest change of an artifact; with ``by_hand``, 0 unless a person
            made it.
        whole: Returns the whole text of a body.
    """

    files: Callable[[ReadFile], Mapping[str, str]]
    blob: Callable[[str], str]
    begins: Callable[[str, str], bool]
    changed: "_Changed"
    whole: Callable[[Body], str]


class Staleness:
    """Compares the steps of a plan with what they were given."""

    def __init__(self, plan: Plan, progress: Progress, present: Present) -> None:
        self.plan, self.progress, self.present = plan, progress, present
        self._keys = list(plan.steps)
        self._bit = {key: 1 << number for number, key in enumerate(plan.steps)}
        self._before = ancestors(plan)
        self._writers: defaultdict[str, list[str]] = defaultdict(list)
        self._growers: defaultdict[str, list[str]] = defaultdict(list)
        for key, step in plan.steps.items():
            for write in step.writes:
                (self._growers if write.sort == "append-only" else self._writers)[write.path].append(key)
            for path in {append.to for append in step.appends}:
                self._growers[path].append(key)
        self._masks: dict[str, int] = {}
        self._additions: dict[str, tuple[list[int], list[int]]] = {}
        self._latest = progress.latest

    def all(self, done: Callable[[str], bool]) -> list[Stale]:
        """Return the steps that are not up to date, in order; ``done`` says which steps are proved."""
        found: list[Stale] = []
        doubtful = 0
        for key, step in self.plan.steps.items():
            proof = self.progress.proved.get(key)
            if proof is None or not done(key):
                doubtful |= self._bit[key]
                continue
            causes = tuple(self.causes(step, proof))
            behind = tuple(islice(self._behind(step, doubtful), _MOST_BEHIND)) if doubtful else ()
            if causes or behind:
                doubtful |= self._bit[key]
                found.append(Stale(step, causes, behind))
        return found

    def causes(self, step: Step, proof: Proof, *, unknown: bool = False) -> Iterator[StaleCause]:
        """Yield what changed since a step was done.

        An earlier version did not record the inputs of what it proved. Only with ``unknown``, each of them
        that has changed since then counts.
        """
        given = proof.given
        yield from self._of_outputs(step, proof)
        if not given.basis.prompt:
            yield from self._of_unknown(step, given) if unknown else ()
            return
        yield from self._of_inputs(step, given)
        now = basis_of(self.plan, step)
        if now.prompt != given.basis.prompt:
            yield StaleCause("prompt", before=given.basis.prompt, after=now.prompt)
        if now.checks != given.basis.checks:
            yield StaleCause("checks", before=given.basis.checks, after=now.checks)

    # --- its files ------------------------------------------------------------------------------------------

    def _of_outputs(self, step: Step, proof: Proof) -> Iterator[StaleCause]:
        written = {write.path: write.sort for write in step.writes}
        for output in proof.outputs:
            now = self.present.blob(output.path)
            if now == output.blob or output.path not in written:
                continue
            if written[output.path] == "append-only":
                if not now or not self.present.begins(output.path, output.blob):
                    yield StaleCause("output", output.path, output.blob, now)
                continue
            last = self._last(self._writers[output.path], output.path)
            if last == step.key:
                yield StaleCause("output", output.path, output.blob, now)
            elif self._before[step.key] & self._bit[last]:  # written anew before it; a later step is no cause
                yield StaleCause("input", output.path, output.blob, now)

    def _of_inputs(self, step: Step, given: GivenInputs) -> Iterator[StaleCause]:
        then = listed(self.present.whole(given.inputs))
        now: dict[str, str] = {}
        for read in step.reads:
            now |= self.present.files(read)
        if then == now or then == listed(clean(as_list(now))):  # a name may look like a secret
            return
        for path in dict.fromkeys((*then, *now)):
            before, after = then.get(path, ""), now.get(path, "")
            if path in self._growers:
                yield from self._of_memory(step, given, path, before, after)
                continue
            if path in self._writers:
                after = self._left(step, given, path, before, after)
            if before != after:
                kind: Kind = "added" if not before else "input" if after else "removed"
                yield StaleCause(kind, path, before, after)

    def _of_unknown(self, step: Step, given: GivenInputs) -> Iterator[StaleCause]:
        paths = [path for read in step.reads if not read.source for path in self.present.files(read)]
        for path in dict.fromkeys(paths):
            above = [key for key in self._writers.get(path, ()) if self._before[step.key] & self._bit[key]]
            if path in self._growers:
                yield from self._of_memory(step, given, path, "", self.present.blob(path))
            elif (above or path not in self._writers) and self.present.changed(path) > given.seq:
                yield StaleCause("input", path, "", self.present.blob(path))

    def _left(self, step: Step, given: GivenInputs, path: str, before: str, after: str) -> str:
        """Return the content of a file as the steps before a step left it; ``before`` if that is unknown."""
        above = [key for key in self._writers[path] if self._before[step.key] & self._bit[key]]
        if not above:
            return before  # later steps write it, and this one does not need it
        last = self._last(above, path)
        if last == self._last(self._writers[path], path):
            return after
        proof = self.progress.proved[last]
        return (
            next(one.blob for one in proof.outputs if one.path == path) if proof.seq > given.seq else before
        )

    def _last(self, keys: Sequence[str], path: str) -> str:
        """Return the step among some that was the latest to prove a file; empty if none did."""
        proofs = ((self.progress.proved.get(key), key) for key in keys)
        found = [
            (proof.seq, key)
            for proof, key in proofs
            if proof and any(output.path == path for output in proof.outputs)
        ]
        return max(found, default=(0, ""))[1]

    def _of_memory(
        self, step: Step, given: GivenInputs, path: str, before: str, after: str
    ) -> Iterator[StaleCause]:
        if before == after:
            return
        if not after:
            yield StaleCause("removed", path, before)
            return
        seqs, masks = self._grown(path)
        since = masks[bisect_right(seqs, given.seq)] & self._before[step.key]
        if since:
            yield StaleCause("memory", path, before, after, self._keys[next(numbers_in(since))])
            return
        touched = max(self.progress.amended.get(path, 0), self.present.changed(path, by_hand=True))
        if touched > given.seq and before and not self.present.begins(path, before):
            yield StaleCause("input", path, before, after)

    def _grown(self, path: str) -> tuple[list[int], list[int]]:
        """Return the latest additions to a file, in order, and for each the steps that made it or later ones.

        The steps are bit masks; the last of them is empty.
        """
        if self._latest != self.progress.latest:
            self._latest = self.progress.latest
            self._additions.clear()
        if path not in self._additions:
            found: list[tuple[int, str]] = []
            for key in self._growers[path]:
                added, proof = self.progress.remembered.get(key, ()), self.progress.proved.get(key)
                wrote = proof is not None and any(output.path == path for output in proof.outputs)
                found.append((max(proof.seq if proof and wrote else 0, added[-1] if added else 0), key))
            found.sort()
            masks = [0]
            for _, key in reversed(found):
                masks.append(masks[-1] | self._bit[key])
            self._additions[path] = [seq for seq, _ in found], masks[::-1]
        return self._additions[path]

    # --- the steps before it --------------------------------------------------------------------------------

    def _behind(self, step: Step, doubtful: int) -> Iterator[str]:
        """Yield the steps whose files a step reads and that are among the doubtful ones."""
        wrote = 0
        for read in step.reads:
            for path in () if read.source else read.paths:
                wrote |= self._mask(path)
        return (self._keys[number] for number in numbers_in(wrote & self._before[step.key] & doubtful))

    def _mask(self, path: str) -> int:
        """Return a bit mask of the steps that write the files of a path or pattern."""
        if path not in self._masks:
            mask = 0
            for wrote in (self._writers, self._growers):
                for one in filter(path_pattern(path).fullmatch, wrote) if "*" in path else (path,):
                    for key in wrote.get(one, ()):
                        mask |= self._bit[key]
            self._masks[path] = mask
        return self._masks[path]


def as_list(files: Mapping[str, str]) -> str:
    """Return blob ids by path as the text that the history keeps."""
    return "\n".join(f"{blob} {path}" for path, blob in files.items())


def listed(text: str) -> dict[str, str]:
    """Return the blob ids of a list of files, by path."""
    return {path: blob for blob, _, path in (line.partition(" ") for line in text.split("\n"))}
