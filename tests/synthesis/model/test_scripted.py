import json
import subprocess
import sys

import pytest

from agentx.synthesis.model.open import open_model
from agentx.synthesis.model.port import ChatMessage, ModelError, Reply, TextPart, ToolSchema
from agentx.synthesis.model.scripted import ScriptedModel

LOOK = {"thought": "I look first.", "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
DONE = {"answer": "It is  done.\n"}


@pytest.fixture
def script(tmp_path):
    def script(*turns, text=None):
        path = tmp_path / "turns.jsonl"
        path.write_text("\n".join(json.dumps(turn) for turn in turns) if text is None else text)
        return ScriptedModel(path)

    return script


def play(model, *messages, tools=()):
    return list(model.stream([ChatMessage("user", "go"), *messages], tools))


def test_turns_are_played_in_order_word_by_word(script):
    model = script(LOOK, DONE)
    *words, first = play(model)
    assert words == [TextPart("I "), TextPart("look "), TextPart("first.")]
    assert (first.tool_calls[0].name, first.tool_calls[0].arguments) == ("read_file", '{"path":"a.py"}')
    *words, last = play(model)
    assert "".join(word.text for word in words) == last.text == "It is  done.\n"
    assert last.tool_calls == ()


def test_calls_of_one_script_have_different_ids(script):
    model = script(LOOK, {"tool_calls": LOOK["tool_calls"] * 2})
    ids = [call.id for turn in (play(model), play(model)) for call in turn[-1].tool_calls]
    assert len(set(ids)) == 3


def test_a_script_costs_nothing_and_counts_its_words(script):
    usage = play(script(DONE))[-1].usage
    assert usage.cost_usd == 0
    assert usage.completion_tokens > 0


def test_a_run_that_goes_on_in_another_process_goes_on_in_its_script(script):
    assert play(script(LOOK, DONE), ChatMessage("assistant", "I look first."))[-1].text == "It is  done.\n"


def test_a_script_that_has_run_out_says_so(script):
    model = script(DONE)
    play(model)
    with pytest.raises(ModelError, match="run out: it has 1 turns"):
        play(model)


def test_a_turn_whose_phrase_was_not_shown_is_not_played(script):
    model = script({"expect": ["Never mention\nELON musk"], "answer": "ok"})
    with pytest.raises(
        ModelError, match="turn 1: it expects the model to be shown “Never mention\nELON musk”"
    ):
        play(model)
    reply = play(model, ChatMessage("system", "… never  mention Elon Musk …"))[-1]
    assert isinstance(reply, Reply)


def test_a_turn_may_expect_a_tool(script):
    model = script({"expect": ["read_file"], "answer": "ok"})
    assert play(model, tools=[ToolSchema("read_file", "", {})])[-1].text == "ok"


def test_arguments_given_as_text_are_played_as_they_are(script):
    turn = {"tool_calls": [{"name": "f", "arguments": '{"path": '}]}
    assert play(script(turn))[-1].tool_calls[0].arguments == '{"path": '


def test_a_script_may_be_one_json_array(script):
    assert play(script(text=json.dumps([DONE], indent=2)))[-1].text == "It is  done.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"answer": "a"}\n\n{"answer": ', "line 3 of the script .* is no turn"),
        ('{"anser": "a"}', "line 1 .*anser"),
        ('{"answer": "a", "thought": "b"}', "an `answer` stands alone"),
        ("[1]", "the script .* is no turn"),
    ],
)
def test_a_broken_script_is_named_with_its_line(script, text, reason):
    with pytest.raises(ModelError, match=reason):
        script(text=text)


def test_a_script_that_is_not_utf8_or_not_there_is_refused(tmp_path):
    (tmp_path / "latin").write_bytes(b'{"answer": "\xe9"}')
    with pytest.raises(ModelError, match="line 1"):
        ScriptedModel(tmp_path / "latin")
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        ScriptedModel(tmp_path / "nowhere")


def test_a_name_opens_a_script_or_a_hosted_model(tmp_path):
    (tmp_path / "s").write_text(json.dumps(DONE))
    assert play(open_model(f"script:{tmp_path / 's'}"))[-1].text == "It is  done.\n"
    assert open_model(" openai/gpt-4o-mini ").name == "openai/gpt-4o-mini"


def test_without_a_model_the_error_says_how_to_set_one():
    with pytest.raises(ModelError) as caught:
        open_model("  ")
    for way in ("--model", "agentx config set model.name", "AGENTX_MODEL", "script:FILE"):
        assert way in str(caught.value)


def test_a_scripted_run_never_imports_litellm(tmp_path):
    (tmp_path / "s").write_text(json.dumps(DONE))
    program = (
        "import sys\n"
        "from agentx.synthesis.model.open import open_model\n"
        "open_model('openai/gpt-4o-mini')\n"
        f"list(open_model('script:{tmp_path}/s').stream([]))\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('litellm', 'openai', 'httpx')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
