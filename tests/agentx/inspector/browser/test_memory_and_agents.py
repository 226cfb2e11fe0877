"""Memory, candidates, problems, flows, runs, pipelines and cognition in a browser: what they show, and what a person does there."""

import json

import pytest

from agentx import Workspace
from agentx.settings import Settings
from tests.agentx.inspector.browser.conftest import NARROW, WIDE, address, settings_of
from tests.agentx.inspector.browser.test_looking import violations

pytestmark = pytest.mark.timeout(300)

VIEWS = {
    "memory": "Memory",
    "memory/r-15": "Run the tests",
    "memory/c-4": "Never create",
    "memory/{anna}": "Anna",
    "candidates": "Candidates",
    "problems": "Problems",
    "flows": "Flows",
    "runs": "Runs",
    "runs/r-26": "Try again",
    "pipelines": "Fables",
    "pipelines/fables?by=step": "Fables",
    "cognition": "Cognition",
}


@pytest.fixture(scope="module")
def url(environ, story):
    return address(environ, story)


@pytest.fixture
def opened(environ, story):
    """The workspace, open in this process beside the server's."""
    with Workspace.open(story, settings=settings_of(environ)) as ws:
        yield ws


@pytest.fixture
def rule(opened):
    """A rule of the test's own."""
    return opened.remember("rule", "Ask Clara before a date is printed.", score=6)


def since(ws, seq):
    """The events after one, as another process recorded them."""
    ws.engine.write_path.refresh()
    return [event for event in ws.events(seq) if event.seq > seq]


def get(page, path):
    """The answer of the API to the page itself."""
    return page.evaluate(
        """async (path) => (await fetch(new URL("api/" + path, document.baseURI),
        {headers: {Authorization: `Bearer ${sessionStorage.getItem("agentx.inspector.token")}`}})).json()""",
        path,
    )


def recorded(ws, before, one, what):
    """The event that an act left: exactly one, by the user, and shown on the page with its number."""
    one.page.wait_for_selector("[data-recorded]")
    events = [event for event in since(ws, before) if not event.actor.startswith("engine:")]
    assert [(event.actor, event.type) for event in events] == [("user", what)]
    shown = one.page.locator("[data-recorded]").last
    assert shown.get_attribute("data-recorded") == str(events[0].seq)
    assert "user" in shown.inner_text()
    return events[0]


# --- what is shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_shows_its_data_and_hinders_nobody(watch, url, size, opened):
    anna = next(
        item.id for item in opened.memory("knowledge", status=None) if item.text.startswith("Anna is the")
    )
    looking = watch(url, size)
    for path, title in VIEWS.items():
        looking.go(path.format(anna=anna), title)
        assert looking.page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
        assert not looking.page.query_selector("#main .error, #main > .empty"), path
        for scheme in ("light", "dark"):
            looking.page.emulate_media(color_scheme=scheme)
            assert violations(looking.page) == [], (path, scheme)


def test_the_list_of_memory_is_filtered_by_kind_status_and_words(watch, url):
    looking = watch(url)
    looking.go("memory?kind=rule&status=active", "Memory")
    rows = looking.page.locator(".memory-row")
    assert {row.split("\n")[1].split()[0].split("-")[0] for row in rows.all_inner_texts()} == {"r"}
    looking.page.keyboard.press("/")
    looking.page.keyboard.type("verify the file")
    looking.page.wait_for_function("() => document.querySelectorAll('.memory-row').length === 1")
    assert "Verify the file, not the report." in rows.inner_text()
    assert "shown only" in rows.inner_text()
    looking.go("memory?q=nothing+of+the+sort", "Memory")
    assert "Nothing in memory fits these filters." in looking.text()


def test_an_item_quotes_the_users_sentence_and_says_that_its_check_is_enforced(watch, url):
    looking = watch(url)
    looking.go("memory/c-4", "Never create")
    quote = looking.page.locator(".evidence q")
    assert quote.inner_text().strip("“”").startswith("We start on the book. Never create")
    assert (
        quote.locator("mark").inner_text()
        == "Never create a requirements.txt file; use pyproject.toml instead."
    )
    assert "enforced" in looking.page.locator(".check-row").inner_text()
    looking.go("memory/r-15", "Run the tests")
    assert "shown only" in looking.page.locator(".badges").first.inner_text()
    assert (
        looking.page.locator(".life li").count()
        == len(get(looking.page, f"{looking.w}/memory/r-15")["life"])
        > 5
    )


def test_the_text_form_of_the_curves_is_the_data(watch, url):
    looking = watch(url)
    looking.go("memory/r-15", "Run the tests")
    curve = get(looking.page, f"{looking.w}/memory/r-15")["curve"]
    table = looking.page.locator(".chart").first.locator(".table-wrap tbody tr")
    found = [row.locator("td.num").all_text_contents() for row in table.all()]
    expected = [[f"{one['score']:.2f}", f"{one['strength']:.2f}"] for one in curve]
    assert found == [*expected, expected[-1]]  # the last point is now
    assert len({score for score, _ in found}) > 3

    looking.go("cognition", "Cognition")
    (agent,) = get(looking.page, f"{looking.w}/cognition")["agents"]
    curves = [(item["text"], {at: value for at, value, _ in item["curve"]}) for item in agent["items"]]
    chart = looking.page.locator(".chart .table-wrap")
    heads = chart.locator("th.num").all_text_contents()
    rows = [row.locator("td").all_text_contents() for row in chart.locator("tbody tr").all()]
    assert len(rows) == agent["interactions"]
    assert heads.pop() == "Threshold"
    for column, head in enumerate(heads, start=1):
        found = {int(row[0]): float(row[column]) for row in rows if row[column] != "–"}
        rounded = [
            {at: round(value, 2) for at, value in values.items()}
            for text, values in curves
            if text.startswith(head.rstrip("…"))
        ]
        assert found in rounded, head


def test_a_closed_problem_says_what_closed_it_and_an_open_one_its_failure(watch, url):
    looking = watch(url)
    looking.go("problems", "Problems")
    shown = looking.page.locator(".problem").all_inner_texts()
    assert len(shown) == 2
    assert "AssertionError: assert 'Fuchs fur alle' == 'Fuchs für alle'" in shown[0]
    closed = looking.page.locator(".closed-problems tbody").inner_text()
    assert "passed" in closed
    assert "Maintain memory" not in closed  # that only archived it


def test_a_flow_shows_each_measured_run_and_how_sure_its_record_is(watch, url):
    looking = watch(url)
    looking.go("flows", "Flows")
    flow = looking.page.locator(".flow", has_text="publish the book")
    assert "86%" in flow.inner_text()
    assert [dot.get_attribute("class").split()[-1] for dot in flow.locator(".run-dot").all()] == [
        "good" if number != 2 else "bad" for number in range(7)
    ]
    assert "between 49% and 97%" in flow.locator(".interval").get_attribute("aria-label")


def test_a_directed_run_shows_the_directors_reasons_and_its_steps(watch, url):
    looking = watch(url)
    looking.go("runs", "Runs")
    looking.page.locator(".run-row", has_text="r-26").locator("a").click()
    looking.page.wait_for_selector(".run-steps")
    text = looking.text()
    run = get(looking.page, f"{looking.w}/runs/r-26")
    for reason in (
        run["directed"]["reason"],
        "Two mails went out",
        "Try again once",
        "The refusal named the address",
    ):
        assert reason in text
    assert looking.page.locator(".run-steps li").count() == len(run["steps"])
    assert (
        looking.page.locator(".run-steps .duration").count()
        == sum(bool(step["tool"]) for step in run["steps"])
        == 1
    )


# --- what a person does -------------------------------------------------------------------------------------


def test_an_item_is_pinned_unpinned_edited_and_retired_each_as_one_event_of_the_user(
    watch, url, opened, rule
):
    looking = watch(url)
    looking.go(f"memory/{rule.id}", "Ask Clara")
    for act in ("pin", "unpin"):
        before = opened.state.seq
        looking.page.click(f"[data-act={act}]")
        looking.page.wait_for_selector(f"[data-act={'unpin' if act == 'pin' else 'pin'}]")
        recorded(opened, before, looking, "Concluded")
    assert not opened.state.items[rule.id].pinned

    before = opened.state.seq
    looking.page.click("[data-act=edit]")
    looking.page.fill("dialog textarea", "Ask Clara and Ben before a date is printed.")
    looking.page.click("dialog button[type=submit]")
    looking.page.wait_for_function("() => document.querySelector('#main h1').textContent.includes('and Ben')")
    recorded(opened, before, looking, "Concluded")

    before = opened.state.seq
    looking.page.click("[data-act=retire]")
    looking.page.fill("dialog textarea", "The dates are fixed now.")
    looking.page.keyboard.press("Tab")  # Cancel
    looking.page.keyboard.press("Tab")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector(".badges >> text=retired")
    recorded(opened, before, looking, "Concluded")
    item = opened.state.items[rule.id]
    assert (item.status, item.reason, item.text) == (
        "retired",
        "The dates are fixed now.",
        "Ask Clara and Ben before a date is printed.",
    )
    looking.page.wait_for_function("() => !document.querySelector('[data-act=retire]')")


def test_what_changed_meanwhile_is_not_overwritten(watch, url, opened, rule):
    looking = watch(url)
    looking.go(f"memory/{rule.id}", "Ask Clara")
    looking.page.click("[data-act=edit]")
    looking.page.fill("dialog textarea", "Ask nobody.")
    opened.edit_memory(rule.id, "Ask the museum before a date is printed.")
    before = opened.state.seq
    looking.page.click("dialog button[type=submit]")
    looking.page.wait_for_selector("[data-conflict]")
    assert "Changed meanwhile." in looking.page.inner_text("[data-conflict]")
    assert since(opened, before) == []
    looking.page.click("[data-conflict] button")
    looking.page.wait_for_function(
        "() => document.querySelector('#main h1').textContent.includes('the museum')"
    )
    looking.faults.clear()  # Chromium reports each answer of 409 in its console


def test_the_keyboard_alone_settles_three_candidates(watch, url, opened):
    looking = watch(url)
    looking.go("candidates", "Candidates")
    waiting = [one["id"] for one in get(looking.page, f"{looking.w}/candidates")["candidates"]]
    before = opened.state.seq
    for number, key in enumerate("ara", start=1):
        looking.page.keyboard.press(key)
        looking.page.wait_for_function(
            f"() => document.querySelectorAll('.candidate-done').length === {number}"
        )
    events = since(opened, before)
    assert [(event.actor, event.type) for event in events] == [("user", "Concluded")] * 3
    assert [opened.state.items[name].status for name in waiting[:3]] == ["active", "retired", "active"]
    shown = [one.get_attribute("data-recorded") for one in looking.page.locator("[data-recorded]").all()]
    assert shown == [str(event.seq) for event in events]
    looking.page.keyboard.press("j")
    assert (
        looking.page.evaluate("document.activeElement.closest('[data-candidate]').dataset.candidate")
        != waiting[0]
    )


def test_a_call_that_waits_is_shown_on_every_page_and_denied_with_a_reason(watch, url, opened):
    looking = watch(url)
    (call,) = [one for one in opened.state.pending.values() if one.awaits_approval]
    for path, title in (("timeline", "Timeline"), ("flows", "Flows"), ("runs", "Runs")):
        looking.go(path, title)
        looking.page.wait_for_selector(f"[data-waiting='{call.call_id}']")
        assert "sh tools/publish.sh" in looking.page.inner_text(".waiting")
    before = opened.state.seq
    looking.page.click(".waiting-call button")
    looking.page.wait_for_selector("dialog [data-asked]")
    assert looking.page.inner_text("dialog [data-asked]") == "sh tools/publish.sh"
    assert violations(looking.page) == []
    looking.page.fill("dialog textarea", "Not without a backup.")
    looking.page.click("dialog [data-act=deny]")
    event = recorded(opened, before, looking, "ApprovalDecided")
    assert (event.data.approved, event.data.reason) == (False, "Not without a backup.")
    looking.page.wait_for_function("() => !document.querySelector('[data-waiting]')")


def test_the_graph_marks_a_step_stale_after_another_process_changed_its_input(watch, url, opened, tmp_path):
    looking = watch(url)
    looking.go("pipelines/fables?by=step", "Fables")
    node = looking.page.locator("[data-node='translate[fox-and-grapes,de]']")
    assert node.get_attribute("data-stale") == "after"
    changed = tmp_path / "fox-and-grapes.md"
    changed.write_text(
        (opened.root / "artifacts" / "inbox" / "fox-and-grapes.md").read_text().replace("ripe", "sweet")
    )
    opened.add([changed], to="inbox")
    looking.page.wait_for_selector("[data-node='translate[fox-and-grapes,de]'][data-stale=stale]")
    node.focus()
    looking.page.keyboard.press("Enter")
    detail = looking.page.locator("[data-step='translate[fox-and-grapes,de]']")
    assert "inbox/fox-and-grapes.md changed" in detail.inner_text()
    rows = [
        row.locator("td").all_text_contents() for row in looking.page.locator(".graph-text tbody tr").all()
    ]
    (stale,) = [row[2] for row in rows if row[0] == "translate[fox-and-grapes,de]"]
    assert stale.startswith("out of date: inbox/fox-and-grapes.md changed")
    assert json.loads(node.get_attribute("aria-pressed"))


def test_a_new_workspace_says_what_would_fill_each_view(watch, environ, tmp_path_factory):
    root = tmp_path_factory.mktemp("new") / "empty"  # it outlives the test: the server keeps it open
    Workspace.create(root, title="New", settings=settings_of(environ)).close()
    looking = watch(address(environ, root))
    for path, title in VIEWS.items():
        if "/" in path:
            continue
        looking.go(path, title if path != "pipelines" else "Pipelines")
        assert looking.page.locator("#main .empty").count() == 1, path
        assert violations(looking.page) == [], path
    looking.go("memory/c-1", "c-1")
    assert "There is no such memory item." in looking.text()
    looking.faults.clear()  # Chromium reports each answer of 404 in its console


def test_a_workspace_that_is_not_trusted_is_shown_and_offers_no_act(watch, environ, tmp_path_factory):
    place = tmp_path_factory.mktemp("strange")
    stranger = Settings(environ=environ, cache_dir=place / "no-models", state_dir=place / "state")
    with Workspace.create(place / "task", title="Not mine", settings=stranger) as ws:
        rule = ws.remember("rule", "Print the dates in red.", score=6)
        ws.say("don't use emojis")
        (place / "task" / "agentx.toml").write_text('[checks.tests]\ncommand = "true"\n')
    looking = watch(address(environ, place / "task"))
    for path, title in ((f"memory/{rule.id}", "Print"), ("candidates", "Candidates")):
        looking.go(path, title)
        looking.page.wait_for_selector(".read-only")
        looking.page.wait_for_function("() => !document.querySelector('[data-act]')")
    before = looking.page.locator(".candidate").count()
    looking.page.keyboard.press("a")
    assert (before, looking.page.locator(".candidate-done").count()) == (1, 0)


ARRANGE = """async (size) => {
  const { arrange } = await import(new URL("layout.js", document.baseURI));
  let seed = 7;
  const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const nodes = Array.from({ length: size }, (_, id) => ({ id: `n${id}`, width: 60 + 90 * chance(), height: 30 + 40 * chance() }));
  const edges = [];
  for (let to = 1; to < size; to += 1) for (let from = 0; from < to; from += 1) if (chance() < 2 / to) edges.push([`n${from}`, `n${to}`]);
  edges.push([`n${size - 1}`, "n0"]);
  return arrange(nodes, edges);
}"""


def test_the_layout_of_a_graph_lets_no_boxes_overlap_and_lines_run_downwards_but_in_a_circle(watch, url):
    found = watch(url).page.evaluate(ARRANGE, 60)
    boxes = found["nodes"]
    assert len(boxes) == 60
    for name, one in boxes.items():
        assert one["x"] >= 0
        assert one["x"] + one["width"] <= found["width"] + 0.01
        for other, box in boxes.items():
            if name < other and one["layer"] == box["layer"]:
                left, right = sorted((one, box), key=lambda box: box["x"])
                assert left["x"] + left["width"] < right["x"], (name, other)
    down = [line for line in found["lines"] if not line["back"]]
    assert all(boxes[line["from"]]["layer"] < boxes[line["to"]]["layer"] for line in down)
    assert [(line["from"], line["to"]) for line in found["lines"] if line["back"]] == [("n59", "n0")]
