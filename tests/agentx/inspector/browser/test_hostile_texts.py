"""What an attacker gets into a workspace is text on the page, and nothing else, wherever it is shown.

The texts stand in messages, answers, thoughts, files and their names, memory, commit subjects, names of agents, runs and
tools, arguments and errors. Each calls ``window.__pwned`` or asks another host if a browser takes it for more than text.
"""

import re
from urllib.parse import quote

import pytest

from agentx import Workspace
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    Body,
    Draft,
    FileChange,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
)
from tests.agentx.inspector.browser.conftest import address, settings_of

pytestmark = pytest.mark.timeout(300)

FAR = "http://192.0.2.1/pwned"
"""An address that leads nowhere: a request to it is a fault."""

HOSTILE = {
    "script": "<script>window.__pwned=1</script>",
    "script of another host": f'<script src="{FAR}.js"></script>',
    "handler": '<img src=x onerror="window.__pwned=2">',
    "handler without quotes": "<img src=x onerror=window.__pwned=3>",
    "handler after slash": "<svg/onload=window.__pwned=4>",
    "svg with script": "<svg><script>window.__pwned=5</script></svg>",
    "svg with animation": '<svg><animate onbegin="window.__pwned=6" attributeName=x dur=1s></svg>',
    "svg with a foreign object": '<svg><foreignObject><iframe srcdoc="<script>parent.__pwned=7</script>"></iframe></foreignObject></svg>',
    "javascript link": '<a href="javascript:window.__pwned=8">open</a>',
    "bare javascript link": "javascript:window.__pwned=9",
    "data link": "data:text/html,<script>parent.__pwned=10</script>",
    "template literal": "${window.__pwned=11}`${(()=>{window.__pwned=12})()}`",
    "htm syntax": "<${window.__pwned=13} onClick=${() => 1} ...${{}} /><//>",
    "a node as JSON": '{"type":"script","props":{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=window.__pwned=14>"}},"constructor":null}',
    "html property": '{"__html":"<img src=x onerror=window.__pwned=15>"}',
    "prototype key": '{"__proto__":{"pwned":16},"constructor":{"prototype":{"pwned":17}}}',
    "terminal escape": "\x1b[2J\x1b]0;pwned\x07\x1b[31mred\x1b[0m",
    "override of direction": "cod.exe\u202egpj.invoice",
    "isolates": "\u2066\u2067hidden\u2069 \u200e\u200f\u200b\u2060\ufeffseen",
    "null byte": "before\x00after\x08\x7f\x85",
    "tags that are not seen": "plain\U000e0041\U000e0042text",
    "markdown link": "[open](javascript:window.__pwned=18)",
    "markdown image": f"![picture]({FAR}.png)",
    "markdown html": '# <img src=x onerror="window.__pwned=19">',
    "style sheet": f'<style>@import "{FAR}.css"; body{{display:none}}</style>',
    "style attribute": f'<div style="background:url({FAR}.png);position:fixed;inset:0">',
    "css expression": "</style><style>*{visibility:hidden}</style>",
    "end of title": "</title><script>window.__pwned=20</script>",
    "end of textarea": "</textarea><script>window.__pwned=21</script>",
    "end of comment": "--><script>window.__pwned=22</script><!--",
    "end of select": "</option></select><img src=x onerror=window.__pwned=23>",
    "refresh": f'<meta http-equiv="refresh" content="0;url={FAR}">',
    "base": '<base href="http://192.0.2.1/">',
    "frame": f'<iframe src="{FAR}"></iframe><object data="{FAR}"></object><embed src="{FAR}">',
    "mathml": '<math><mtext><table><mglyph><style><img src=x onerror="window.__pwned=24">',
    "xml entity": f'<!DOCTYPE x [<!ENTITY e SYSTEM "{FAR}">]><x>&e;&#60;script&#62;</x>',
    "entities": "&lt;script&gt;window.__pwned=25&lt;/script&gt;&#x3c;img src=x onerror=window.__pwned=26&#x3e;",
    "custom element": f'<link rel="stylesheet" href="{FAR}.css"><link rel=preload as=script href="{FAR}.js"><x-y is=pwned>',
    "form": f'<form action="{FAR}"><input autofocus onfocus="window.__pwned=27"><button>go</button></form>',
    "broken utf-16": "half \\ud800 of a pair \U0001f469\u200d\U0001f680",
    "quotes": '"\'`\\"\\\' onmouseover=window.__pwned=28 x="',
    "expression of a framework": "{{constructor.constructor('window.__pwned=29')()}} #{7*7} <%= 7*7 %>",
}

IN_FILES = [text for text in HOSTILE.values() if "\0" not in text]
"""What a file holds: with a null byte it would not be shown."""

LONG = "<b>" + "A" * 60_000 + "</b>"
NAMES = (
    "a'b.md",
    "back`tick ${window.__pwned=31}.md",
    "sp ace/&amp;lt;.md",
    "per%3Cscript%3Ecent.md",
    "#hash;&x=1.md",
    "umlaut-ä-😀.md",
)
"""Names that the engine lets an agent write."""

FOREIGN = (
    "<img src=x onerror=window.__pwned=30>.md",
    'q" onmouseover="window.__pwned=32.md',
    "new\nline\u202egpj.md",
    "javascript:window.__pwned=33",
)
"""Names that the engine refuses; a history that came from elsewhere can hold them."""


def seen(text):
    """How the page shows a text: what cannot be seen is marked, and runs of spaces count as one."""

    def mark(found):
        code = ord(found[0])
        return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"U+{code:04X}"

    hidden = (
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    )
    return " ".join(re.sub(hidden, mark, text).split())


def beginning(text):
    """What the row of a list shows of a text: it is cut after some words, and the engine may show a sign in its own way."""
    if text == seen(text):
        return "".join(text.split())[:16]
    return re.findall("[A-Za-z]{3,}", text)[-1]


@pytest.fixture(scope="module")
def hostile(environ, tmp_path_factory):
    """A workspace full of it, and where each text stands: {seq: text}."""
    root = tmp_path_factory.mktemp("hostile") / "<b>it's"
    title = '</title><img src=x onerror="window.__pwned=40">'
    with Workspace.create(root, title=title, settings=settings_of(environ)) as ws:
        for text in HOSTILE.values():
            ws.say(text)
        drafts = []
        for number, text in enumerate(HOSTILE.values()):
            run, actor = f"r-{text[:60]}", f"agent:{text[:60]}"
            who = {"actor": actor, "run": run}
            drafts += [
                Draft(data=RunStarted(task=ws.body(text), agent=text, model=text), **who),
                Draft(data=AgentThoughtProcess(body=ws.body(text), model=text), **who),
                Draft(
                    data=ToolCallExecuted(
                        call_id=f"c-{number}", tool=text, arguments={text: text, "__proto__": {"pwned": text}, "__html": text},
                        status="FAILED", output=Body(text), command=text, noted=text
                    ),
                    **who,
                ),
                Draft(data=AgentMessageSent(body=ws.body(text), final=True, model=text), **who),
                Draft(data=RunEnded(status="FAILED", reason=text, summary=text), **who),
            ]  # fmt: skip
        ws.record(*drafts)
        messages = dict(_own(ws))
        ws.say(LONG)
        for kind in ("constraint", "knowledge", "decision"):
            for text in list(HOSTILE.values())[::3]:
                ws.remember(kind, f"{kind} {text}")
        for name in NAMES:
            ws.tools.write_file(name, "\n".join([name, *IN_FILES]) + "\n")
        written = [event for event in ws.events() if event.type == "ToolCallExecuted"][-1].data.changes[0]
        ws.record(
            *(
                Draft(
                    data=ToolCallExecuted(
                        call_id=f"f-{name[:3]}",
                        tool="write_file",
                        status="SUCCEEDED",
                        changes=(FileChange(path=name, after=written.after, size_bytes=written.size_bytes),),
                    ),
                    actor="agent:main",
                )
                for name in FOREIGN
            )
        )
    return root, messages


def _own(ws):
    """The events that carry one of the texts, with the text."""
    for event in ws.events():
        text = getattr(getattr(event.data, "body", None), "text", None) or getattr(event.data, "tool", None)
        if text in HOSTILE.values():
            yield event.seq, text


@pytest.fixture
def looking(watch, environ, hostile):
    return watch(address(environ, hostile[0]))


def unsafe(page):
    """Elements and attributes in the document that only a text that was taken for markup can have brought."""
    return page.evaluate(
        """() => [...document.querySelectorAll('*')].filter(one =>
            ['SCRIPT', 'STYLE', 'BASE', 'IFRAME', 'OBJECT', 'EMBED', 'MATH', 'FOREIGNOBJECT', 'MGLYPH'].includes(one.tagName.toUpperCase())
              && !(one.tagName === 'SCRIPT' && one.getAttribute('src') === 'app.js')
            || [...one.attributes].some(attribute => attribute.name.startsWith('on') || attribute.name === 'srcdoc'
              || /^\\s*(javascript|data|vbscript):/i.test(attribute.value) && ['href', 'src', 'action'].includes(attribute.name))
        ).map(one => one.outerHTML.slice(0, 200))"""
    )


def test_there_are_forty_kinds_of_hostile_texts():
    assert len(set(HOSTILE.values())) >= 40


def test_a_timeline_of_hostile_texts_is_text(looking, hostile):
    messages = hostile[1]
    page = looking.page
    page.wait_for_selector("[data-seq]")
    rows = {}
    while not page.locator(".the-end").count():
        rows |= page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('[data-seq]')].map(row => [row.dataset.seq, row.textContent]))"
        )
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(60)
    rows |= page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-seq]')].map(row => [row.dataset.seq, row.textContent]))"
    )
    missing = [
        seq for seq, text in messages.items() if beginning(text) not in "".join(rows[str(seq)].split())
    ]
    assert missing == []
    assert unsafe(page) == []
    assert (
        page.evaluate(
            "[...document.querySelectorAll('.text')].some(one => /[\\u0000-\\u0008\\u202e\\u2066]/.test(one.textContent))"
        )
        is False
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_an_event_with_a_hostile_text_is_text(shared, hostile, name):
    text = HOSTILE[name]
    seqs = [seq for seq, found in hostile[1].items() if found == text]
    assert len(seqs) >= 4
    for seq in (seqs[0], seqs[2]):
        shared.go(f"event/{seq}", f"Event {seq:,}")
        assert seen(text) in shared.text()
        assert unsafe(shared.page) == []


@pytest.fixture(scope="module")
def shared(browser, environ, hostile):
    """One page for many texts; whatever any of them did shows in the end."""
    from tests.agentx.inspector.browser.conftest import WIDE, Watched

    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    looking = Watched(context, address(environ, hostile[0]))
    yield looking
    looking.check()
    context.close()


def test_context_search_and_files_with_hostile_texts_are_text(looking, hostile):
    page = looking.page
    for view in ("context", "context?tier=3", "context?at=30", "context?at=20&with=200"):
        looking.go(view, "Context")
        for summary in page.locator("summary").all()[:10]:
            summary.click()
        assert unsafe(page) == []
    looking.go("context?tier=3", "Context")
    page.get_by_role("button", name="The text itself").click()
    for name in ("handler", "end of select"):
        assert seen(HOSTILE[name]) in looking.text()
    for words in (
        "script window __pwned",
        HOSTILE["handler"],
        HOSTILE["override of direction"],
        "${window.__pwned}",
    ):
        looking.go(f"search?q={quote(words)}", "Search")
        assert unsafe(page) == []
        assert page.locator(".hit, .empty").count() > 0
    looking.go("files", "Files")
    shown = looking.text()
    for name in NAMES:
        assert seen(name) in shown
    for name in NAMES:
        looking.go("files", "Files")
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_selector(".code")
        content = looking.text()
        assert seen(name) in content
        assert all(seen(text) in content for text in IN_FILES)
        assert unsafe(page) == []
    for name in FOREIGN:
        looking.go(f"timeline?path={quote(name)}", "Timeline")
        page.locator("[data-seq]").first.click()
        page.wait_for_selector(".file-head")
        assert seen(name) in looking.text()
        assert unsafe(page) == []


def test_memory_candidates_and_runs_with_hostile_texts_are_text(looking, hostile):
    page = looking.page
    for view, title in (
        ("memory", "Memory"),
        ("candidates", "Candidates"),
        ("problems", "Problems"),
        ("flows", "Flows"),
    ):
        looking.go(view, title)
        assert unsafe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    looking.go("memory?kind=decision", "Memory")
    shown = looking.text()
    for text in list(HOSTILE.values())[:9:3]:
        assert seen(f"decision {text}")[:200] in shown
    for number in range(3):
        looking.go("memory?kind=decision", "Memory")
        page.locator(".memory-main").nth(number).click()
        page.wait_for_selector(".evidence")
        assert unsafe(page) == []
    looking.go("runs", "Runs")
    assert unsafe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for number in range(0, min(30, page.locator(".run-task").count()), 7):
        looking.go("runs", "Runs")
        page.locator(".run-task").nth(number).click()
        page.wait_for_selector(".run-steps")
        assert unsafe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_line_without_an_end_and_a_hostile_address_do_no_harm(looking, hostile):
    page = looking.page
    looking.go("timeline?q=AAAAAAAAAA", "Timeline")
    page.locator("[data-seq]").first.click()
    page.wait_for_selector(".text-block")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for path in (
        "<img src=x onerror=window.__pwned=50>/x", "event/<script>window.__pwned=51</script>", "event/-1", "event/1e9",
        "file/%00", "file/../../etc/passwd", "context?at=__proto__", "timeline?type=__proto__&actor=constructor&q=%E0%A4%A",
        "constructor", "__proto__/__proto__", "toString", "memory?kind=__proto__&status=x&offset=-5", "memory/<b>", "runs/__proto__",
        "pipelines/../x", "pipelines?by=constructor",
    ):  # fmt: skip
        page.evaluate("path => { location.hash = path }", f"#/{looking.w}/{path}")
        page.wait_for_function("() => !document.querySelector('#main .skeleton')")
        assert unsafe(page) == []
    looking.faults = [one for one in looking.faults if not re.search(r"status of (400|404)", one)]
