"""What the templates of roles that no agent plays are given: the files that they read, in parts."""

from collections.abc import Mapping

from agentx.synthesis.pipelines.definition.checks import verdict_of
from agentx.synthesis.pipelines.proving.markdown import sections


class View:
    """A file that a template of the engine is given.

    Attributes:
        text: All of it.
        body: Without its marker.
        verdict: ``PASS``, ``FAIL``, or empty.
        sections: The text below each heading, by its words.
    """

    def __init__(self, text: str, body: str) -> None:
        self.text, self.body, self.verdict = text, body, verdict_of(text)
        self.sections = {one.title: "\n".join(one.whole).strip() for one in sections(body)}


class Views:
    """The files that a template of the engine is given, by their names in the pipeline."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self._views = views

    def __getitem__(self, name: str) -> View:
        return self._views[name]
