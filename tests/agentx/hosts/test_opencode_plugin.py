"""The plugin for opencode, called by Node as opencode calls it."""

import json
import shutil
import subprocess

import pytest

from agentx.hosts.setup.installing import opencode_plugin
from agentx.hosts.setup.project import make_beside
from agentx.settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

SESSION = """
import { AgentX } from %s
const sent = []
const hooks = await AgentX({ client: { session: { promptAsync: async (one) => sent.push(one) } }, directory: %s })
const id = { sessionID: "ses_1" }
const say = (text) => hooks["chat.message"](id, { parts: [{ type: "text", text }] })
const told = async () => {
  const output = { system: [] }
  await hooks["experimental.chat.system.transform"](id, output)
  return output.system.join("\\n")
}
const before = async (tool, args) => {
  try {
    await hooks["tool.execute.before"]({ ...id, tool, callID: "c1" }, { args })
    return "runs"
  } catch (error) {
    return error.message
  }
}
await say("Never create a requirements.txt file. Never mention Elon Musk.")
const denied = await before("write", { filePath: "requirements.txt", content: "x" })
const allowed = await before("bash", { command: "ls" })
await hooks["tool.execute.after"](
  { ...id, tool: "bash", callID: "c1", args: { command: "python -m pytest -q" } },
  { title: "", output: "FAILED tests/test_pay.py::test_pay - assert 1 == 2\\n1 failed in 0.10s", metadata: { exit: 1 } },
)
await told()
await say("Go on.")
const problems = await told()
const part = { type: "text", sessionID: "ses_1", text: "Elon Musk decides." }
await hooks.event({ event: { type: "message.part.updated", properties: { part } } })
await hooks.event({ event: { type: "session.idle", properties: id } })
const env = { env: {} }
await hooks["shell.env"]({}, env)
console.log(JSON.stringify({ denied, allowed, problems, sent, env: env.env }))
"""


def run(program, folder, environ):
    (folder / "program.mjs").write_text(program)
    done = subprocess.run(
        ["node", str(folder / "program.mjs")], env=environ, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_rules_problems_and_the_stop_reach_opencode(server, place, project, tmp_path):
    settings = Settings(environ=place, cache_dir=tmp_path / "no-models", state_dir=tmp_path / "state")
    make_beside(project, settings)
    (tmp_path / "agentx.mjs").write_text(opencode_plugin().replace("LIMIT_MS = 5000", "LIMIT_MS = 60000"))
    program = SESSION % (json.dumps(str(tmp_path / "agentx.mjs")), json.dumps(str(project)))
    found = run(program, tmp_path, {**place, "AGENTX_HOOK_WAIT_S": "30"})
    assert "Never create a requirements.txt file." in found["denied"]
    assert found["allowed"] == "runs"
    assert "tests/test_pay.py::test_pay" in found["problems"]
    (sent,) = found["sent"]
    assert "Never mention Elon Musk." in sent["body"]["parts"][0]["text"]
    assert sent["body"]["parts"][0]["synthetic"] is True
    assert found["env"] == {"AGENTX_RUN": "opencode"}


def test_a_hook_that_cannot_be_started_stops_nothing(project, tmp_path):
    plugin = opencode_plugin()
    line = next(line for line in plugin.splitlines() if line.startswith("const COMMAND"))
    (tmp_path / "agentx.mjs").write_text(plugin.replace(line, 'const COMMAND = ["/nonexistent"]'))
    program = SESSION % (json.dumps(str(tmp_path / "agentx.mjs")), json.dumps(str(project)))
    found = run(program, tmp_path, None)
    assert (found["denied"], found["allowed"], found["sent"]) == ("runs", "runs", [])
