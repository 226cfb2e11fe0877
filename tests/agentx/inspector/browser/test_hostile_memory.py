"""Memory, problems, procedures, pipelines and cognition whose every field an attacker wrote are text on the page."""

import re

import pytest

from agentx import Workspace
from agentx.storage.events.cognition_events import Interacted
from agentx.storage.events.pipeline_events import PipelineStarted
from agentx.storage.events.types import Draft, TaskGraded
from agentx.synthesis.memory.conclusions import Add, Concluded
from agentx.synthesis.memory.items import (
    ConstraintDetail,
    Evidence,
    FlowDetail,
    HotIssueDetail,
    Link,
    MemoryItem,
    Scope,
)
from tests.agentx.inspector.browser.conftest import address, settings_of
from tests.agentx.inspector.browser.test_hostile_texts import HOSTILE, beginning, unsafe

pytestmark = pytest.mark.timeout(300)

IDS = (
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "<img src=x onerror=window.__pwned=60>",
    "../../act",
    "%2e%2e",
    "a/b?c#d",
)
"""Names that mean something to JavaScript, HTML or an address."""

TEXTS = [text for name, text in HOSTILE.items() if name != "null byte"]


def item(number, text, detail=None, **more):
    kind = {HotIssueDetail: "hot_issue", FlowDetail: "flow", ConstraintDetail: "constraint"}.get(
        type(detail), "decision"
    )
    given = {"id": IDS[number] if number < len(IDS) else f"{kind[0]}-{number}", "kind": kind, "text": text}
    if detail is not None:
        given["detail"] = detail
    told = {
        "short": text[:60],
        "domain": text,
        "agent": text,
        "reason": text,
        "until": text,
        "worded_by": f"agent:{text}",
    }
    links = tuple(
        Link(relation, target)
        for relation, target in (("recurs", IDS[0]), ("said_by", text), ("found_in", text))
    )
    scope = Scope(topic=text, paths=(text,), tools=(text,))
    return MemoryItem(
        **given, **told, scope=scope, links=links, evidence=(Evidence(seq=2, quote=text),), **more
    )


def items():
    """Each text as an item of a kind that a view is about, and each of the names as one."""
    for number, text in enumerate(TEXTS):
        match number % 4:
            case 0:
                yield item(
                    number,
                    text,
                    HotIssueDetail(runner=text, check=text, path=text, message=text, command=text),
                )
            case 1:
                yield item(number, text, FlowDetail(steps=(text, text), triggers=(text,)))
            case 2:
                yield item(number, text, ConstraintDetail(), status="candidate")
            case _:
                yield item(number, text)


PIPELINE = """\
version: 1
name: {name}
roles:
  writer: {{play: {{command: ["true"]}}}}
stages:
  - {{stage: write, role: writer, writes: [a.md]}}
"""


@pytest.fixture(scope="module")
def forged(environ, tmp_path_factory):
    root = tmp_path_factory.mktemp("forged") / "task"
    with Workspace.create(root, title="A task", settings=settings_of(environ)) as ws:
        ws.say("A message.")
        for number, one in enumerate(items()):
            made = Concluded(extractor="person", version=1, through=2, changes=(Add(one),))
            text = TEXTS[number]
            ws.record(
                Draft(data=made, actor="engine:memory"),
                Draft(data=TaskGraded(task=text, passed=False, flow=one.id, steps_seen=1, steps=2), actor="engine:memory"),
                Draft(data=Interacted(session=text, interaction=1, message=2, entered=IDS), actor="engine:cognition"),
                Draft(data=Interacted(session=IDS[number % len(IDS)], interaction=number, message=2, entered=(one.id,)), actor="engine:cognition"),
                Draft(data=PipelineStarted(name=text, definition=ws.body(PIPELINE.format(name=text))), actor="engine:pipeline"),
            )  # fmt: skip
    return root


@pytest.mark.parametrize("view", ["memory", "candidates", "problems", "flows", "cognition", "context"])
def test_a_view_of_forged_things_is_text(watch, environ, forged, view):
    looking = watch(address(environ, forged))
    page = looking.page
    looking.go(view, view.capitalize())
    assert unsafe(page) == []
    assert page.locator("#main .error").count() == 0
    shown = "".join(looking.text().split())
    if view in {"candidates", "problems", "flows"}:
        kinds = {"problems": 0, "flows": 1, "candidates": 2}
        assert [text for text in TEXTS[kinds[view] :: 4][:8] if beginning(text) not in shown] == []
    for summary in page.locator("#main summary").all()[:12]:
        summary.click()
    assert unsafe(page) == []


def test_things_with_names_that_mean_something_elsewhere_are_opened(watch, environ, forged):
    looking = watch(address(environ, forged))
    page = looking.page
    for name in IDS:
        for view in ("memory", "pipelines", "runs"):
            page.evaluate(
                "([w, view, name]) => { location.hash = `#/${w}/${view}/${encodeURIComponent(name)}` }",
                [looking.w, view, name],
            )
            page.wait_for_function("() => !document.querySelector('#main .skeleton')")
            assert unsafe(page) == []
            assert page.evaluate("location.hash").startswith(f"#/{looking.w}/{view}/")
    looking.faults = [one for one in looking.faults if not re.search(r"status of (400|404)", one)]


def test_a_pipeline_with_a_forged_definition_is_text_and_hides_no_other(watch, environ, forged):
    looking = watch(address(environ, forged))
    page = looking.page
    page.evaluate("w => { location.hash = `#/${w}/pipelines` }", looking.w)
    page.wait_for_selector("#main .error")
    assert page.locator("#main h1").count() == 1
    assert page.locator("#main select option").count() == len(TEXTS)
    assert unsafe(page) == []
    looking.faults = [one for one in looking.faults if not re.search(r"status of (400|404)", one)]
