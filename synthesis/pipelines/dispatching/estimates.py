"""Estimate how much of its agent's window each dispatch will use, before anything runs.

Existing files are counted. Missing files are replaced by text of the likely size: the required length if
there is such a check, a section for each item done before. The result comes from
:func:`agentx.synthesis.pipelines.dispatching.budget.fit`.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.pipelines.definition.checks import number_of_words
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.definition.pipeline import AgentType, Read
from agentx.synthesis.pipelines.definition.plan import Plan, ReadFile, Step, is_by_engine
from agentx.synthesis.pipelines.dispatching.budget import Candidate, Fitted, NoRoom, fit, item_of, task_words
from agentx.synthesis.pipelines.dispatching.passages import sections_of, tokens_of
from agentx.synthesis.pipelines.dispatching.prompt import PROTOCOL, Sending, has_shared_beginning, tell
from agentx.synthesis.pipelines.templates import fill, has_names_alone

TOKENS_PER_WORD = 1.35
"""For English prose with Markdown."""

FILE_TOKENS = 1_000
"""Assumed size of a file about which nothing is known."""

SECTION_TOKENS = 300
"""Assumed size of one item's addition to the long-term memory, and of one item's section in a plan of many.
"""

_SENTENCE = "a" + " a" * 18 + ". "
_SENTENCE_TOKENS = 20

_DIGITS = str.maketrans("123456789", "000000000")

There = Callable[[ReadFile], Mapping[str, str]]
"""Returns the existing texts for a pointer, by the path shown to the agent; empty if there are none."""


class EstimateRow(msgspec.Struct, frozen=True):
    """A file in a budget.

    Attributes:
        tokens: Tokens of the given part.
        whole_tokens: Tokens of the complete file.
        cut: What is cut, in words; empty if it is complete.
        estimated: Whether it does not exist yet, or will have changed by then.
    """

    path: str
    tokens: int
    whole_tokens: int
    cut: str
    estimated: bool


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that one dispatch uses of its agent's window.

    Attributes:
        rows: The files that it is given.
        left_out: Secondary files that do not fit, each with the reason.
        parts: Number of parts of the task; 1 if it is not split.
        shared: Tokens at its beginning that all dispatches of the stage have in common.
        reads: All files; for a split task, those of the largest part.
        prompt: The rest of the prompt.
        system: The provider's own prompt.
        output: Reserve for the answer.
        problem: Why it cannot be dispatched; empty if it can.
    """

    rows: tuple[EstimateRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    parts: int = 1
    shared: int = 0
    reads: int
    prompt: int
    system: int
    output: int
    window: int
    problem: str = ""

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.reads + self.prompt + self.system + self.output

    @property
    def is_estimated(self) -> bool:
        """Whether any of it is estimated."""
        return any(row.estimated for row in self.rows)


def budget_of(fitted: Fitted, estimated: Collection[str] = ()) -> Budget:
    """Return the budget of a dispatch.

    ``estimated`` has the paths of files whose text is a stand-in.
    """
    return Budget(
        rows=tuple(
            EstimateRow(one.path, one.tokens, one.whole_tokens, one.cut, one.path in estimated)
            for one in fitted.given
        ),
        left_out=fitted.left_out,
        parts=max(len(fitted.parts), 1),
        reads=fitted.reads_tokens,
        prompt=fitted.prompt_tokens,
        system=fitted.system,
        output=fitted.output,
        window=fitted.window,
    )


class Estimator:
    """Estimates the dispatches of a plan.

    ``there`` reads the existing files, each once. ``done`` has the keys of proved steps, whose output exists
    already.

    Raises:
        TemplateInvalid: A heading of what is added cannot be filled in.
    """

    def __init__(self, plan: Plan, there: There, done: Collection[str] = ()) -> None:
        self._plan, self._there, self._done = plan, there, done
        self._place = {key: n for n, key in enumerate(plan.steps)}
        self._writers: dict[str, Step] = {}
        self._appends: defaultdict[str, list[tuple[Step, str]]] = defaultdict(list)
        self._patterns: dict[str, list[str]] = {}
        self._prompts: dict[tuple[str, ...], int] = {}
        self._plain: dict[str, bool] = {}
        self._texts: dict[tuple[str, str], Mapping[str, str]] = {}
        for step in plan.steps.values():
            for write in step.writes:
                self._writers.setdefault(write.path, step)
            for append in step.appends:
                heading = fill(append.rule.under, step.values) or step.key
                self._appends[append.to].append((step, heading))

    def of(self, step: Step) -> Budget:
        """Return the budget of a step that an agent does.

        Raises:
            TemplateInvalid: A template of its role cannot be filled in.
        """
        role, agent = self._plan.role(step), self._plan.agent(self._plan.role(step))
        prompt_tokens = self._prompt_tokens(step)
        paths = ((read, path) for read in step.reads for path in read.paths if not read.rule.lazy)
        found = [one for read, path in paths for one in self._candidates(step, read, path)]
        guessed = {one.path for one, guess in found if guess}

        def fitted_to(window: AgentType) -> Fitted:
            over = role.split.over if role.split else ""
            files, about, item = [one for one, _ in found], task_words(role, step), item_of(step)
            return fit(files, window, prompt_tokens=prompt_tokens, about=about, split=over, item=item)

        try:
            return self._with_shared(budget_of(fitted_to(agent), guessed), found)
        except NoRoom as error:
            endless = agent.model_copy(update={"window": sys.maxsize, "max_files": sys.maxsize})
            whole = budget_of(fitted_to(endless), guessed)
            return msgspec.structs.replace(whole, window=agent.window, problem=str(error))

    def _prompt_tokens(self, step: Step) -> int:
        """Return the tokens of a prompt without its files.

        Prompts of a stage that differ only in digits are counted once: three digits are one token.
        """
        if not self._has_names_alone(step):
            return count_tokens(tell(self._plan, Sending(step=step)).bare)
        values = [value for part in step.of.parts.values() for value in part.values()] if step.of else []
        told = (*map(str, values), *(write.path for write in step.writes))
        key = (step.stage, *(one.translate(_DIGITS) for one in told))
        if key not in self._prompts:
            self._prompts[key] = count_tokens(tell(self._plan, Sending(step=step)).bare)
        return self._prompts[key]

    def _has_names_alone(self, step: Step) -> bool:
        """Return whether the texts of a step's role take the values of its item as they are."""
        if step.role not in self._plain:
            role = self._plan.role(step)
            checks = [check for write in role.writes for check in write.checks]
            texts = [role.title, role.duty, role.task, role.prompt, *role.standards]
            texts += [write.format for write in role.writes]
            texts += [one for check in checks for one in (*check.sections, *check.uses, *check.absent)]
            texts += [check.length.words for check in checks if check.length]
            self._plain[step.role] = all(map(has_names_alone, texts))
        return self._plain[step.role]

    def _with_shared(self, budget: Budget, found: Sequence[tuple[Candidate, bool]]) -> Budget:
        shared = {one.path for one, _ in found if has_shared_beginning(self._plan, one.rule.file)}
        tokens = sum(row.tokens for row in budget.rows if row.path in shared)
        return msgspec.structs.replace(budget, shared=count_tokens(PROTOCOL) + tokens)

    def written(self, step: Step) -> int:
        """Return the expected number of tokens that a step writes."""
        return sum(self._expected(write.path) for write in step.writes)

    def _candidates(self, step: Step, read: ReadFile, path: str) -> Iterator[tuple[Candidate, bool]]:
        """Yield the files of one path of a pointer, each with whether it is a guess."""
        key = (read.source, path)
        if key not in self._texts:
            self._texts[key] = self._there(msgspec.structs.replace(read, paths=(path,)))
        texts = dict(self._texts[key])
        if "*" in path and not read.source:
            written = {one for one in self._matched(path) if one not in texts and self._comes(one, step)}
            if written:
                texts |= {one: self._guessed(step, read.rule, one) for one in written}
                yield from ((Candidate(read.rule, one, text), one in written) for one, text in texts.items())
                return
        writer = self._writers.get(path)
        appends = [one for one in self._appends.get(path, ()) if one[0].key not in self._done]
        earlier = [heading for other, heading in appends if self._is_before(other, step)]  # not there yet
        comes = writer is not None and writer.key not in self._done
        if not texts and (earlier or comes or not (read.rule.optional or path in self._appends)):
            texts[f"{read.source}:{path}" if read.source else path] = ""
            comes = True
        for told, text in texts.items():
            # A file of the long-term memory gets one more section of average size for each item.
            sections = sections_of("x.md", text).sections if text and earlier else ()
            size = tokens_of(text) // len(sections) if sections else SECTION_TOKENS
            grown = text + "".join(f"\n## {heading}\n\n{_words(size)}\n" for heading in earlier)
            yield (
                Candidate(read.rule, told, grown or (self._guessed(step, read.rule, path) if comes else "")),
                comes or bool(earlier),
            )

    def _matched(self, pattern: str) -> list[str]:
        """Return the paths that steps write and that a pattern matches."""
        if pattern not in self._patterns:
            matches = path_pattern(pattern).fullmatch
            self._patterns[pattern] = [path for path in self._writers if matches(path)]
        return self._patterns[pattern]

    def _comes(self, path: str, step: Step) -> bool:
        """Return whether a file will be written before a step."""
        writer = self._writers[path]
        return writer.key not in self._done and self._place[writer.key] < self._place[step.key]

    def _is_before(self, one: Step, other: Step) -> bool:
        """Return whether a step comes before another: for an earlier item, or earlier for the same item."""
        first, second = item_of(one).get("number", 0), item_of(other).get("number", 0)
        if first and second and first != second:
            return bool(first < second)
        return self._place[one.key] < self._place[other.key]

    def _guessed(self, step: Step, rule: Read, path: str) -> str:
        """Return a stand-in text of the likely length of a missing file."""
        if rule.fit == "whole":
            return _words(self._expected(path))
        items = self._plan.each[step.stage] if step.of else ()
        parts = (next(iter(one.parts.values())) for one in items if one)
        titles = (f"## {part['id']} {part.get('title', '')}" for part in parts)
        sections = "".join(f"{title}\n\n{_words(SECTION_TOKENS)}\n\n" for title in titles)
        return sections or _words(self._expected(path))

    def _expected(self, path: str, behind: frozenset[str] = frozenset()) -> int:
        """Return the expected tokens of a written file, from its length check or from its sources."""
        step = self._writers.get(path)
        if step is None or path in behind:
            return FILE_TOKENS
        checks = next(write.rule.checks for write in step.writes if write.path == path)
        for check in checks:
            if check.length is not None:
                return int(number_of_words(fill(check.length.words, step.values)) * TOKENS_PER_WORD)
        if not is_by_engine(self._plan.role(step)):
            return FILE_TOKENS
        sources = {one for read in step.reads for one in read.paths}
        return sum(self._expected(one, behind | {path}) for one in sources) or FILE_TOKENS


def _words(tokens: int) -> str:
    """Return meaningless prose of about this many tokens."""
    return _SENTENCE * max(round(tokens / _SENTENCE_TOKENS), 1)
