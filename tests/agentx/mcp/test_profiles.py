"""What the tools of each profile cost a host's prompt."""

import json
import re
from pathlib import Path

import pytest

from agentx.mcp.calls import answer
from agentx.mcp.catalogue import DEFAULT, MORE, PROFILES, compact, listed, schema_of, tools_of
from agentx.mcp.messages import McpRequest
from agentx.synthesis.language.tokens import count_tokens

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mcp.md"
ROW = re.compile(r"^\| `(\w+)` \|.*\| (\d+) \| ([\d,]+) \|$", re.MULTILINE)


def test_the_default_profile_has_eight_tools_of_at_most_1800_tokens():
    tools = [listed(tool) for tool in DEFAULT]
    names = ["context", "search", "remember", "settle", "check", "tasks", "history", "read_memory"]
    assert [tool["name"] for tool in tools] == names
    assert count_tokens(json.dumps(tools, indent=1)) <= 1_800  # however a host writes them


def test_the_docs_give_the_cost_of_each_profile(ws):
    cost = {}
    for profile in PROFILES:
        tools = answer(ws, McpRequest(kind="tools", profile=profile)).listed
        cost[profile] = (str(len(tools)), f"{count_tokens(compact(tools)):,}")
    assert cost == {name: (number, tokens) for name, number, tokens in ROW.findall(PAGE.read_text("utf-8"))}


def test_the_command_prints_what_a_profile_costs(call, task):
    done = call("mcp", "--tokens", "--json", "-C", task)
    found = {row["profile"]: row for row in done.json}
    assert found.keys() == set(PROFILES)
    assert found["default"]["tokens"] == count_tokens(compact([listed(tool) for tool in DEFAULT]))
    assert found["storage"]["tokens"] > found["default"]["tokens"]
    assert "write_file" in found["storage"]["tools"]


def test_every_profile_has_the_default_tools_and_all_has_every_tool():
    for profile in PROFILES:
        assert tools_of(profile)[: len(DEFAULT)] == DEFAULT
    assert set(tools_of("all")) == {*DEFAULT, *MORE}


@pytest.mark.parametrize(
    "tool", [tool for tool in (*DEFAULT, *MORE) if tool.arguments], ids=lambda tool: tool.name
)
def test_a_schema_says_the_type_of_each_argument(tool):
    """Some hosts refuse a schema without."""
    schema = schema_of(tool.arguments)
    assert schema["type"] == "object"
    assert all("type" in field for field in schema["properties"].values()), schema
