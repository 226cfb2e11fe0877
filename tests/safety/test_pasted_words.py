"""Words that an agent or a tool wrote do not become the user's when they are pasted back."""

import io
import json
import shutil

import msgspec
import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.memory.model_extraction import judge
from agentx.storage.events.types import Body, Draft, ToolCallExecuted
from agentx.storage.log.history import History
from agentx.synthesis.attribution import copies
from agentx.synthesis.attribution.copies import Heard
from tests.agentx.own_model import Model

ANSWER = (
    "I'll keep the oven at 220 degrees. From now on, never use the convection mode, and always write the temperature "
    "in Fahrenheit. All recipes must be gluten free."
)
ONE = "From now on, never use the convection mode."
LISTED = "# Rules\n\n1. **Never** deploy on a Friday.\n2. Always write the temperature in `Fahrenheit`.\n- From now on, label each tape.\n"


class Task:
    """A workspace, used as a person and an agent use it: by the command line."""

    def __init__(self, root, capsys):
        self.root, self._capsys = root, capsys

    def call(self, *words):
        code = main(["-C", str(self.root), *map(str, words)])
        out, err = self._capsys.readouterr()
        assert code == 0, out + err
        return out

    def say(self, text):
        return self.call("say", "--", text)

    def agent(self, text, name="aider"):
        self.call("record", "--role", "assistant", "--as", name, "--", text)

    def tool(self, text):
        """Record what a tool printed, as a host does."""
        with Workspace.open(self.root) as ws:
            call = ToolCallExecuted(
                call_id=f"t-{ws.state.seq}", tool="Read", status="SUCCEEDED", output=ws.body(text)
            )
            ws.record(Draft(data=call, actor="agent:claude-code"))

    @property
    def items(self):
        return json.loads(self.call("--json", "memory", "list", "--all"))

    def rules(self, *statuses):
        """The texts of the user's rules and notes with a status."""
        kinds = ("constraint", "rejection", "decision", "knowledge", "preference")
        return [
            one["text"]
            for one in self.items
            if one["kind"] in kinds and one.get("status", "active") in statuses
        ]

    @property
    def active(self):
        return self.rules("active")

    @property
    def candidates(self):
        return self.rules("candidate")


@pytest.fixture
def task(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AGENTX_NO_SERVER", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    Workspace.create(tmp_path / "menu").close()
    return Task(tmp_path / "menu", capsys)


def wrapped(text, width=32):
    words, lines = text.split(), [""]
    for word in words:
        lines[-1:] = (
            [f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < width else [lines[-1], word]
        )
    return "\n".join(lines)


@pytest.mark.parametrize(
    "paste",
    [
        ANSWER,
        ANSWER.upper(),
        wrapped(ANSWER),
        ANSWER.replace(" ", "  "),
        ANSWER.replace(" ", "\u00a0").replace("'", "\u2019"),
        ANSWER.replace(". ", ".\n\n"),
        ANSWER.replace(". ", ".\n- "),
        ANSWER.replace("never", "**never**").replace("always", "_always_"),
        ANSWER.replace("never", "ne\u200bver").replace("Fahrenheit", "Fahren\u00adheit"),
        ANSWER.replace("fi", "\ufb01").replace("All", "\uff21ll"),
        "\ufeff" + ANSWER.rstrip(".") + " ",
        ANSWER[ANSWER.index("never") :],
        ANSWER[: ANSWER.index(" be gluten")],
        ANSWER[ANSWER.index("always write") :],
        f"Look at this.\n{ANSWER}",
        f"{ANSWER}\nWhat does that mean?",
        f"You wrote to me yesterday that {ANSWER}",
    ],
)
def test_a_pasted_answer_is_a_quotation(task, paste):
    task.agent(ANSWER)
    task.say(paste)
    assert task.active == []
    assert not any("Fahrenheit" in one or "gluten" in one for one in task.candidates)


@pytest.mark.parametrize(
    "paste",
    [
        LISTED,
        LISTED.replace("**", "").replace("`", "").replace("# Rules\n\n", ""),
        "Never deploy on a Friday.\nAlways write the temperature in Fahrenheit.\nFrom now on, label each tape.",
        "• Never deploy on a Friday.\n• Always write the temperature in Fahrenheit.",
        "**Never** deploy on a Friday.",
        "- From now on, label each tape.",
    ],
)
def test_lines_of_a_list_and_marks_that_an_agent_set_are_a_quotation(task, paste):
    task.agent(LISTED)
    task.say(paste)
    assert task.active == task.candidates == []


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (ONE, ONE),
        (ONE, ONE.lower().rstrip(".")),
        (ONE, f"Hello. {ONE} Thanks!"),
        (ANSWER, "All recipes must be gluten free."),
        ("Never use tabs. Then I went home.", "Never use tabs."),
        (f"Rules I follow: {ONE}", ONE),
        ("- **Never** use tabs.", "Never use tabs."),
        (
            wrapped("From now on, always write the temperature of every oven in Fahrenheit."),
            "From now on, always write the temperature of every oven in Fahrenheit.",
        ),
        (
            "From now on, always write the temperature of every oven in Fahrenheit.",
            wrapped("From now on, always write the temperature of every oven in Fahrenheit."),
        ),
        ("We use SQLite from now on, never Postgres.", "We use SQLite from now on, never Postgres."),
    ],
)
def test_a_single_sentence_that_an_agent_wrote_before_is_a_candidate_at_once(task, written, said):
    task.agent(written)
    told = task.say(said)
    assert "andidate" in told
    assert task.active == []
    assert len(task.candidates) == 1


@pytest.mark.parametrize("times", [2, 3])
def test_pasting_again_makes_no_rule_of_it(task, times):
    task.agent(ONE)
    for _ in range(times):
        task.say(ONE)
        task.say(f"Yes please: {ONE}")
    assert task.active == []
    assert len(task.candidates) == 1


@pytest.mark.parametrize("name", ["aider", "codex", "claude-code"])
def test_whatever_agent_wrote_it(task, name):
    task.agent(ANSWER, name)
    task.say(ANSWER)
    assert task.active == task.candidates == []


@pytest.mark.parametrize(
    "printed",
    [
        "     1\u2192# House rules\n     2\u2192\n     3\u2192Never deploy on a Friday.\n     4\u2192Always label each tape.\n",
        '{"text": "Intro.\\nNever deploy on a Friday.\\nAlways label each tape."}',
        "\u2502 Never deploy on a Friday.      \u2502\n\u2502 Always label each tape.        \u2502\n",
        "total 8\n-rw-r--r-- 1 a b 12 x.py\n\nNever deploy on a Friday. Always label each tape.\n",
        "x = 1\n" * 3_000 + "Never deploy on a Friday. Always label each tape.\n",
    ],
)
def test_what_a_tool_printed_is_a_quotation_too(task, printed):
    task.tool(printed)
    task.say("Never deploy on a Friday. Always label each tape.")
    assert task.active == task.candidates == []
    task.say("Always label each tape.")
    assert task.active == []
    assert task.candidates == ["Always label each tape."]


def test_what_the_user_said_first_stays_the_users_though_agents_echo_it(task):
    said = "Never deploy on a Friday. Always label each tape. From now on, never use the convection mode."
    task.say("Never deploy on a Friday.")
    task.agent(f"Understood. {said}")
    task.agent(f"> {said}\n\nNoted: {said}")
    task.tool(said)
    task.say("never deploy on a Friday!")
    assert task.active == ["Never deploy on a Friday."]
    task.say("Always write the name of the cook on every page of the menu, from now on.")
    task.agent(
        "I noted it: always write the name of the cook on every page of the menu, from now on. Never use salt."
    )
    task.say("As I said, always write the name of the cook on every page of the menu, from now on.")
    assert len(task.active) == 2


def test_the_users_own_sentences_beside_a_quotation_count(task):
    task.agent(ANSWER)
    task.say(f"{ANSWER}\n\nNo. Never use cups; use grams instead.\n\n{ANSWER}\n\nAlways name the cook.")
    assert task.active == ["Never use cups; use grams instead.", "Always name the cook."]


@pytest.mark.parametrize(
    "reversal",
    [
        "You can use the convection mode again.",
        "Forget the rule about the convection mode.",
        "From now on, always use the convection mode.",
        "The ban on the convection mode no longer applies.",
    ],
)
def test_an_agent_cannot_end_a_rule_by_writing_its_reversal(task, reversal):
    task.say(ONE)
    task.agent(f"{reversal} I am done.")
    assert task.active == [ONE]
    task.say(reversal)
    assert ONE in task.active
    rule = next(one for one in task.items if one["text"] == ONE)
    # It is seen at once, as a candidate beside the rule.
    assert not rule.get("perhaps_ended_by")
    assert task.candidates
    task.say(f"{reversal} I am done.")
    assert ONE in task.active


def test_words_that_an_agent_wrote_before_do_not_silence_the_user(task):
    """Sentences that the user says, of which an agent wrote each in another place."""
    task.agent(
        "Never deploy on a Friday. The oven is hot. From now on, never use salt. Bye. Always label each tape."
    )
    told = task.say("Never deploy on a Friday. Always label each tape. From now on, never use salt.")
    assert told.count("candidate") >= 2
    assert len(task.candidates) >= 2


def test_a_choice_in_the_agents_words_answers_it(task):
    task.agent("Two ways:\n1. Store the rows in SQLite.\n2. Store the rows in Postgres.\nWhich one?")
    task.say("Store the rows in SQLite.")
    assert task.active == [] or "SQLite" in task.active[0]
    assert "SQLite" in " ".join(task.active + task.candidates)


def test_a_repetition_in_the_users_own_words_does_not_count_the_paste(task):
    task.agent("All recipes must be gluten free. Done.")
    task.say("All recipes must be gluten free.")
    assert task.active == []
    task.say("all the recipes must be gluten-free")
    assert len(task.active) + len(task.candidates) >= 1


def test_say_names_what_it_read_as_a_quotation(task, capsys):
    task.agent(ANSWER)
    assert main(["-C", str(task.root), "say", ANSWER]) == 0
    assert "read as a quotation" in capsys.readouterr().err


def test_a_model_is_not_shown_a_quotation_and_cannot_quote_it(task):
    """What a model reads afterwards is what the user said."""
    task.agent(ANSWER)
    task.say(f"Please label the tape.\n\n{ANSWER}")
    quote = {
        "quote": "All recipes must be gluten free",
        "kind": "constraint",
        "lasting": "yes",
        "reason": "It lasts.",
    }
    with Workspace.open(task.root) as ws:
        (seq,) = (event.seq for event in ws.events() if event.type == "UserMessageSent")
        model = Model({"found": [{"message": seq, **quote}], "verdicts": []})
        judged = judge(ws, model)
    assert judged.messages
    assert judged.items == ()
    assert "label the tape" in str(model.asked)
    assert "gluten free" not in str(model.asked).partition(f"Message {seq}")[2].partition("## ")[0]


def test_the_reading_of_a_message_does_not_depend_on_the_cache(task):
    task.agent(ANSWER)
    task.say("Always label each tape.")
    shutil.rmtree(task.root / ".agentx")
    task.say(ANSWER)
    with Workspace.open(task.root) as ws:
        before = ws.state.digest
        ws.rebuild()
        assert ws.state.digest == before
        ws.resynthesize()
        assert [item.text for item in ws.memory("constraint", status=None)] == ["Always label each tape."]


def test_a_long_history_is_not_read_again_for_each_message(task, monkeypatch):
    with Workspace.open(task.root) as ws:
        with ws.bulk():
            for number in range(700):
                body = Body(f"Never touch shelf {number} in the morning. It is step {number} of the plan.")
                ws.record(
                    Draft(
                        data=ToolCallExecuted(
                            call_id=f"t-{number}", tool="Read", status="SUCCEEDED", output=body
                        ),
                        actor="agent:x",
                    )
                )
        ws.say("Always label each tape.")
        began, read = [], History.read
        monkeypatch.setattr(
            History,
            "read",
            lambda self, after=0, *rest, **more: began.append(after) or read(self, after, *rest, **more),
        )
        ws.say("Never touch shelf 399 in the morning.")
        assert 0 not in began
        assert [item.text for item in ws.memory(status="candidate")] == [
            "Never touch shelf 399 in the morning."
        ]


def test_a_long_history_is_read_before_the_lock_of_the_workspace_is_taken(task, monkeypatch):
    with Workspace.open(task.root) as ws:
        ws.say("Always label each tape.")
        with ws.bulk():
            for number in range(700):
                ws.record(
                    Draft(
                        data=ToolCallExecuted(
                            call_id=f"t-{number}", tool="Read", status="SUCCEEDED", output=Body(f"Never touch shelf {number}.")
                        ),
                        actor="agent:x",
                    )
                )  # fmt: skip
    shutil.rmtree(task.root / ".agentx" / "heard", ignore_errors=True)
    with Workspace.open(task.root) as ws:
        under, real = [], Heard.hear_others
        monkeypatch.setattr(
            Heard,
            "hear_others",
            lambda self, *what, **how: (
                under.append(ws.engine.write_path.lock.depth) or real(self, *what, **how)
            ),
        )
        ws.say("Never touch shelf 399.")
        assert len(under) >= 700
        assert set(under) == {0}
        assert [item.text for item in ws.memory(status="candidate")] == ["Never touch shelf 399."]


def test_an_older_state_does_not_make_it_read_all_again(task):
    with Workspace.open(task.root) as ws:
        before = ws.engine.snapshot()
        task_said = ws.say("Always label each tape.")
        heard = ws.engine.heard.at(ws.engine.snapshot())
        ws.engine.heard.read_ahead(before)
        assert ws.engine.heard.at(before) is heard
        assert task_said.seq > before.seq


def test_what_was_written_long_ago_is_forgotten_and_memory_has_a_bound(monkeypatch):
    monkeypatch.setattr(copies, "RECENT", 300)
    heard = copies.Heard()
    pasted = "Never plant the leeks before the first of May. Always water the beds in the evening."
    heard.hear_others(pasted)
    assert heard.copied(pasted).quotations
    for number in range(200):
        heard.hear_others(
            f"Bed {number} has {number} rows of beans, and the rows stand {number} hands apart."
        )
    assert not heard.copied(pasted).quotations
    assert len(heard.others.newer) + len(heard.others.older) < 3 * 300
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(heard), type=copies.Heard)
    assert again == heard
