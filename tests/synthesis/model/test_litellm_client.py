"""The real litellm client against a real HTTP server."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from agentx.synthesis.model.litellm_client import LiteLLMClient, embed_texts, price_of
from agentx.synthesis.model.port import ChatMessage, ModelError, Reply, TextPart, ToolCall, ToolSchema, Usage

ASK = [ChatMessage("system", "Be brief."), ChatMessage("user", "Hello?")]
READ = ToolSchema("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
def ask(chat_server):
    def ask(messages=ASK, tools=(), *, name="openai/tiny", timeout_s=20.0, **options):
        client = LiteLLMClient(
            name, api_key="sk-secret-key-0123", api_base=chat_server.base, **{"backoff_s": 0.01, **options}
        )
        return list(client.stream(messages, tools, timeout_s=timeout_s))

    return ask


def test_text_arrives_in_parts_and_the_last_part_is_the_whole(chat_server, ask):
    chat_server.will_say("Hello to you")
    *parts, reply = ask()
    assert [part.text for part in parts] == ["Hello ", "to ", "you "]
    assert reply == Reply("Hello to you ", (), Usage(11, 7, 0.0), "openai/tiny")


def test_the_server_gets_messages_tools_and_the_key_as_the_protocol_wants_them(chat_server, ask):
    chat_server.will_say("ok")
    call = ToolCall("c1", "read_file", '{"path": "a.py"}')
    ask(
        [*ASK, ChatMessage("assistant", "", (call,)), ChatMessage("tool", "text of a.py", tool_call_id="c1")],
        [READ],
    )
    request = chat_server.requests[0]
    assert request["model"] == "tiny"
    assert request["stream"] is True
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request["messages"][2]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
    ]
    assert request["messages"][3] == {"role": "tool", "content": "text of a.py", "tool_call_id": "c1"}
    assert request["tools"][0]["function"]["parameters"]["properties"] == {"path": {"type": "string"}}
    assert chat_server.headers[0]["authorization"] == "Bearer sk-secret-key-0123"


def test_interleaved_tool_calls_are_put_together_by_their_index(chat_server, ask):
    chat_server.will_stream(
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read_file", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "write_file", "arguments": None}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"path"'}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"path": "b"}'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ': "a"}'}}]},
        {"finish": "tool_calls"},
    )
    reply = ask(tools=[READ])[-1]
    assert reply.tool_calls == (
        ToolCall("a", "read_file", '{"path": "a"}'),
        ToolCall("b", "write_file", '{"path": "b"}'),
    )


def test_calls_that_share_an_index_are_told_apart_by_their_id(chat_server, ask):
    chat_server.will_stream(
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}]},
        {"finish": "tool_calls"},
    )
    assert [call.name for call in ask(tools=[READ])[-1].tool_calls] == ["f", "g"]


def test_a_call_without_an_id_gets_one(chat_server, ask):
    chat_server.will_stream(
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, "function": {"name": "g", "arguments": "{}"}}]},
        {"finish": "tool_calls"},
    )
    assert [call.id for call in ask(tools=[READ])[-1].tool_calls] == ["call_0", "call_1"]


def test_arguments_that_are_no_json_are_kept_and_sent_back_as_json(chat_server, ask):
    chat_server.will_call(("a", "read_file", '{"path": '))
    call = ask(tools=[READ])[-1].tool_calls[0]
    assert call.arguments == '{"path": '
    chat_server.will_say("ok")
    ask([*ASK, ChatMessage("assistant", "", (call,)), ChatMessage("tool", "no JSON", tool_call_id="a")])
    sent = chat_server.requests[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert sent == '{"malformed_arguments":"{\\"path\\": "}'


def test_a_known_model_has_a_price(chat_server, ask):
    chat_server.will_stream({"content": "hi"}, {"finish": "stop"}, {"usage": [1_000_000, 0]})
    assert ask(name="openai/gpt-4o-mini")[-1].usage.cost_usd == pytest.approx(0.15)


def test_the_price_of_a_million_tokens_is_that_by_which_calls_are_counted():
    assert price_of("openai/gpt-4o-mini") == (0.15, 0.6)
    assert price_of("openai/tiny") is None


def test_an_answer_that_hits_the_providers_limit_says_so(chat_server, ask):
    chat_server.will_stream({"content": "half of"}, {"finish": "length"})
    assert ask()[-1].cut_off


def test_half_a_surrogate_pair_is_replaced_and_two_halves_are_joined(chat_server, ask):
    chat_server.will_stream({"content": "a\ud83d"}, {"content": "\ude00 \ud800"}, {"finish": "stop"})
    *parts, reply = ask([ChatMessage("user", "lone \udc80 half")])
    assert reply.text == "a\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"
    "".join(part.text for part in parts).encode()
    assert chat_server.requests[0]["messages"][0]["content"] == "lone \N{REPLACEMENT CHARACTER} half"


def test_a_refused_key_is_one_sentence_without_the_key(chat_server, ask):
    chat_server.will_fail(401, "Incorrect API key provided: sk-secret-key-0123.")
    with pytest.raises(ModelError, match="did not accept the key; set") as caught:
        ask()
    assert "sk-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not caught.value.retryable
    assert len(chat_server.requests) == 1


def test_too_many_requests_are_made_again_and_go_through(chat_server, ask):
    chat_server.will_fail(429, "slow down")
    chat_server.will_fail(500, "oops")
    chat_server.will_say("there")
    assert ask()[-1].text == "there "
    assert len(chat_server.requests) == 3


def test_a_failure_that_does_not_pass_is_told_after_the_retries(chat_server, ask):
    for _ in range(3):
        chat_server.will_fail(500, "oops")
    with pytest.raises(ModelError, match=r"the server of openai/tiny failed; .*it said: oops") as caught:
        ask(retries=2)
    assert caught.value.retryable
    assert len(chat_server.requests) == 3


def test_a_model_that_does_not_exist_is_named_with_its_address(chat_server, ask):
    chat_server.will_fail(404, "The model `tiny` does not exist")
    with pytest.raises(
        ModelError, match=rf"no model openai/tiny was found at {chat_server.base}.*config set model.name"
    ):
        ask()


def test_a_conversation_that_is_too_long_is_named_so(chat_server, ask):
    chat_server.will_fail(
        400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"
    )
    with pytest.raises(ModelError, match="longer than openai/tiny takes"):
        ask()


def test_a_broken_chunk_after_some_text_is_an_error_and_is_not_asked_again(chat_server):
    chat_server.will_stream({"content": "Hel"}, '{"id": "x", "cho')
    parts = []
    client = LiteLLMClient("openai/tiny", api_key="k", api_base=chat_server.base, backoff_s=0.01)
    with pytest.raises(ModelError, match="stopped in the middle of its answer"):
        parts.extend(client.stream(ASK))
    assert parts == [TextPart("Hel")]
    assert len(chat_server.requests) == 1


def test_a_broken_chunk_before_any_text_is_asked_again(chat_server, ask):
    chat_server.will_stream('{"id": "x", "cho')
    chat_server.will_say("fine")
    assert ask()[-1].text == "fine "


def test_a_stream_that_ends_before_the_answer_is_whole_is_an_error(chat_server, ask):
    chat_server.will_stream({"content": "The answer is"}, done=False)
    with pytest.raises(ModelError, match="stopped in the middle of its answer"):
        ask(retries=0)


def test_a_page_of_html_is_no_answer(chat_server, ask):
    chat_server.will_return("<html>Welcome</html>")
    with pytest.raises(ModelError, match="stopped in the middle of its answer"):
        ask(retries=0)


@pytest.mark.parametrize("drip", [False, True], ids=["silent", "comments only"])
def test_a_server_that_hangs_is_left_after_the_time_limit(chat_server, ask, drip):
    chat_server.will_hang(drip=drip)
    with pytest.raises(ModelError, match="did not answer within") as caught:
        ask(timeout_s=0.4)
    assert caught.value.retryable


def test_silence_within_an_answer_has_a_limit_of_its_own(chat_server, ask):
    chat_server.will_hang({"content": "Well"})
    with pytest.raises(ModelError, match="did not answer within"):
        ask(timeout_s=100, idle_s=0.3)


def test_a_reader_that_stops_early_stops_the_stream(chat_server):
    chat_server.will_hang({"content": "one"}, {"content": "two"})
    parts = LiteLLMClient("openai/tiny", api_key="k", api_base=chat_server.base).stream(ASK)
    assert next(parts) == TextPart("one")
    parts.close()
    with pytest.raises(StopIteration):
        next(parts)


def test_a_server_that_is_not_there_is_named(ask):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    client = LiteLLMClient("openai/tiny", api_key="k", api_base=base, retries=1, backoff_s=0.01)
    with pytest.raises(
        ModelError, match=rf"from openai/tiny at {base}; check .* that the server runs"
    ) as caught:
        list(client.stream(ASK))
    assert caught.value.retryable


def test_a_name_without_a_provider_is_told_how_to_write_one():
    with pytest.raises(ModelError, match=r"does not name a provider; write PROVIDER/NAME"):
        list(LiteLLMClient("gpt-of-my-dreams").stream(ASK))


@pytest.mark.parametrize(
    ("name", "variable"),
    [("openai/gpt-4o-mini", "OPENAI_API_KEY"), ("anthropic/claude-x", "ANTHROPIC_API_KEY")],
)
def test_without_a_key_the_error_names_the_variable_to_set(monkeypatch, name, variable):
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match=f"no key was found for {name}; set .*{variable}"):
        list(LiteLLMClient(name).stream(ASK))


def test_a_server_of_ones_own_needs_no_key(chat_server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat_server.will_say("free")
    parts = list(LiteLLMClient("openai/tiny", api_base=chat_server.base).stream(ASK))
    assert parts[-1].text == "free "


def test_texts_are_embedded_in_order(chat_server):
    chat_server.embeds(2, lambda text: [float(text.strip() or -1), 0.5])
    vectors = embed_texts("openai/small", ["2", "1", " "], api_base=chat_server.base, api_key="k")
    assert vectors == [[2.0, 0.5], [1.0, 0.5], [-1.0, 0.5]]


def test_an_embedding_that_is_refused_is_a_model_error(chat_server):
    chat_server.will_fail(401, "no")
    with pytest.raises(ModelError, match="did not accept the key"):
        embed_texts("openai/small", ["a"], api_base=chat_server.base, api_key="k")


def test_an_embedding_leaves_the_callers_event_loop_alone(chat_server):
    chat_server.embeds(2, lambda text: [1.0])

    async def embed():
        embed_texts("openai/small", ["a"], api_base=chat_server.base, api_key="k")
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(embed()) == set()


def test_an_embedding_leaves_no_event_loop_where_there_was_none(chat_server, monkeypatch):
    chat_server.embeds(2, lambda text: [1.0])
    made = asyncio.DefaultEventLoopPolicy()
    monkeypatch.setattr(asyncio, "get_event_loop", made.get_event_loop)
    embed_texts("openai/small", ["a"], api_base=chat_server.base, api_key="k")
    assert made._local._loop is None


def test_an_env_file_in_the_current_directory_does_not_redirect_the_key(tmp_path, chat_server):
    """litellm would read it where no script runs, and take the address for a key from it."""
    (tmp_path / ".env").write_text(
        f"OPENAI_BASE_URL={chat_server.base}\nOPENAI_API_BASE={chat_server.base}\n"
    )
    code = (
        "import os\nfrom agentx.synthesis.model.litellm_client import price_of\nprice_of('openai/gpt-4o-mini')\n"
        "print(os.environ.get('OPENAI_BASE_URL'), os.environ.get('OPENAI_API_BASE'))"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None None\n"
