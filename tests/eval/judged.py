"""The sections that a model takes part in, once more with it: each message is read by the model, too, as after a run."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agentx import Workspace
from agentx.memory.model_extraction import judge
from agentx.synthesis.model.port import ModelClient, ModelError
from tests.eval.capture import capture
from tests.eval.labels import labels
from tests.figures import Figure

SECTIONS = {"beam": capture, "coding_transcripts": labels}
"""The sections that take a reader: what is done with a workspace after each message of its user."""

PATIENCE = 3
"""So many failures in a row end it."""


class Reader:
    """Has a model read what was said last, and counts what that took."""

    def __init__(self, model: ModelClient) -> None:
        self.model = model
        self.read = self.refused = self.tokens = self.failed = 0
        self._failing = 0

    def __call__(self, ws: Workspace) -> None:
        try:
            judged = judge(ws, self.model)
        except ModelError:
            self.failed += 1
            self._failing += 1
            if self._failing >= PATIENCE:
                raise
            return  # the next one reads this message, too
        self._failing = 0
        self.read += len(judged.messages)
        self.refused += judged.refusals
        self.tokens += judged.usage.prompt_tokens + judged.usage.completion_tokens


def with_model(
    name: str,
    model: ModelClient,
    without: Iterable[Figure],
    data: Path,
    scratch: Path,
    told: Callable[[str], None],
) -> Iterator[Figure]:
    """The figures of a section with a model, as ``SECTION.model_…``, each beside what it is without."""
    reader = Reader(model)
    values = {figure.key: figure.value for figure in without}
    made = list(SECTIONS[name](data, scratch / "with-a-model", told, reader))
    for figure in made:
        key = figure.key.replace(".", ".model_", 1)
        beside = f"without a model: {values.get(figure.key, 0):.3g}; {figure.beside}"
        yield dataclasses.replace(figure, key=key, measure=f"{model.name}: {figure.measure}", beside=beside)
    if made:
        read = max(1, reader.read)
        for key, measure, value in (
            (
                "refusals_per_100",
                "entries in 100 messages that were not believed",
                100 * reader.refused / read,
            ),
            ("tokens_per_message", "tokens for each message", reader.tokens / read),
            ("failed_calls", "calls that failed", reader.failed),
        ):
            yield Figure(f"{name}.model_{key}", f"{model.name}: {measure}", value)
