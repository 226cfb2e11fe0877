"""The real proxy of LiteLLM in a process of its own, before a server that speaks OpenAI's protocol."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from agentx import Workspace
from tests.chat_server import serving

PYTHON = os.environ.get("PROXY_PYTHON") or sys.executable
"""An interpreter that has what `litellm[proxy]` brings."""

KEY = f"sk-{secrets.token_hex(32)}"
NEEDED = "import fastapi, orjson, backoff, apscheduler, litellm.proxy.proxy_server"

CONFIG = """
model_list:
  - model_name: small
    litellm_params: {{model: openai/small, api_base: "{base}", api_key: sk-local, max_retries: 0}}
general_settings:
  master_key: {key}
litellm_settings:
  callbacks: agentx_callback.handler
  num_retries: 0
  telemetry: false
"""


@pytest.fixture(scope="module")
def upstream():
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(tmp_path_factory, upstream):
    home = tmp_path_factory.mktemp("proxy")
    environ = {
        **os.environ,
        "AGENTX_NO_SERVER": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONPATH": os.pathsep.join([str(home), os.getcwd()]),
    }
    if subprocess.run(
        [PYTHON, "-W", "ignore", "-c", NEEDED], env=environ, capture_output=True, check=False
    ).returncode:
        pytest.skip("litellm[proxy] is not installed: set PROXY_PYTHON to an interpreter that has it")
    Workspace.create(home / "w").close()
    (home / "agentx_callback.py").write_text(
        "from agentx.orchestrators.litellm_proxy import proxy_callback\n"
        f"handler = proxy_callback({str(home / 'w')!r}, agent='helper')\n"
    )
    (home / "config.yaml").write_text(CONFIG.format(base=upstream.base, key=KEY))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-c", "from litellm import run_server; run_server()", "--config", "config.yaml"]
    with (home / "log").open("w") as log:
        program = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=home,
            env=environ,
            stdout=log,
            stderr=log,
        )
    try:
        _await_ready(program, f"http://127.0.0.1:{port}/health/liveliness", home / "log")
        yield home / "w", f"http://127.0.0.1:{port}"
    finally:
        program.terminate()
        program.wait(30)


pytestmark = pytest.mark.timeout(300)  # the proxy imports for half a minute on a loaded machine


def _await_ready(program, address, log):
    end = time.monotonic() + 250
    while time.monotonic() < end:
        assert program.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(log.read_text())


def ask(proxy, messages, session, **more):
    body = json.dumps({"model": "small", "messages": messages, **more}).encode()
    headers = {
        "content-type": "application/json",
        "x-litellm-session-id": session,
        "authorization": f"Bearer {KEY}",
    }
    request = urllib.request.Request(f"{proxy[1]}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def says(upstream, text, *calls, number=[0]):
    number[0] += 1
    message = {"role": "assistant", "content": text}
    if calls:
        function = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
        message["tool_calls"] = [
            {"id": f"c{number[0]}", "type": "function", "function": one} for one in function
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": f"r{number[0]}", "object": "chat.completion", "created": 1, "model": "small"}
    upstream.will_return(json.dumps({**body, "choices": [choice], "usage": usage}))


def told(proxy, session):
    wanted = {
        "UserMessageSent",
        "AgentMessageSent",
        "ToolCallRequested",
        "ToolCallExecuted",
        "HostRecordKept",
    }
    with Workspace.open(proxy[0]) as ws:
        return [event for event in ws.events() if event.type in wanted and event.run == session]


def user(text):
    return {"role": "user", "content": text}


def test_a_conversation_is_recorded_once_and_gets_the_context(proxy, upstream):
    says(upstream, "Understood.")
    messages = [{"role": "system", "content": "Help."}, user("Never use tabs.")]
    answer = json.loads(ask(proxy, messages, "one"))["choices"][0]["message"]
    says(upstream, "Done.")
    ask(proxy, [*messages, {"role": "assistant", "content": answer["content"]}, user("Write code.")], "one")
    assert [(one.type, one.actor) for one in told(proxy, "one")] == [
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
        ("UserMessageSent", "user"),
        ("AgentMessageSent", "agent:helper"),
    ]
    sent = upstream.requests[-1]["messages"]
    assert [one["role"] for one in sent] == ["system", "system", "user", "assistant", "user"]
    assert "Never use tabs." in sent[1]["content"]


def test_a_stream_is_recorded(proxy, upstream):
    upstream.will_say("All is well.")
    text = ask(proxy, [user("Tell me.")], "streamed", stream=True)
    assert "well." in text
    assert text.rstrip().endswith("[DONE]")
    (_, said) = told(proxy, "streamed")
    assert said.data.body.text == "All is well."


def test_an_answer_that_breaks_a_rule_is_refused_with_the_users_sentence(proxy, upstream):
    says(upstream, "Use Redis.")
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(proxy, [user("Never mention Redis in your answers.")], "refused")
    assert refused.value.code == 400
    assert "Never mention Redis" in refused.value.read().decode()
    (_, said) = told(proxy, "refused")
    assert said.data.broke


def test_a_stream_that_breaks_a_rule_ends_in_an_error(proxy, upstream):
    says(upstream, "Yes.")
    ask(proxy, [user("Never mention MongoDB in your answers.")], "cut")
    upstream.will_say("I say MongoDB here.")
    text = ask(proxy, [user("Which one?")], "cut", stream=True)
    assert "Never mention MongoDB" in text


def test_tool_calls_are_recorded_with_their_results_and_denied_by_the_gate(proxy, upstream):
    says(upstream, "", ("look", {"path": "a"}))
    first = [user("Look.")]
    message = json.loads(ask(proxy, first, "tools"))["choices"][0]["message"]
    call = {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]}
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "found"}
    says(upstream, "Found.")
    ask(proxy, [*first, call, result], "tools")
    events = told(proxy, "tools")
    assert [one.type for one in events] == [
        "UserMessageSent",
        "ToolCallRequested",
        "ToolCallExecuted",
        "AgentMessageSent",
    ]
    assert (events[2].data.tool, events[2].data.output.text) == ("look", "found")
    says(upstream, "", ("write_file", {"path": "requirements.txt", "content": "x"}))
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(proxy, [user("Never create a requirements.txt file.")], "denied")
    assert refused.value.code == 400
    assert told(proxy, "denied")[-1].data.status == "DENIED"


def test_a_failed_request_is_kept_as_nobodys_word(proxy, upstream):
    upstream.will_fail(400, "the model is gone", code="model_not_found")
    with pytest.raises(urllib.error.HTTPError):
        ask(proxy, [user("Hello.")], "failed")
    said, kept = told(proxy, "failed")
    assert (said.type, kept.data.sort) == ("UserMessageSent", "failed request")
    assert "the model is gone" in kept.data.body.text
