"""`agentx import` and `agentx recap` on the command line: months of transcripts become a memory that a stranger recognises."""

import pytest

from agentx import Workspace
from tests.agentx.importing.claude_records import ROOT, Transcript

RULE = "From now on, never create a requirements.txt file."


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    made = (
        Transcript()
        .user(RULE)
        .says("Noted. Should I use MIT or Apache?")
        .user("go with Apache, the lawyers want it")
    )
    made.refuse("Bash", "don't run the integration tests, they are too slow", command="make integration")
    made.refuse("Bash", "no, not the slow tests", command="make integration")
    made.bash(
        "python -m pytest -q",
        "FAILED tests/test_pay.py::test_retry - assert 1 == 2\n1 failed in 0.1s",
        code=1,
    )
    made.write(f"{ROOT}/a.py", "x = 1\n").add(type="hologram")
    made.save(folder / ".claude/projects/-home-dev-shop/5e55.jsonl")
    return folder


def test_discover_lists_what_can_be_imported_and_how(call, home):
    done = call("import", "--discover")
    assert done.code == 0
    assert "shop" in done.out
    assert "2026-02-03" in done.out
    assert "agentx import claude-code" in done.out
    (found,) = call("import", "--discover", "--json").json["transcripts"]
    assert (found["host"], found["project"], found["began"][:10]) == ("claude-code", "shop", "2026-02-03")


def test_an_import_makes_the_workspace_and_says_what_it_read(call, home, tmp_path):
    done = call("import", "claude-code", "~/.claude/projects", "--into", tmp_path / "memory")
    assert done.code == 0, done
    assert "2 user messages" in done.out
    assert "1 hologram" in done.out
    assert f"agentx -C {tmp_path}/memory recap" in done.out.replace("\n", "")
    again = call(
        "import", "claude-code", home / ".claude/projects", "--into", tmp_path / "memory", "--json"
    ).json
    assert (again["added"], again["unchanged"]) == (0, 1)
    with Workspace.open(tmp_path / "memory") as ws:
        assert (ws.artifacts / "a.py").read_text() == "x = 1\n"


def test_recap_shows_the_users_own_sentences(call, home, tmp_path):
    call("import", "claude-code", "~/.claude/projects", "--into", tmp_path / "memory")
    shown = call("-C", tmp_path / "memory", "recap").out
    for title in (
        "Rules you gave",
        "What you ruled out",
        "What you decided",
        "Still failing",
        "What keeps coming back",
    ):
        assert title in shown
    assert "never create a requirements.txt file" in shown
    assert "don't run the integration tests" in shown
    assert "go with Apache" in shown
    assert "test_retry" in shown
    assert "You refused `make integration` (2×)" in shown
    assert "2026-02-03" in shown
    parts = {part["name"]: part for part in call("-C", tmp_path / "memory", "recap", "--json").json["parts"]}
    assert parts["rules"]["lines"][0]["text"].endswith("never create a requirements.txt file.")
    assert parts["rules"]["lines"][0]["session"].startswith("5e55105e")


def test_recap_shows_each_sentence_once_and_says_how_many_more(call, tmp_path):
    with Workspace.create(tmp_path / "ws") as ws:
        for number in range(30):
            ws.say(f"From now on, name the files of module{number} after its tables.")
        ws.say("From now on, name the files of module0 after its tables!")
    done = call("-C", tmp_path / "ws", "recap")
    rules = done.out.partition("Rules you gave")[2].partition("What keeps")[0]
    assert rules.count("module0 ") == 1
    assert "more: agentx memory list --kind constraint" in done.out
    assert len(done.out.splitlines()) < 60


def test_recap_of_nothing_says_so(call, tmp_path):
    Workspace.create(tmp_path / "ws").close()
    assert "Nothing was learned yet" in call("-C", tmp_path / "ws", "recap").out


def test_questions_and_news_rank_below_what_was_settled(call, home, tmp_path):
    made = (
        Transcript("9" * 36).says("Should I push the branch?").user("yes push it").says("Want me to merge?")
    )
    made.user("I did a rebase of the branch this morning on the old machine").says("Shall we squash?").user(
        "why would we squash it?"
    )
    made.save(tmp_path / "t/a.jsonl")
    call("import", "claude-code", tmp_path / "t", "--into", tmp_path / "memory")
    parts = {part["name"]: part for part in call("-C", tmp_path / "memory", "recap", "--json").json["parts"]}
    assert [line["text"] for line in parts["decisions"]["lines"]] == ["yes push it"]


def test_an_import_without_a_workspace_says_what_to_do(call, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("import", "claude-code", "~/.claude/projects")
    assert done.code == 2
    assert "--into" in done.err
