"""The workspace, its history and its memory: constraints, feedback, hot issues, summaries, search, context."""

import subprocess

import pytest

from agentx import AgentXError, Workspace

TESLA = "When writing about Tesla's future, never mention Elon Musk."
PYPROJECT = "You should never create a requirements.txt file; use pyproject.toml instead."
CACHE = (
    "I'm getting a strange bug related to caching, so for now, please add a @disable_cache decorator to any new "
    "data-fetching functions you write."
)


def git(agentx, *words):
    done = subprocess.run(["git", *words], cwd=agentx.cwd, capture_output=True, text=True, check=True)
    return done.stdout


def write(agentx, path, content, ok=True):
    return agentx("tool", "write_file", f"path={path}", "content=-", stdin=content, ok=ok)


def active(agentx, kind):
    return agentx.json("memory", "list", "--kind", kind)


@pytest.fixture
def tested(agentx):
    """A workspace with a test that fails until double.py is right; its settings name pytest as the tests' command."""
    agentx("config", "set", "checks.tests.command", "python -m pytest -q -p no:cacheprovider")
    write(agentx, "double.py", "def double(n):\n    return n + 1\n")
    write(
        agentx,
        "test_double.py",
        "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n",
    )
    return agentx


# --- the workspace ------------------------------------------------------------------------------------


def test_a_task_is_a_directory_that_is_a_git_repository_with_artifacts_and_a_history(agentx):
    """A workspace is a Git repository with ``artifacts/`` and ``history.jsonl``."""
    assert (agentx.cwd / ".git").is_dir()
    assert (agentx.cwd / "artifacts").is_dir()
    assert (agentx.cwd / "history.jsonl").is_file()
    assert git(agentx, "status", "--porcelain") == ""


def test_what_an_agent_writes_lies_in_artifacts(agentx):
    """``artifacts/`` contains every file that agents create or change."""
    write(agentx, "src/main.py", "print('hello')\n")
    assert (agentx.cwd / "artifacts/src/main.py").read_text() == "print('hello')\n"


def test_a_write_is_committed_by_itself_with_a_message_that_describes_it(agentx):
    """After a successful ``write_file`` the change is committed with a descriptive message."""
    before = int(git(agentx, "rev-list", "--count", "HEAD"))
    write(agentx, "letter.md", "Dear all,\n")
    assert int(git(agentx, "rev-list", "--count", "HEAD")) > before
    assert "letter.md" in git(agentx, "log", "-1", "--format=%B", "--", "artifacts/letter.md")
    assert git(agentx, "show", "HEAD:artifacts/letter.md") == "Dear all,\n"


def test_every_message_tool_call_and_result_is_one_json_object_in_the_history(agentx, script):
    """Each message, thought, tool call and result is appended to ``history.jsonl`` as one JSON object."""
    model = script(
        {
            "thought": "A note first.",
            "tool_calls": [{"name": "write_file", "arguments": {"path": "a.md", "content": "A.\n"}}],
        },
        {"answer": "Done."},
    )
    agentx("run", "Write a note.", "--model", model)
    types = [event["type"] for event in agentx.events()]
    for name in (
        "UserMessageSent",
        "AgentThoughtProcess",
        "ToolCallExecuted",
        "AgentMessageSent",
        "RunEnded",
    ):
        assert name in types
    call = agentx.events("ToolCallExecuted")[0]["data"]
    assert (call["tool"], call["status"]) == ("write_file", "SUCCEEDED")
    assert [event["seq"] for event in agentx.events()] == list(range(1, len(types) + 1))


def test_history_only_grows(agentx):
    """``history.jsonl`` is append-only: what was written stays as it is, byte for byte."""
    agentx("say", TESLA)
    before = (agentx.cwd / "history.jsonl").read_bytes()
    write(agentx, "a.md", "A.\n")
    agentx("undo")
    assert (agentx.cwd / "history.jsonl").read_bytes().startswith(before)


def test_a_changed_line_of_the_history_is_found(agentx):
    """The history is immutable: ``verify`` finds a line that was changed afterwards."""
    agentx("say", TESLA)
    assert agentx("verify").code == 0
    file = agentx.cwd / "history.jsonl"
    file.write_bytes(file.read_bytes().replace(b"Elon", b"Enol"))
    assert agentx("verify", ok=False).code == 1


@pytest.mark.parametrize(
    "tool", ["read_file", "write_file", "edit_file", "move_file", "delete_file", "list_directory"]
)
def test_agents_work_through_storage_tools(agentx, tool):
    """Agents use ``read_file``, ``write_file``, ``list_directory`` and their like, and never Git itself."""
    write(agentx, "a.md", "One line.\n")
    arguments = {
        "read_file": ["path=a.md"],
        "write_file": ["path=b.md", "content=Two."],
        "edit_file": ["path=a.md", "old=One", "new=Another"],
        "move_file": ["path=a.md", "to=c.md"],
        "delete_file": ["path=a.md"],
        "list_directory": [],
    }
    done = agentx("tool", tool, *arguments[tool])
    if tool in {"read_file", "list_directory"}:
        assert {"read_file": "One line.", "list_directory": "a.md"}[tool] in done.out
    assert agentx.events("ToolCallExecuted")[-1]["data"]["tool"] == tool
    assert git(agentx, "status", "--porcelain") == ""


def test_a_directory_of_hundreds_of_files_is_listed_page_by_page(agentx):
    """``list_directory`` lets an agent explore a large workspace step by step, without all names at once."""
    for number in range(230):
        agentx.write(f"artifacts/data/{number:03}.csv", "1\n")
    first = agentx("tool", "list_directory", "path=data").out
    assert "000.csv" in first
    assert "229.csv" not in first
    assert "229.csv" in agentx("tool", "list_directory", "path=data", "page=3").out


def test_a_long_file_is_read_by_outline_and_by_lines(agentx):
    """A file of thousands of lines can be worked with although it fits no context window."""
    text = "".join(f"def function_{number}():\n    return {number}\n\n\n" for number in range(600))
    write(agentx, "services.py", text)
    outline = agentx("tool", "read_file", "path=services.py").out
    assert "function_3" in outline
    assert len(outline) < len(text)
    part = agentx("tool", "read_file", "path=services.py", "start_line=401", "end_line=402").out
    assert "function_100" in part
    assert "function_99()" not in part


def test_a_person_can_edit_beside_the_agents(agentx):
    """A person's own edit of an artifact becomes a part of the history."""
    write(agentx, "a.md", "One.\n")
    agentx.write("artifacts/a.md", "Mine.\n")
    agentx("status")
    changed = agentx.events("ArtifactChanged")[-1]
    assert changed["data"]["changes"][0]["path"] == "a.md"
    assert git(agentx, "show", "HEAD:artifacts/a.md") == "Mine.\n"


# --- constraints and feedback -------------------------------------------------------------------------


def test_a_constraint_limited_to_a_topic_is_kept_and_shown(agentx):
    """ "When writing about Tesla's future, never mention Elon Musk" is kept as a lasting constraint."""
    agentx("say", TESLA)
    (item,) = active(agentx, "constraint")
    assert item["text"] == TESLA
    assert TESLA in agentx("context", "draft the outlook on Tesla").out


def test_a_constraint_on_a_topic_is_enforced_where_the_text_shows_the_topic(agentx):
    """A text on Tesla that names Elon Musk is denied; one without the name is written."""
    agentx("say", TESLA)
    denied = write(agentx, "tesla.md", "# Tesla's future\n\nElon Musk promised more cars.\n", ok=False)
    assert denied.code == 4
    assert not (agentx.cwd / "artifacts/tesla.md").exists()
    assert write(agentx, "tesla.md", "# Tesla's future\n\nMore cars.\n").code == 0


@pytest.mark.xfail(strict=True, reason="a rule limited to a topic is enforced as a total ban")
def test_a_constraint_on_a_topic_leaves_texts_on_other_topics_alone(agentx):
    """A text that does not show the topic of the rule may name Elon Musk."""
    agentx("say", TESLA)
    assert write(agentx, "spacex.md", "# Rockets\n\nElon Musk founded SpaceX.\n", ok=False).code == 0


def test_feedback_becomes_a_permanent_rule_for_all_file_operations(agentx):
    """ "You should never create a requirements.txt file; use pyproject.toml instead" holds for each later write."""
    agentx("say", PYPROJECT)
    denied = write(agentx, "requirements.txt", "flask\n", ok=False)
    assert denied.code == 4
    assert PYPROJECT in denied.out + denied.err
    assert write(agentx, "pyproject.toml", "[project]\nname = 'x'\n").code == 0
    agentx("tool", "write_file", "path=old.txt", "content=flask")
    assert agentx("tool", "move_file", "path=old.txt", "to=requirements.txt", ok=False).code == 4


def test_a_rule_with_a_reason_is_kept_until_further_notice(agentx):
    """The rule about ``@disable_cache`` is kept although its sentence begins with a reason."""
    agentx("say", CACHE)
    (item,) = active(agentx, "constraint")
    assert "@disable_cache" in item["text"]
    assert item["text"] in agentx("context", "write a function").out


def test_a_new_data_fetching_function_without_the_decorator_is_denied(agentx):
    """A new data-fetching function must have ``@disable_cache``; with it, it is written."""
    agentx("say", CACHE)
    bare = "def fetch_user_data(id):\n    return requests.get(f'/users/{id}')\n"
    assert write(agentx, "services.py", bare, ok=False).code == 4
    assert write(agentx, "services.py", f"@disable_cache\n{bare}").code == 0


def test_constraints_persist_across_processes_and_runs(agentx, script):
    """A constraint holds in every later interaction: each agent's prompt has it."""
    agentx("say", TESLA)
    agentx("run", "Write something.", "--model", script({"expect": [TESLA], "answer": "Done."}))
    agentx("run", "Write more.", "--model", script({"expect": [TESLA], "answer": "Done."}))


def test_only_the_users_own_words_make_a_rule(agentx):
    """What an agent says or writes becomes no constraint."""
    agentx("record", "--role", "assistant", "Never touch the file seeds.csv.", "--as", "helper")
    write(agentx, "rules.md", "Always delete the tests before a release.\n")
    assert active(agentx, "constraint") == []


# --- hot issues ---------------------------------------------------------------------------------------


def test_a_failing_test_is_a_hot_issue_until_the_same_test_passes(tested):
    """A failed unit test becomes a hot issue, stays in each context, and is over when the test passes."""
    assert tested("tool", "run_tests", ok=False).code == 1
    (issue,) = active(tested, "hot_issue")
    assert "test_double" in issue["text"]
    for message in ("write a poem", "go on"):
        assert "test_double" in tested("context", message).out
    write(tested, "double.py", "def double(n):\n    return n * 2\n")
    assert tested("tool", "run_tests").code == 0
    assert active(tested, "hot_issue") == []
    assert "Open problems" not in tested("context", "go on").out


FAILED = "FAILED tests/test_new.py::test_new_feature - AssertionError\n1 failed in 0.01s\n"


def test_a_failing_test_that_an_agent_reports_is_a_hot_issue(agentx):
    """A ``ToolCallExecuted`` of a test runner with the status FAILED opens a hot issue."""
    agentx(
        "record",
        "--role",
        "tool",
        "--tool",
        "Bash",
        "--command",
        "pytest -q",
        "--exit-code",
        "1",
        "-",
        stdin=FAILED,
    )
    (issue,) = active(agentx, "hot_issue")
    assert "test_new_feature" in issue["text"]


@pytest.mark.xfail(strict=True, reason="a tool that is a test runner by its name is not yet taken for one")
def test_a_failed_call_of_run_unit_tests_tool_is_a_hot_issue(agentx):
    """``run_unit_tests_tool`` with the status FAILED opens a hot issue without any declaration."""
    agentx(
        "record", "--role", "tool", "--tool", "run_unit_tests_tool", "--status", "failed", "-", stdin=FAILED
    )
    (issue,) = active(agentx, "hot_issue")
    assert "test_new_feature" in issue["text"]


def test_rule_and_hot_issue_stand_in_the_context_of_the_next_step(tested):
    """On the next cycle the context holds both the rule about the decorator and the failing test."""
    tested("say", CACHE)
    tested("tool", "run_tests", ok=False)
    text = tested("context", "what next?").out
    assert "@disable_cache" in text
    assert "test_double" in text


def test_the_rule_stays_when_the_hot_issue_is_over(tested):
    """After the fix the issue is gone, and the rule about the decorator remains active."""
    tested("say", CACHE)
    tested("tool", "run_tests", ok=False)
    write(tested, "double.py", "def double(n):\n    return n * 2\n")
    tested("tool", "run_tests")
    assert active(tested, "hot_issue") == []
    assert len(active(tested, "constraint")) == 1


# --- quality ------------------------------------------------------------------------------------------


def test_a_linter_gives_structured_feedback(agentx):
    """A linting tool is pointed at the artifacts, and what it finds comes back as structure."""
    write(agentx, "a.py", "import os\n")
    agentx("config", "set", "checks.lint.command", "python -m ruff check --isolated a.py")
    done = agentx("tool", "run_lint", ok=False)
    assert done.code == 1
    assert "F401" in done.out + done.err
    assert "F401" in active(agentx, "hot_issue")[0]["text"] + agentx("context", "go on").out


def test_a_build_is_checked(agentx):
    """A build tool tells whether the artifacts can be built."""
    agentx("config", "set", "checks.build.command", "python -m compileall -q .")
    write(agentx, "a.py", "print(\n")
    assert agentx("tool", "run_build", ok=False).code == 1
    write(agentx, "a.py", "print()\n")
    assert agentx("tool", "run_build").code == 0


def test_spelling_of_a_document_is_checked(agentx):
    """A document is checked for spelling errors."""
    write(agentx, "letter.md", "# Letter\n\nWe recieve your mail.\n")
    done = agentx("tool", "check_document", "path=letter.md", ok=False)
    assert done.code == 1
    assert "recieve" in done.out + done.err


# --- memory: index, summaries, context ----------------------------------------------------------------


def test_a_written_file_can_be_searched_at_once(agentx):
    """When ``write_file`` succeeds, the content is indexed for search."""
    write(agentx, "api/services.py", "def charge_card(amount):\n    '''Take a payment from a card.'''\n")
    hits = agentx.json("search", "payment from a card")["hits"]
    assert any(hit.get("path") == "api/services.py" for hit in hits)


def test_search_finds_the_passage_of_a_long_file(agentx):
    """``search_memory`` returns the relevant snippet of a long file, without the file."""
    text = "".join(f"def helper_{n}():\n    return {n}\n\n\n" for n in range(300))
    write(agentx, "services.py", text + "def load_user_profile(id):\n    '''Fetch user data by id.'''\n")
    out = agentx("tool", "search_memory", "query=functions related to user data", "k=3").out
    assert "load_user_profile" in out
    assert len(out) < len(text) / 2


def test_an_unknown_directory_is_summarized_with_the_rules_that_apply(agentx):
    """``summarize_directory_purpose`` describes a directory and names the active rules for it."""
    write(agentx, "src/api/__init__.py", '"""Requests to the service of customers."""\n')
    write(agentx, "src/api/services.py", "def users():\n    return []\n")
    agentx("say", CACHE)
    out = agentx("tool", "summarize_directory_purpose", "path=src/api").out
    assert "customers" in out
    assert "@disable_cache" in out


def test_decisions_of_a_long_conversation_are_summarized(agentx):
    """``summarize_decisions`` lists rules, rejections, decisions and open tasks."""
    agentx("say", PYPROJECT)
    agentx("memory", "add", "We print on recycled paper.", "--kind", "decision")
    out = agentx("tool", "summarize_decisions").out
    assert "requirements.txt" in out
    assert "recycled paper" in out


def test_the_context_holds_all_constraints_and_hot_issues_and_what_is_relevant(tmp_path):
    """``get_relevant_context(message)`` holds every active constraint and hot issue, and a search for the message."""
    with Workspace.create(tmp_path / "task", title="Outlook") as ws:
        ws.say(TESLA)
        ws.say(PYPROJECT)
        ws.tools.write_file("retries.md", "# Payments\n\nPayments were retried twice in March.\n")
        context = ws.get_relevant_context("how often were payments retried?", max_tokens=4000)
        assert context.tokens <= 4000
        for part in (TESLA, PYPROJECT, "retried twice in March"):
            assert part in context.text


def test_a_context_keeps_within_its_budget(tmp_path):
    """However much is remembered, a context keeps within ``max_tokens`` and names what it left out."""
    with Workspace.create(tmp_path / "task") as ws:
        for number in range(40):
            ws.remember("constraint", f"Always sort table {number} by date, newest first.")
        context = ws.get_relevant_context("draft", max_tokens=300)
        assert context.tokens <= 300
        assert context.omitted


def test_memory_is_rebuilt_from_the_history(agentx):
    """The history can rebuild the memory: the same state, to the byte, without a model."""
    agentx("say", TESLA)
    write(agentx, "a.md", "A.\n")
    before = agentx.json("status")["digest"]
    agentx("rebuild")
    assert agentx.json("status")["digest"] == before


def test_every_event_is_on_the_bus(tmp_path):
    """Subscribers hear ``UserMessageSent``, ``ToolCallExecuted`` and the others as they happen, in order."""
    heard = []
    with Workspace.create(tmp_path / "task") as ws:
        ws.on("UserMessageSent", lambda event: heard.append((event.seq, event.type)))
        ws.on("ToolCallExecuted", lambda event: heard.append((event.seq, event.type)))
        ws.say("Hello.")
        ws.tools.write_file("a.md", "A.\n")
    assert [name for _, name in heard] == ["UserMessageSent", "ToolCallExecuted"]
    assert heard == sorted(heard)


def test_a_hostile_path_is_refused(tmp_path):
    """The storage tools reach nothing outside ``artifacts/``."""
    with Workspace.create(tmp_path / "task") as ws:
        for path in ("../outside.md", "/etc/passwd", ".git/config"):
            with pytest.raises(AgentXError):
                ws.tools.write_file(path, "x")
    assert not (tmp_path / "task" / "outside.md").exists()
