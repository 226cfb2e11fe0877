"""Looking at a workspace in a browser: each view, live, by the keyboard alone, for everybody."""

import subprocess
import sys
from functools import cache

import pytest

from agentx import Workspace
from tests.agentx.inspector.browser.conftest import NARROW, WIDE, address, runtime, settings_of

pytestmark = pytest.mark.timeout(300)

SAY = """
import sys
from agentx import Workspace
with Workspace.open(sys.argv[1]) as ws:
    for text in sys.argv[2:]:
        ws.say(text)
"""

VIEWS = {
    "timeline": "Timeline",
    "event/526": "Event 526",
    "event/4": "Event 4",
    "context": "Context",
    "context?at=300": "Context",
    "context?at=100&with=300": "Context",
    "search?q=fable": "Search",
    "files": "Files",
    "file/index.md": "index.md",
}


@pytest.fixture(scope="module")
def url(environ, story):
    return address(environ, story)


@cache
def axe():
    from axe_playwright_python.sync_playwright import Axe

    return Axe()


def violations(page, *, colours_alone=False):
    """What axe finds wrong with the page as it is, in a line each."""
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    only = (
        {"type": "rule", "values": ["color-contrast"]} if colours_alone else {"type": "tag", "values": tags}
    )
    rules = {"runOnly": only, "resultTypes": ["violations"]}
    found = axe().run(page, options=rules).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for one in found
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_is_there_and_nothing_hinders_anybody_from_using_it(watch, url, size):
    looking = watch(url, size)
    for path, title in VIEWS.items():
        looking.go(path, title)
        assert looking.page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
        for scheme in ("light", "dark"):
            looking.page.emulate_media(color_scheme=scheme)
            assert violations(looking.page, colours_alone=scheme == "dark") == [], (path, scheme)
    looking.page.keyboard.press("?")
    assert violations(looking.page) == []


def test_a_view_that_loads_slowly_does_not_take_the_place_of_the_one_that_was_opened_after_it(watch, url):
    looking = watch(url)
    held = []
    looking.page.route("**/views/search.js", lambda route: held.append(route))  # noqa: PLW0108 - it needs a function
    with looking.page.expect_request("**/views/search.js"):
        looking.page.evaluate("path => { location.hash = path }", f"#/{looking.w}/search")
    looking.go("event/4", "Event 4")
    with looking.page.expect_response("**/views/search.js"):
        held[0].continue_()
    looking.settle()
    assert looking.page.inner_text("#main h1").startswith("Event 4")


def test_a_click_leads_from_the_timeline_to_an_event_its_cause_its_file_and_back(watch, url):
    looking = watch(url)
    page = looking.page
    looking.settle()
    page.get_by_role("combobox", name="What").select_option("ToolCallExecuted")
    page.get_by_text("Create index.md").first.click()
    page.wait_for_selector(".diff")
    assert "+# Fables" in page.inner_text(".diff")
    page.get_by_role("link", name="index.md").first.click()
    page.wait_for_selector(".code")
    assert "# Fables" in looking.text()
    page.go_back()
    page.get_by_role("region", name="What led to it").get_by_role("link").first.click()
    page.wait_for_function("() => !document.querySelector('h1').textContent.includes('Tool call executed')")
    looking.settle()
    page.go_back()
    page.wait_for_selector(".diff")
    page.go_back()
    page.wait_for_selector("[data-seq]")
    assert page.get_by_role("combobox", name="What").input_value() == "ToolCallExecuted"
    assert {row.inner_text() for row in page.locator(".timeline-row .type").all()} == {"Tool call executed"}
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Words").fill("Lisbon")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('[data-seq]').length < 20")
    looking.settle()
    assert "lives in Lisbon" in looking.text()


def test_a_filter_is_shown_as_set_before_the_counts_are_known(watch, url):
    looking = watch(url)
    page = looking.page
    looking.settle()
    page.get_by_role("combobox", name="What").select_option("ToolCallExecuted")
    page.get_by_text("Create index.md").first.click()
    page.wait_for_selector(".diff")
    page.route("**/overview*", lambda route: None)  # it never comes
    page.go_back()
    page.wait_for_selector("[data-seq]")
    assert page.get_by_role("combobox", name="What").input_value() == "ToolCallExecuted"


def test_what_another_process_records_appears_at_once(watch, url, environ, story):
    looking = watch(url)
    looking.page.wait_for_selector(".stream-state.good")
    subprocess.run(
        [sys.executable, "-c", SAY, str(story), "Set the title in blue.", "And the cover in green."],
        env=environ,
        check=True,
    )
    row = looking.page.locator(".fresh", has_text="user said: And the cover in green.")
    row.wait_for()
    assert looking.page.locator(".fresh", has_text="user said: Set the title in blue.").count() == 1
    seqs = looking.page.evaluate("[...document.querySelectorAll('[data-seq]')].map(row => +row.dataset.seq)")
    assert seqs == sorted(set(seqs), reverse=True)
    assert seqs[0] - seqs[-1] == len(seqs) - 1


def test_the_document_stays_small_however_far_back_one_goes(watch, url):
    looking = watch(url)
    page = looking.page
    page.wait_for_selector("[data-seq]")
    count = "document.querySelectorAll('[data-seq]').length"
    while not page.locator(".the-end").count():
        assert page.evaluate(count) <= 400
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(50)
    assert page.locator("[data-seq='1']").count() == 1
    assert page.evaluate(count) == 400
    assert page.evaluate("document.querySelectorAll('*').length") < 6_000
    while page.get_by_role("button", name="Newer events").count():
        page.get_by_role("button", name="Newer events").click()
        looking.settle()
        assert page.evaluate(count) <= 400


def test_the_keyboard_alone_leads_from_the_timeline_to_an_event_and_its_context(watch, url):
    looking = watch(url)
    page = looking.page
    looking.settle()
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    press("j")
    press("j")
    press("j")
    press("k")
    rows = page.evaluate("[...document.querySelectorAll('#main [data-row]')].indexOf(document.activeElement)")
    assert rows == 1
    press("j")
    seq = page.evaluate("document.activeElement.dataset.seq")
    press("Enter")
    page.wait_for_function(
        "() => document.activeElement.tagName === 'H1' && document.activeElement.textContent.startsWith('Event')"
    )
    looking.settle()
    press("j")
    assert page.evaluate("document.activeElement.textContent") == "What an agent saw then"
    press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'Context'")
    looking.settle()
    slider = page.get_by_role("slider", name="Moment")
    assert slider.input_value() == seq
    while page.evaluate("document.activeElement.type") != "range":
        press("Tab")
    press("ArrowLeft")
    page.wait_for_function(f"() => location.hash.includes('at={int(seq) - 1}')")
    looking.settle()
    press("g")
    press("t")
    page.wait_for_function(f"() => document.activeElement.dataset.seq === '{seq}'")  # where one left it
    press("/")
    page.keyboard.type("jj?")
    assert page.get_by_label("Words").input_value() == "jj?"
    press("Escape")
    press("?")
    page.get_by_role("dialog").wait_for()
    press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")


def test_a_page_without_its_key_or_its_server_says_how_to_open_it_again(watch, url, environ):
    looking = watch(url)
    page = looking.page
    assert url.partition("#")[2] not in page.url
    page.reload()
    page.wait_for_selector("[data-seq]")
    page.evaluate("sessionStorage.clear(); localStorage.clear()")
    page.reload()
    page.get_by_text("agentx inspect").first.wait_for()
    page.evaluate("localStorage.setItem('agentx.inspector.token', 'a'.repeat(43))")
    page.reload()
    page.get_by_role("alert").wait_for()
    assert "agentx inspect" in page.inner_text("[role=alert]")
    looking.faults = [one for one in looking.faults if "401" not in one]


def test_a_page_whose_server_has_gone_says_so_and_keeps_what_it_shows(watch, tmp_path):
    with runtime() as environ:
        with Workspace.create(tmp_path / "task", settings=settings_of(environ)) as ws:
            ws.say("Draft the outlook.")
        looking = watch(address(environ, tmp_path / "task"))
        looking.page.wait_for_selector(".stream-state.good")
    alert = looking.page.get_by_role("alert")
    alert.wait_for()
    assert "agentx inspect" in alert.inner_text()
    assert "Draft the outlook." in looking.text()
    looking.go("event/2")
    assert "agentx inspect" in alert.inner_text()
    looking.faults = [one for one in looking.faults if "net::ERR_" not in one]
