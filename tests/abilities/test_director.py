"""A director that remembers everything and an executor that remembers nothing: directives, fields, acts."""

import json

import pytest

from agentx import Workspace, act
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Function, Outcome
from agentx.synthesis.model.open import open_model

NEWS = "Mail me the AI news once a day."


def directive(prompt="Search for AI posts.", valid_for_runs=1, invalidate_on=(), fields=None, **parts):
    """What a model that directs says, in the form of the document."""
    said = {
        "analysis_summary": "Stable monitoring.",
        "strategy": "Go on as before.",
        "reflection": "No concerns.",
        "executor_system_prompt": prompt,
        "reuse_policy": {
            "valid_for_runs": valid_for_runs,
            "invalidate_on": list(invalidate_on),
            "dynamic_fields": fields or {},
        },
        "checkpoints_to_create": [],
        "knowledge_to_create": [],
        **parts,
    }
    return {"answer": json.dumps(said)}


class Monitor:
    """A workspace whose runs a scripted model directs; keeps the prompts that its executor was given."""

    def __init__(self, ws, script):
        self.ws, self.script = ws, script
        self.prompts = []
        self.model = None

    def directed_by(self, *turns):
        self.model = open_model(self.script(*turns))
        return self

    def run(self, work=lambda _assignment: "Sent 2 titles.", **functions):
        def executor(assignment):
            self.prompts.append(assignment.prompt)
            return work(assignment)

        return run_directed(self.ws.engine, Function("reader", executor), functions, model=self.model)

    def fail(self, reason="the feed is down"):
        return self.run(lambda _: Outcome(status="FAILED", reason=reason))

    def events(self, name):
        """The fields of the events of a type, oldest first, as JSON has them."""
        root = self.ws.root
        files = [*sorted(root.glob("history/*/*.jsonl")), root / "history.jsonl"]
        lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
        return [event["data"] for event in map(json.loads, lines) if event["type"] == name]

    @property
    def directives(self):
        return len(self.events("DirectiveIssued"))


@pytest.fixture
def monitor(tmp_path, script):
    with Workspace.create(tmp_path / "monitor", title="AI news") as ws:
        ws.say(NEWS)
        yield Monitor(ws, script)


# --- who does what ------------------------------------------------------------------------------------


def test_a_director_writes_the_prompt_that_the_executor_is_given(monitor):
    """The director generates a focused system prompt, and the executor carries it out."""
    monitor.directed_by(directive("You are an AI news agent. Search the last 6 hours.")).run()
    assert monitor.prompts[0].startswith("You are an AI news agent. Search the last 6 hours.")


def test_a_director_sees_what_the_user_said(monitor):
    """The director is shown the user's original instructions."""
    turn = {"expect": [NEWS, "Only in English."], **directive("Search.")}
    monitor.ws.say("Only in English.")
    assert monitor.directed_by(turn).run().outcome.status == "COMPLETED"
    assert monitor.directives == 1


def test_a_director_sees_the_runs_and_their_results(monitor):
    """The director is shown the history of runs: the status, the summary and the tools of each."""

    def search(query: str) -> str:
        """Search."""
        return "3 posts"

    def work(assignment):
        assignment.tools.call("search", {"query": "robots"})
        return "Found three posts on robots."

    shown = {"expect": ["Found three posts on robots.", "search", "the feed is down"], **directive()}
    monitor.directed_by(directive(), directive(), shown)
    monitor.run(work, search=search)
    monitor.fail()
    monitor.run()
    assert monitor.directives == 3


def test_a_director_sees_fifty_runs(monitor):
    """The last 50 runs are shown to the director, not only the latest."""
    monitor.directed_by(
        directive(valid_for_runs=50),
        {"expect": ["result-number-01", "result-number-50"], **directive()},
    )
    for number in range(1, 52):
        monitor.run(lambda _, number=number: f"result-number-{number:02}")
    assert monitor.directives == 2


def test_a_director_sees_its_earlier_directives(monitor):
    """The director is shown its previous outputs, although it remembers nothing itself."""
    first = directive("Look at the first page.", strategy="Watch the harbour page.")
    monitor.directed_by(first, {"expect": ["Watch the harbour page."], **directive()})
    monitor.run()
    monitor.run()
    assert monitor.directives == 2


def test_a_director_sees_failed_approaches(monitor):
    """What failed, and why, is shown to the director at its next turn."""

    def post(channel: str) -> str:
        """Post."""
        raise ValueError("the channel ops is closed")

    def work(assignment):
        assignment.tools.call("post", {"channel": "ops"})
        return "tried"

    monitor.directed_by(directive(), {"expect": ["the channel ops is closed"], **directive()})
    monitor.run(work, post=post)
    monitor.run()
    assert monitor.directives == 2


def test_an_executor_knows_nothing_of_a_director_or_of_checkpoints(monitor):
    """The executor sees just its prompt: no director, no checkpoint, no reflection, no policy."""
    monitor.directed_by(
        directive(
            "Search.",
            valid_for_runs=1,
            reflection="Secretly worried about tokens.",
            checkpoints_to_create=[{"type": "milestone", "text": "Pattern seven is established."}],
        ),
        directive("Search again."),
    )
    monitor.run()
    monitor.run()
    for prompt in monitor.prompts:
        for word in ("director", "puppeteer", "worried", "Pattern seven", "checkpoint", "reuse"):
            assert word.lower() not in prompt.lower()


def test_an_executor_is_given_its_tools(monitor):
    """The executor has the list of its tools, with their parameters."""

    def search(query: str) -> str:
        """Search the feed."""
        return "none"

    seen = []
    monitor.run(lambda assignment: seen.extend(assignment.tools.schemas()) or "ok", search=search)
    assert [tool.name for tool in seen] == ["search"]
    assert "query" in seen[0].parameters["properties"]


def test_any_program_can_be_an_executor(agentx):
    """A program that reads a prompt and prints a result needs no integration to be directed."""
    agentx("say", NEWS)
    agentx("config", "set", "director.executor", '["sh", "-c", "grep -c \'AI news\'"]')
    done = agentx.json("agent", "direct", "--run")
    assert done["outcome"]["status"] == "COMPLETED"
    assert int(done["outcome"]["summary"]) >= 1


def test_a_director_works_without_a_model(monitor):
    """Without a model, code directs: the user's words reach the executor, and a directive is recorded."""
    monitor.run()
    assert NEWS in monitor.prompts[0]
    assert monitor.directives == 1


def test_every_prompt_ends_with_what_the_user_demands(monitor):
    """A rule of the user stands in the executor's prompt, whatever the director wrote."""
    rule = "From now on, never mail on a Sunday."
    monitor.ws.say(rule)
    monitor.directed_by(directive("Search.")).run()
    assert "never mail on a Sunday" in monitor.prompts[0]


def test_what_a_director_leaves_out_of_the_users_words_is_added(monitor):
    """Instructions that the director's prompt lacks reach the executor all the same."""
    monitor.ws.say("Leave out articles behind a paywall.")
    monitor.directed_by(directive("Search.")).run()
    assert "Leave out articles behind a paywall." in monitor.prompts[0]


# --- a directive --------------------------------------------------------------------------------------


def test_a_directive_records_analysis_strategy_reflection_and_policy(monitor):
    """A directive keeps the summary of the analysis, the strategy, the reflection and the reuse policy."""
    monitor.directed_by(
        directive(
            "Search.",
            valid_for_runs=8,
            invalidate_on=["executor_failed"],
            analysis_summary="Five good runs.",
            strategy="Continue.",
            reflection="High reuse is fine here.",
        )
    ).run()
    (issued,) = monitor.events("DirectiveIssued")
    assert (issued["summary"], issued["strategy"], issued["reflection"]) == (
        "Five good runs.",
        "Continue.",
        "High reuse is fine here.",
    )
    assert issued["policy"]["valid_for_runs"] == 8
    assert issued["policy"]["invalidate_on"] == ["executor_failed"]


def test_a_person_sees_the_current_directive_and_why(agentx):
    """``agent direct`` shows the directive with its policy; ``--why`` whether the director is asked next."""
    agentx("say", NEWS)
    assert agentx.json("agent", "direct", "--why")["direct"] is True
    agentx("agent", "direct", "--now")
    shown = agentx.json("agent", "direct")["issued"]
    assert shown["policy"]["valid_for_runs"] >= 1
    assert shown["reflection"]
    assert agentx.json("agent", "direct", "--why")["direct"] is False


@pytest.mark.parametrize("runs", [1, 3, 5])
def test_a_directive_serves_as_many_runs_as_its_policy_says(monitor, runs):
    """``valid_for_runs``: the director is asked again only after that many runs."""
    monitor.directed_by(directive("First.", valid_for_runs=runs), directive("Second."))
    for _ in range(runs):
        monitor.run()
    assert monitor.directives == 1
    monitor.run()
    assert monitor.directives == 2
    assert [prompt.split(".")[0] for prompt in monitor.prompts] == ["First"] * runs + ["Second"]


def test_a_failed_run_ends_a_directive(monitor):
    """``executor_failed``: after a run that failed the director is asked again."""
    monitor.directed_by(directive(valid_for_runs=8, invalidate_on=["executor_failed"]), directive())
    monitor.fail()
    monitor.run()
    assert monitor.directives == 2


def test_a_failed_run_leaves_a_directive_that_does_not_name_it(monitor):
    """A policy without ``executor_failed`` serves on after a failure."""
    monitor.directed_by(directive(valid_for_runs=8))
    monitor.fail()
    monitor.run()
    assert monitor.directives == 1


@pytest.mark.parametrize("conditions", [["user_instructions_changed"], []])
def test_a_new_instruction_ends_a_directive(monitor, conditions):
    """``user_instructions_changed``: a new message of the user ends every directive, whether or not it says so."""
    monitor.directed_by(
        directive(valid_for_runs=8, invalidate_on=conditions),
        {"expect": ["Also watch Reddit."], **directive("Search both.")},
    )
    monitor.run()
    monitor.ws.say("Also watch Reddit.")
    monitor.run()
    assert monitor.directives == 2
    assert monitor.prompts[1].startswith("Search both.")


@pytest.mark.parametrize(("tool", "directives"), [("send_email", 2), ("search", 1)])
def test_an_error_of_a_named_tool_ends_a_directive(monitor, tool, directives):
    """``tool_error:send_email``: an error of that tool ends the directive, one of another does not."""

    def broken(text: str) -> str:
        """Fail."""
        raise ValueError("refused")

    def work(assignment):
        assignment.tools.call(tool, {"text": "x"})
        return "tried"

    monitor.directed_by(directive(valid_for_runs=8, invalidate_on=["tool_error:send_email"]), directive())
    monitor.run(work, **{tool: broken})
    monitor.run()
    assert monitor.directives == directives


def test_a_changed_constraint_ends_a_directive(monitor):
    """``constraint_changed``: a demand that is new ends the directive."""
    monitor.directed_by(directive(valid_for_runs=8, invalidate_on=["constraint_changed"]), directive())
    monitor.run()
    monitor.ws.remember("constraint", "Never mail on a Sunday.")
    monitor.run()
    assert monitor.directives == 2


# --- fields -------------------------------------------------------------------------------------------


def test_fields_are_filled_anew_before_each_run(monitor):
    """``{{…}}`` in a cached prompt gets its value at each run, without the director."""
    monitor.directed_by(
        directive("This is run {{number}}.", valid_for_runs=8, fields={"number": "run_number"})
    )
    for _ in range(3):
        monitor.run()
    assert [prompt.splitlines()[0] for prompt in monitor.prompts] == [
        f"This is run {number}." for number in (1, 2, 3)
    ]
    assert monitor.directives == 1


def test_hours_since_the_last_run_are_a_number(monitor):
    """``hours_since_last_run`` is calculated from timestamps."""
    monitor.directed_by(
        directive(
            "Search the past {{hours}} hours.",
            valid_for_runs=8,
            fields={"hours": "hours_since_last_run(default=24)"},
        )
    )
    monitor.run()
    monitor.run()
    first, second = (float(prompt.split("past ")[1].split(" hours")[0]) for prompt in monitor.prompts)
    assert first == 24
    assert 0 <= second < 1


@pytest.mark.xfail(strict=True, reason="the hours are counted from a run that failed, too")
def test_hours_are_counted_from_the_last_completed_run(monitor):
    """A run that failed is not the last run: what it did not do is still to do."""
    field = "hours_since_last_run(default=24)"
    monitor.directed_by(directive("Past {{hours}} hours.", valid_for_runs=8, fields={"hours": field}))
    monitor.fail()
    monitor.run()
    assert monitor.prompts[1].startswith("Past 24 hours.")


def test_a_field_without_a_value_goes_back_to_the_director(monitor):
    """A field that has no value yet never reaches an executor: the model that directs is told the reason."""
    monitor.directed_by(
        directive("Last: {{last}}", fields={"last": "last_summary"}),
        {"expect": ["last"], **directive("Last: {{last}}", fields={"last": "last_summary(default=none)"})},
    )
    monitor.run()
    assert monitor.prompts[0].startswith("Last: none")
    assert len(monitor.prompts) == 1


@pytest.mark.xfail(strict=True, reason="only the first error of an answer is reported to the director")
def test_all_errors_of_an_answer_are_reported_at_once(monitor):
    """A director whose answer has two errors is told both, so that one more answer is enough."""
    bad = directive("{{one}} {{two}}", fields={"one": "no_such_lookup(a=1)", "two": "run_number(wrong=1)"})
    monitor.directed_by(bad, bad).run()
    (failed,) = monitor.events("DirectiveFailed")
    assert "no_such_lookup" in failed["error"] or "'one'" in failed["error"]
    assert "wrong" in failed["error"] or "'two'" in failed["error"]


def test_recent_titles_come_from_the_calls_of_a_tool(monitor):
    """``values(tool=…)`` lists what the last mails contained: stories already sent."""
    sent = []

    def send_email(titles: list[str]) -> str:
        """Send a mail."""
        sent.extend(titles)
        return "sent"

    def work(assignment):
        assignment.tools.call("send_email", {"titles": [f"Story {len(sent)}"]})
        return "Sent."

    field = "values(tool=send_email, path=$.titles[*], runs=5, default=none)"
    monitor.directed_by(directive("Already sent: {{recent}}", valid_for_runs=8, fields={"recent": field}))
    for _ in range(3):
        monitor.run(work, send_email=send_email)
    assert "Story 0" not in monitor.prompts[0]
    assert "Story 0" in monitor.prompts[2]
    assert "Story 1" in monitor.prompts[2]


def test_a_field_in_the_words_of_a_history_is_not_filled(monitor):
    """A ``{{…}}`` in a value is text: what a tool or a run says cannot inject a field."""
    monitor.directed_by(
        directive("Last: {{last}}", valid_for_runs=8, fields={"last": "last_summary(default=none)"})
    )
    monitor.run(lambda _: "I saw {{run_number}} there.")
    monitor.run()
    assert "{{run_number}}" in monitor.prompts[1]


# --- memory of the director ---------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ["milestone", "issue_resolved", "strategy_change"])
def test_a_checkpoint_has_a_type_and_an_actionable(monitor, sort):
    """A checkpoint marks the timeline with its type, its words and an actionable, for the director's later self."""
    mark = {"type": sort, "text": "Email delivery works.", "actionable": "Check the address first."}
    monitor.directed_by(
        directive(checkpoints_to_create=[mark]),
        {"expect": [sort, "Email delivery works.", "Check the address first."], **directive()},
    )
    monitor.run()
    monitor.run()
    assert monitor.directives == 2
    (item,) = monitor.ws.memory("checkpoint")
    assert item.text == "Email delivery works."


def test_a_checkpoint_of_an_unknown_type_is_refused(monitor):
    """Only the three types exist: the model is told, and asked once more."""
    bad = directive(checkpoints_to_create=[{"type": "party", "text": "We had cake."}])
    monitor.directed_by(bad, {"expect": ["party"], **directive("Search.")}).run()
    assert monitor.prompts[0].startswith("Search.")
    assert list(monitor.ws.memory("checkpoint")) == []


def test_knowledge_is_kept_by_topic_and_shown_to_the_director(monitor):
    """A reusable fact is kept below its topic, and the director is shown it in later runs."""
    fact = {"topic": "kite_api_auth", "text": "Kite sessions expire at 6 AM IST daily."}
    monitor.directed_by(
        directive(knowledge_to_create=[fact]),
        {"expect": ["kite_api_auth", "Kite sessions expire at 6 AM IST daily."], **directive()},
    )
    monitor.run()
    monitor.run()
    assert monitor.directives == 2
    (item,) = monitor.ws.memory("knowledge")
    assert (item.domain, item.text) == ("kite_api_auth", fact["text"])


def test_knowledge_is_found_by_search(monitor):
    """The knowledge base can be searched."""
    fact = {"topic": "competitor_c", "text": "The main website blocks scraping; the company page works."}
    monitor.directed_by(directive(knowledge_to_create=[fact])).run()
    hits = monitor.ws.search("website blocks scraping")
    assert any("blocks scraping" in str(hit) for hit in hits)


def test_knowledge_that_changed_replaces_the_old(monitor):
    """A fact on the same topic with another number takes the place of the old one."""
    monitor.directed_by(
        directive(knowledge_to_create=[{"topic": "kite", "text": "Kite sessions expire at 6 AM IST daily."}]),
        directive(knowledge_to_create=[{"topic": "kite", "text": "Kite sessions expire at 7 AM IST daily."}]),
    )
    monitor.run()
    monitor.run()
    (item,) = monitor.ws.memory("knowledge")
    assert "7 AM" in item.text


@pytest.mark.xfail(strict=True, reason="a fact in other words stands beside the old one of its topic")
def test_knowledge_of_the_same_topic_replaces_the_old(monitor):
    """What a director learns on a topic takes the place of what it knew on that topic."""
    monitor.directed_by(
        directive(
            knowledge_to_create=[
                {"topic": "pricing_page", "text": "The pricing page is behind a log-in form."}
            ]
        ),
        directive(
            knowledge_to_create=[
                {"topic": "pricing_page", "text": "Prices stand openly in the 'About' section."}
            ]
        ),
    )
    monitor.run()
    monitor.run()
    (item,) = monitor.ws.memory("knowledge")
    assert "About" in item.text


# --- degradation --------------------------------------------------------------------------------------


def test_an_answer_that_cannot_be_used_is_asked_for_once_more(monitor):
    """A director's invalid answer goes back to it once with the reason."""
    monitor.directed_by({"answer": "I would rather chat."}, directive("Search.")).run()
    assert monitor.prompts[0].startswith("Search.")
    assert monitor.directives == 1
    assert monitor.events("DirectiveFailed") == []


def test_the_last_directive_serves_when_the_director_fails(monitor):
    """If the director fails, the last cached prompt still works, and the failure is on record."""
    monitor.directed_by(directive("Search the harbour page.")).run()
    monitor.run()
    assert monitor.prompts[1].startswith("Search the harbour page.")
    (failed,) = monitor.events("DirectiveFailed")
    assert failed["error"]


def test_newer_words_of_the_user_are_added_when_the_director_fails(monitor):
    """What the user said since the cached prompt reaches the executor although the director failed."""
    monitor.directed_by(directive("Search the harbour page.")).run()
    monitor.ws.say("Leave out everything about yachts.")
    monitor.run()
    assert "Leave out everything about yachts." in monitor.prompts[1]


def test_the_director_is_asked_again_after_it_failed(monitor):
    """After a failure the director is asked before each run until it answers."""
    monitor.directed_by(directive("Old.", valid_for_runs=1)).run()
    monitor.run()
    monitor.directed_by(directive("New.")).run()
    assert monitor.prompts[2].startswith("New.")


# --- no duplicate work --------------------------------------------------------------------------------


def mailer(outbox, **declared):
    @act(**declared)
    def send_email(titles: list[str]) -> str:
        """Send one mail with these titles."""
        outbox.append(titles)
        return "sent"

    return send_email


def mail(*titles):
    def work(assignment):
        return assignment.tools.call("send_email", {"titles": list(titles)}).status

    return work


def test_what_was_done_is_not_done_again(monitor):
    """An act is done once: its repeat in a later run is refused before it has an effect."""
    outbox = []
    tool = mailer(outbox, key=("titles",))
    assert monitor.run(mail("GPT-5"), send_email=tool).outcome.summary == "SUCCEEDED"
    assert monitor.run(mail("GPT-5"), send_email=tool).outcome.summary == "DENIED"
    assert outbox == [["GPT-5"]]


def test_of_a_list_only_what_is_new_is_done(monitor):
    """With ``titles[]`` each title is an act: those that were sent are left out, the others are sent."""
    outbox = []
    tool = mailer(outbox, key=("titles[]",))
    monitor.run(mail("One", "Two"), send_email=tool)
    monitor.run(mail("Two", "Three"), send_email=tool)
    assert outbox == [["One", "Two"], ["Three"]]


def test_an_act_that_failed_may_be_done_again(monitor):
    """Only what succeeded counts as done."""
    outbox = []

    @act(key=("titles",))
    def send_email(titles: list[str]) -> str:
        """Fail the first time."""
        outbox.append(titles)
        if len(outbox) == 1:
            raise ConnectionError("no net")
        return "sent"

    monitor.run(mail("One"), send_email=send_email)
    assert monitor.run(mail("One"), send_email=send_email).outcome.summary == "SUCCEEDED"
    assert len(outbox) == 2


def test_an_executor_is_told_what_was_done_already(monitor):
    """The executor is told which acts were done, in its prompt and as values."""
    tool, seen = mailer([], key=("titles[]",)), []
    monitor.run(mail("GPT-5 released"), send_email=tool)
    monitor.run(lambda assignment: seen.append(dict(assignment.done)) or "ok", send_email=tool)
    assert "GPT-5 released" in monitor.prompts[1]
    assert "GPT-5 released" in json.dumps(seen[0]["send_email"], default=str)


def test_an_act_of_each_run_is_new_in_the_next(monitor):
    """``window="never"`` and ``"due"``: what belongs to each run is not refused in the next one."""
    for window in ("never", "due"):
        outbox = []
        tool = mailer(outbox, key=("titles",), window=window)
        for _ in range(2):
            monitor.run(mail(f"Daily {window}"), send_email=tool)
        assert len(outbox) == 2


def test_a_person_reports_what_was_done_and_takes_it_back(agentx):
    """``agentx done`` records an act, knows it the next time (3), and ``--not`` takes it back."""
    assert agentx("done", "offer", "id=4711").code == 0
    assert agentx("done", "offer", "id=4711", ok=False).code == 3
    assert agentx("done", "--check", "offer", "id=4711", ok=False).code == 3
    agentx("done", "--not", "offer", "id=4711")
    assert agentx("done", "--check", "offer", "id=4711").code == 0


def test_a_command_that_does_an_act_is_run_once(agentx):
    """``agentx done NAME … -- COMMAND`` runs the command the first time only; a failed one may be repeated."""
    once = ("done", "offer", "id=1", "--", "sh", "-c", "echo sent >> ../sent.txt")
    assert agentx(*once).code == 0
    assert agentx(*once, ok=False).code == 3
    assert (agentx.cwd.parent / "sent.txt").read_text() == "sent\n"
    assert agentx("done", "offer", "id=2", "--", "sh", "-c", "exit 7", ok=False).code == 7
    assert agentx("done", "offer", "id=2", "--", "true").code == 0
