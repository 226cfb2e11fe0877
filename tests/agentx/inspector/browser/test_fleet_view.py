"""A fleet in a browser: live, by the keyboard, for everybody, and inert whatever its rows say."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.agentx.inspector.browser.conftest import NARROW, WIDE, settings_of
from tests.agentx.inspector.browser.fleet_story import build, database
from tests.agentx.inspector.browser.test_looking import violations

pytestmark = pytest.mark.timeout(300)

HOSTILE = (
    '<img src=x onerror="window.__pwned=1">\u202e${7*7}</script><script>window.__pwned=2</script>__proto__'
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A fleet with hostile rows; its place, and the address of the page that the command serves."""
    root = tmp_path_factory.mktemp("fleet")
    environ = {
        **os.environ,
        "AGENTX_RUNTIME_DIR": f"{root}/rt",
        "AGENTX_CACHE_DIR": f"{root}/no-models",
        "AGENTX_STATE_DIR": f"{root}/state",
    }
    with ThreadPoolExecutor(1) as apart:  # from the loop of Playwright, in which DBOS registers no queue
        place = apart.submit(build, settings_of(environ), root, hostile=HOSTILE).result()
    words = [sys.executable, "-P", "-m", "agentx", "inspect", "--fleet", "--no-open", "--json"]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as process:
        said = ""
        while "}" not in said:
            said += process.stdout.readline()
        yield place, json.loads(said)["url"]
        process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_fleet_is_shown_to_everybody_and_what_its_rows_say_is_text(watch, shown, size):
    looking = watch(shown[1], size)
    looking.page.wait_for_selector(".tiles")
    looking.page.locator(".fleet-run summary").nth(2).click()
    assert looking.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    for scheme in ("light", "dark"):
        looking.page.emulate_media(color_scheme=scheme)
        assert violations(looking.page, colours_alone=scheme == "dark") == [], scheme
    text = looking.text()
    assert "<img src=x onerror=" in text
    assert "\u202e" not in text
    for words in ("worker-3 draining", "LOST", "it took 40 steps", "tools.isolation", "cannot be read", "claude-sonnet-4-5", "refs/agentx/stranded/"):  # fmt: skip
        assert words.lower() in text.lower(), words


def test_what_changes_in_the_queue_appears_by_itself_and_what_was_opened_stays_open(watch, shown):
    looking = watch(shown[1])
    page = looking.page
    page.wait_for_selector(".tiles")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    opened = page.locator("details[open] code").first.inner_text()
    before = page.locator(".tile strong").first.inner_text()
    with sqlite3.connect(database(shown[0])) as connection:
        now = int(time.time() * 1000)
        connection.execute(
            "UPDATE workflow_status SET status = 'PENDING', executor_id = 'worker-1', started_at_epoch_ms = ? "
            "WHERE workflow_uuid = (SELECT workflow_uuid FROM workflow_status WHERE status = 'ENQUEUED' LIMIT 1)",
            (now,),
        )
    page.wait_for_function(
        "before => +document.querySelector('.tile strong').textContent === before - 1", arg=int(before)
    )
    assert page.locator("details[open] code").first.inner_text() == opened
    page.get_by_label("Shown").select_option("15")
    page.wait_for_function("() => location.hash.includes('minutes=15')")


def test_the_page_of_a_fleet_opens_no_workspace_and_takes_no_nonsense(shown):
    from tests.agentx.inspector.conftest import Page

    page = Page(shown[1])
    status, _, body = page.send("GET", "/inspect/api/fleet?minutes=5")
    assert status == 200
    found = json.loads(body)
    assert found["counts"]["running"] >= 4
    assert len(found["depth"]["x"]) == len(found["depth"]["queued"]) <= 122
    assert page.send("GET", "/inspect/api/fleet?minutes=0")[0] == 400
    assert page.send("GET", "/inspect/api/fleet", authorization="")[0] == 401
    assert page.send("GET", "/inspect/api/fleet", origin="http://elsewhere.example")[0] == 403
    assert page.send("POST", "/inspect/api/fleet", {})[0] == 405
    assert page.send("GET", "/inspect/api/fleet/overview")[0] == 404
