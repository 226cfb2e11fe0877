"""The input of templates that the engine fills in: the files that a role reads, in parts."""

from collections.abc import Mapping

from agentx.synthesis.pipelines.definition.checks import verdict_of
from agentx.synthesis.pipelines.proving.markdown import sections


class View:
    """A file as a template of the engine sees it.

    Attributes:
        text: The whole text.
        body: The text without its marker.
        verdict: ``PASS``, ``FAIL``, or empty.
        sections: The text below each heading, by heading.
    """

    def __init__(self, text: str, body: str) -> None:
        self.text, self.body, self.verdict = text, body, verdict_of(text)
        self.sections = {one.title: "\n".join(one.whole).strip() for one in sections(body)}


class Views:
    """The files that a template of the engine sees, by their names in the pipeline."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self._views = views

    def __getitem__(self, name: str) -> View:
        return self._views[name]
