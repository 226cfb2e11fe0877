"""``agentx memory write-checks``: what a user types and sees when a model writes checks."""

import json

import pytest

from agentx import Workspace
from agentx.synthesis.memory.items import checks_of

NO_PRINT = {"kind": "text", "patterns": [r"\bprint\("], "paths": ["src/**"], "places": ["files"]}
KIND = "Be kind to readers."
TIDY = "Our functions must stay tidy."


def answer(*checks, why_not=""):
    return {"answer": json.dumps({"checks": checks, "why_not": why_not})}


@pytest.fixture
def rules(root, call):
    """Two rules that are only shown, and a file of the user that no agent wrote."""
    (root / "artifacts" / "src").mkdir()
    (root / "artifacts" / "src" / "a.py").write_text("print(1)\n")
    return [call("memory", "add", text, "--json", "-C", root).json[0]["id"] for text in (TIDY, KIND)]


def test_the_user_sees_the_check_and_what_it_would_have_denied(root, call, rules, script):
    tidy, _ = rules
    model = script(answer(NO_PRINT))
    done = call("memory", "write-checks", tidy, "--model", model, "-C", root)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:4] == [f"# {tidy}: {TIDY}", f"# Written by {model}.", "kind: text", "mode: observe"]
    assert (
        "Would deny 1 of 2 files today; 0 of 2 writes, 0 of 0 commands and 0 of 0 answers in history."
        in lines
    )
    assert f"`agentx memory check {tidy} --mode deny`" in done.out
    shown = call("memory", "show", tidy, "-C", root).out
    assert f"text(observe,by{model})" in "".join(shown.replace("│", "").split())  # however it is wrapped
    assert "2 checked (1 observe), 1 shown only" in call("status", "-C", root).out
    assert f"{model} wrote checks of {tidy}" in call("log", "-C", root).out


def test_the_mode_that_the_user_sets_enforces_it(root, call, rules, script):
    tidy, _ = rules
    model = script(answer(NO_PRINT))
    call("memory", "write-checks", tidy, "--model", model, "-C", root)
    call("memory", "check", tidy, "--mode", "deny", "-C", root)
    assert f"# Written by {model}." in call("memory", "check", tidy, "-C", root).out
    with Workspace.open(root) as ws:
        assert ws.tools.call("write_file", {"path": "src/b.py", "content": "print(2)"}).status == "DENIED"
        ws.edit_memory(tidy, "Our functions must stay neat.")
        assert [check.by_hand for check in checks_of(ws.state.items[tidy])] == [True]


def test_all_rules_that_are_only_shown_are_asked_about_until_they_have_checks(root, call, rules, script):
    _, kind = rules
    model = script(
        {**answer(NO_PRINT), "expect": [TIDY]},
        {**answer(why_not="Only a reader can judge it."), "expect": [KIND]},
    )
    done = call("memory", "write-checks", "--all", "--model", model, "-C", root)
    assert f"{kind} is still only shown: {KIND}\nOnly a reader can judge it.\n" in done.out
    assert done.out.endswith("1 of 2 rules got checks.\n")
    again = script({**answer({"kind": "size", "at_most": 9}), "expect": [KIND]}, name="again.jsonl")
    assert call("memory", "write-checks", "--all", "--model", again, "-C", root).code == 0
    done = call("memory", "write-checks", "--all", "--model", again, "-C", root)
    assert done.out == "There is no active rule without a check.\n"


def test_a_check_that_most_files_break_is_a_warning(root, call, rules, script):
    done = call(
        "memory",
        "write-checks",
        rules[0],
        "--model",
        script(answer({"kind": "size", "at_most": 0})),
        "-C",
        root,
    )
    assert "Most of the present files break it" in done.err
    assert "mode: observe" in done.out


def test_the_configured_model_is_used_and_json_has_all(root, call, rules, script, monkeypatch):
    monkeypatch.setenv("AGENTX_MODEL", script(answer(NO_PRINT), answer(why_not="Taste.")))
    document = call("memory", "write-checks", *rules, "--json", "-C", root).json
    assert document["left"] == 0
    first, second = document["written"]
    assert (first["checks"][0]["written_by"], first["trial"]["broken"]["file"]) == (first["model"], 1)
    assert (second.get("checks", []), second["why_not"]) == ([], "Taste.")


def test_it_stops_at_the_limits(root, call, rules, script):
    call("config", "set", "limits.max_tokens", "1", "-C", root)
    done = call("memory", "write-checks", "--all", "--model", script(answer(NO_PRINT)), "-C", root)
    assert "1 rule left: 1 tokens (limits.max_tokens) used up." in done.err


def test_wrong_use_asks_no_model(root, call, rules, script):
    model = script()
    for words in ((), (rules[0], "--all"), (rules[0], "c-3"), ("c-99",)):
        done = call("memory", "write-checks", *words, "--model", model, "-C", root)
        assert (done.code, done.out) == (2, ""), words
    assert "AGENTX_MODEL" in call("memory", "write-checks", "--all", "-C", root).err


def test_the_model_of_a_run_writes_the_checks_of_the_rules_said_in_it(call, root, use, chat_server):
    use("openai/worker", api_base=chat_server.base)
    chat_server.will_say("Done.")
    chat_server.will_say("I leave it.")
    chat_server.will_call(("a", "record_judgement", json.dumps({"found": [], "verdicts": []})))
    chat_server.will_call(("b", "write_checks", json.dumps({"checks": [NO_PRINT]})))
    done = call("run", "Mend it. From now on, use short names whenever that seems kind.", "-C", root)
    assert done.code == 0, done.err
    assert "# Written by openai/worker." in done.out
    assert "Would deny 0 of 1 file today" in done.out
    assert chat_server.answers == []
