"""A small pipeline that is in order, to be harmed: a style, and a draft and a review for each of two chapters."""

from agentx.synthesis.pipelines.definition.faults import PipelineInvalid
from agentx.synthesis.pipelines.definition.reading import parse
from agentx.synthesis.pipelines.definition.steps import resolve

BOOK = """\
pipeline: book
variables: {words: 200}
items:
  chapter:
    - {id: "01", title: One}
    - {id: "02", title: Two}
files:
  style: {path: style.md, class: static}
  summaries: {path: meta/summaries.md, class: append-only}
  draft: {path: "drafts/ch{{ chapter.id }}.md"}
  review: {path: "reviews/ch{{ chapter.id }}.md"}
roles:
  editor:
    writes:
      - {file: style, marker: STYLE}
  writer:
    task: Write {{ words }} words on {{ chapter.title }}.
    reads:
      - {file: style}
      - {file: summaries}
      - {file: review, optional: true}
    writes:
      - file: draft
        marker: DRAFT
    appends:
      - {to: summaries, from: draft}
  reviewer:
    agent: explore
    reads:
      - {file: draft}
    writes:
      - {file: review, verdict: true}
stages:
  - {id: style, role: editor}
  - loop: revise
    for_each: chapter
    after: style
    after_previous: revise
    until: {file: review}
    stages:
      - {id: write, role: writer}
      - {id: check, role: reviewer, after: write}
"""


def plan(text=BOOK):
    """The plan of a pipeline's text."""
    return resolve(*parse(text))


def harmed(*changes, text=BOOK):
    """The book with some of its words changed, each of which stands in it."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def faults(text):
    """What is wrong with a text, as ``line: place: sentence``."""
    try:
        plan(text)
    except PipelineInvalid as error:
        return [f"{one.line}: {one.place}: {one.what}" for one in error.faults]
    return []
