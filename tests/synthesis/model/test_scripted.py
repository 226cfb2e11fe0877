import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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
    with pytest.raises(ModelError, match="run out: it has 1 turn"):
        play(model)


def test_a_turn_whose_phrase_was_not_shown_is_not_played(script):
    model = script({"expect": ["Never mention\nELON musk"], "answer": "ok"})
    with pytest.raises(ModelError, match="turn 1: it expects “Never mention\nELON musk”"):
        play(model)
    reply = play(model, ChatMessage("system", "… never  mention Elon Musk …"))[-1]
    assert isinstance(reply, Reply)


def test_a_turn_may_expect_a_tool(script):
    model = script({"expect": ["read_file"], "answer": "ok"})
    assert play(model, tools=[ToolSchema("read_file", "", {})])[-1].text == "ok"


def test_arguments_given_as_text_are_played_as_they_are(script):
    turn = {"tool_calls": [{"name": "f", "arguments": '{"path": '}]}
    assert play(script(turn))[-1].tool_calls[0].arguments == '{"path": '


# --- turns outside of the order --------------------------------------------------------------------------------------


def writes(*paths):
    path = {"type": "string", "enum": list(paths)}
    return [ToolSchema("write_file", "", {"type": "object", "properties": {"path": path}})]


def written(model, *said, tools, also=()):
    messages = [ChatMessage("user", text) for text in said]
    calls = list(model.stream([*messages, *also], tools))[-1].tool_calls
    arguments = [json.loads(call.arguments) for call in calls]
    return [(one["path"], one["content"]) for one in arguments]


@pytest.fixture
def words(tmp_path):
    def words(**files):
        for name, text in files.items():
            path = tmp_path / "words" / "drafts" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return words


def test_a_turn_is_played_whenever_its_phrases_are_shown_and_the_first_such_wins(script):
    model = script(
        {"when": ["You are the WRITER", "chapter 2"], "answer": "two"},
        DONE,
        {"when": ["you are the writer"], "answer": "any"},
    )
    shown = ("You are the writer of chapter 1", "you are\nthe writer: chapter 2", "Somebody else")
    for _ in range(2):
        said = [play(model, ChatMessage("user", text))[-1].text for text in shown[:2]]
        assert said == ["any", "two"]
    assert play(model, ChatMessage("user", shown[2]))[-1].text == DONE["answer"]
    with pytest.raises(ModelError, match=r"run out: it has 1 turn, .*no `when` of the script"):
        play(model, ChatMessage("user", shown[2]))


def test_such_a_turn_expects_phrases_as_others_do(script):
    with pytest.raises(ModelError, match=r"turn 2: it expects .*“posting”"):
        play(script(DONE, {"when": ["go"], "expect": ["posting"], "answer": "ok"}))


def test_a_folder_writes_what_the_agent_may_write_and_then_ends_the_turn(script, words):
    words(**{"ch01.md": "One.\n", "ch02.md": "Two.\n", "style.css": "p {}"})
    model, tools = script({"folder": "words"}), writes("drafts/ch02.md", "drafts/style.css")
    assert written(model, "go", tools=tools) == [("drafts/ch02.md", "Two.\n"), ("drafts/style.css", "p {}")]
    after = ChatMessage("assistant", ""), ChatMessage("tool", "written")
    (*_, reply) = model.stream([ChatMessage("user", "go"), *after], tools)
    assert (reply.text, reply.tool_calls) == ("Done.", ())


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("", "first"),
        ("Round 1. Attempt 2.", "mended"),
        ("Round 1. Attempt 3. The last reviewer says: Round 9", "mended"),
        ("Round 2.", "second"),
        ("Round 2. Attempt 2.", "second"),
        ("Round 4.", "fourth"),
        ("Round 12.", "fourth"),
    ],
)
def test_a_folder_has_words_for_each_round_and_attempt(script, words, told, text):
    words(**{"a.md": "first", "a~1.2.md": "mended", "a~2.md": "second", "a~4.md": "fourth", "a~old.md": "no"})
    model, tools = script({"when": ["write"], "folder": "words"}), writes("drafts/a.md")
    assert written(model, f"Write. {told}", tools=tools) == [("drafts/a.md", text)]


def test_many_agents_may_be_asked_at_once_and_no_two_calls_have_one_id(script, words):
    names = [f"{number}.md" for number in range(40)]
    words(**{name: f"words of {name}" for name in names})
    model = script({"folder": "words"})

    def ask(name):
        (*_, reply) = model.stream([ChatMessage("user", f"Write {name}.")], writes(f"drafts/{name}"))
        (call,) = reply.tool_calls
        return call.id, json.loads(call.arguments)["content"]

    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(ask, names))
    assert [text for _, text in said] == [f"words of {name}" for name in names]
    assert len({call for call, _ in said}) == len(names)


def test_a_folder_without_words_or_without_a_tool_says_what_is_missing(script, words):
    words(**{"a~2.md": "only later"})
    model = script({"folder": "words"})
    with pytest.raises(ModelError, match=r"no text was found for a.md: write it to .*words/drafts/a.md"):
        written(model, "Round 1.", tools=writes("drafts/a.md"))
    with pytest.raises(ModelError, match="the agent has no tool write_file with an `enum` of paths"):
        written(model, "go", tools=[ToolSchema("write_file", "", {})])


def test_a_script_may_be_one_json_array(script):
    assert play(script(text=json.dumps([DONE], indent=2)))[-1].text == "It is  done.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"answer": "a"}\n\n{"answer": ', "line 3 of the script .* is not a turn"),
        ('{"anser": "a"}', "line 1 .*anser"),
        ('{"answer": "a", "thought": "b"}', "an `answer` cannot be combined"),
        ('{"answer": "a", "folder": "b"}', "a `folder` can only be combined"),
        ("[1]", "the script .* is not a turn"),
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
