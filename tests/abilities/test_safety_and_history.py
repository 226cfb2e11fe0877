"""What keeps a workspace safe, and its history: secrets, approvals, trust, purge, damage, copies, earlier moments."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentx import AgentXError, Workspace
from tests.abilities.conftest import CommandLine

RULE = "Never create a setup.cfg file."
GITHUB = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
MADE = "cfg.json"


def write(agentx, path, content, ok=True):
    return agentx("tool", "write_file", f"path={path}", "content=-", stdin=content, ok=ok)


def bare(folder):
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    return folder


def clone(agentx, remote, folder):
    subprocess.run(["git", "clone", "-q", str(remote), str(folder)], check=True)
    return agentx.at(folder)


def everything(root):
    """All bytes of a workspace, with its Git objects unpacked."""
    plain = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    done = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=root, capture_output=True, check=True
    )
    return plain + done.stdout


# --- a workspace that all tests below may read --------------------------------------------------------


@pytest.fixture(scope="module")
def made(programs, runtime, tmp_path_factory):
    """A workspace with a rule, a file in three versions, a moved file and an item that was edited; not to be changed."""
    folder = tmp_path_factory.mktemp("history")
    environ = {**runtime, "AGENTX_NO_SERVER": "1", "AGENTX_STATE_DIR": str(folder / "state")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTX_STATE_DIR", environ["AGENTX_STATE_DIR"])
        with Workspace.create(folder / "task", title="A task") as ws:
            ws.say(RULE)
            ws.tools.write_file("a.md", "One.\n")
            note = ws.remember("knowledge", "Prices are kept in cents.")
            then = ws.state.seq
            ws.tools.write_file("a.md", "Two.\n")
            ws.edit_memory(note.id, "Prices are kept in tenths of cents.")
            ws.tools.move_file("a.md", "docs/b.md")
            ws.say("Print on recycled paper from now on.")
    command = CommandLine(programs / "agentx", folder / "task", environ)
    command.then, command.note = then, note.id
    return command


@pytest.fixture
def copy(made, tmp_path):
    """The same workspace, to be changed; trusted."""
    shutil.copytree(made.cwd, tmp_path / "copy", symlinks=True)
    found = CommandLine(
        made.program,
        tmp_path / "copy",
        {**made.environ, "AGENTX_STATE_DIR": str(tmp_path / "copy-state")},
    )
    found("trust", "--yes")
    return found


# --- moments ------------------------------------------------------------------------------------------


def test_the_log_lists_events_with_who_and_what(made):
    """``log`` lists events in order, and with ``--type`` those of a type."""
    events = made("--json", "log", "--after", "0").lines
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    calls = made("--json", "log", "--type", "UserMessageSent").lines
    assert calls[0]["data"]["body"]["text"] == RULE


def test_a_difference_between_two_moments_names_files_and_memory(made):
    """``diff A B`` gives the changed files, moved ones as moved, with their lines, and the changed memory."""
    found = made.json("diff", made.then, "--patch")
    (file,) = found["files"]
    assert (file["what"], file["old_path"], file["path"]) == ("moved", "a.md", "docs/b.md")
    assert "-One.\n+Two.\n" in file["patch"]
    assert any("tenths of cents" in item["text"] for item in found["items"])


@pytest.mark.parametrize("option", ["list", "search", "context"])
def test_memory_of_an_earlier_moment_is_what_was_known_then(made, option):
    """``--as-of`` answers with what was known then: memory, search and context."""
    words = {
        "list": ["memory", "list", "--kind", "knowledge", "--as-of", made.then],
        "search": ["search", "how are prices kept", "--as-of", made.then],
        "context": ["context", "how are prices kept", "--as-of", made.then, "--no-deadline"],
    }
    text = made(*words[option]).out
    assert "kept in cents" in text
    assert "tenths" not in text


@pytest.mark.parametrize("moment", ["HEAD", "0s ago", "2999-01-01"])
def test_a_moment_can_be_a_commit_or_a_time(made, moment):
    """A moment is an event's number, a commit or a time."""
    assert made.json("diff", made.then, moment)["last"] == made.json("status")["events"]


def test_a_state_at_an_earlier_event_is_the_state_that_was(made):
    """``state_at`` computes the state of an earlier event from the history alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTX_STATE_DIR", made.environ["AGENTX_STATE_DIR"])
        with Workspace.open(made.cwd) as ws:
            assert ws.state_at(made.then).seq == made.then
            assert ws.state_at(ws.state.seq).digest == ws.state.digest
            assert ws.moment("HEAD") == ws.state.seq


def test_what_made_an_item_is_traced_to_the_users_sentence(made):
    """``bisect --item`` finds the event that made an item, and the user's sentence behind it."""
    item = next(one for one in made.json("memory", "list", "--kind", "constraint") if one["text"] == RULE)
    (step,) = made.json("bisect", "--item", item["id"])["steps"]
    assert step["causes"][0]["quote"] == RULE


def test_what_changed_a_file_is_found_through_its_moves(made):
    """``bisect --path --all`` gives every change of a file, oldest first, with commits, through moves."""
    steps = made.json("bisect", "--path", "docs/b.md", "--all")["steps"]
    seqs = [step["event"]["seq"] for step in steps]
    assert len(steps) == 3
    assert seqs == sorted(seqs)
    assert all(len(step["event"]["commit"]) == 40 for step in steps)


def test_an_earlier_version_is_restored_as_a_new_event(copy, made):
    """``restore PATH --at`` brings a file back, moved files too, and the history only grows."""
    before = (copy.cwd / "history.jsonl").read_bytes()
    copy("restore", ".", "--at", made.then)
    assert (copy.cwd / "artifacts/a.md").read_text() == "One.\n"
    assert not (copy.cwd / "artifacts/docs/b.md").exists()
    assert (copy.cwd / "history.jsonl").read_bytes().startswith(before)


def test_the_latest_change_is_undone_one_at_a_time(copy):
    """``undo`` takes back the latest change of the artifacts, and then the one before."""
    copy("undo")
    assert (copy.cwd / "artifacts/a.md").read_text() == "Two.\n"
    copy("undo")
    assert (copy.cwd / "artifacts/a.md").read_text() == "One.\n"


# --- damage -------------------------------------------------------------------------------------------


def test_a_sound_workspace_verifies(made):
    """``verify`` and ``doctor`` find nothing wrong in a sound workspace."""
    assert made("verify").code == 0
    assert made.json("doctor")["healthy"] is True


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_log_is_found_and_repaired_to_the_byte(copy, damage):
    """A history that was changed, cut or deleted is found by ``verify``, and ``repair`` restores it byte for byte."""
    file = copy.cwd / "history.jsonl"
    sound = file.read_bytes()
    if damage == "changed":
        file.write_bytes(sound.replace(b"setup.cfg", b"setup.cfx", 1))
    elif damage == "cut":
        file.write_bytes(b"".join(sound.splitlines(keepends=True)[:3]))
    else:
        file.unlink()
    assert copy("verify", ok=False).code == 1
    copy("repair")
    assert file.read_bytes() == sound
    assert copy("verify").code == 0


def test_a_damaged_line_is_never_committed(copy):
    """A write after damage first restores the log, so that no commit contains damage."""
    file = copy.cwd / "history.jsonl"
    sound = file.read_bytes()
    file.write_bytes(sound.replace(b"setup.cfg", b"setup.cfx", 1))
    write(copy, "c.md", "C.\n")
    assert file.read_bytes().startswith(sound)
    assert copy("verify").code == 0


def test_caches_can_be_deleted_at_any_time(copy):
    """Without ``.agentx`` everything is as before: the history is the only source of truth."""
    digest = copy.json("status")["digest"]
    shutil.rmtree(copy.cwd / ".agentx")
    assert copy.json("status")["digest"] == digest
    assert RULE in copy("context", "draft").out


# --- purge --------------------------------------------------------------------------------------------


def test_a_purge_removes_every_copy_and_the_chain_still_holds(copy):
    """``purge`` removes words from the log, memory, index and Git, and ``verify`` passes."""
    copy("say", "I live at Gartenweg 17, the yellow house behind the mill. Always write my address in full.")
    copy("search", "yellow house")
    seq = copy.events("UserMessageSent")[-1]["seq"]
    shown = copy("purge", "--event", seq, "--dry-run").out
    assert "Gartenweg" in shown
    assert b"Gartenweg" in everything(copy.cwd)
    copy("purge", "--event", seq, "--reason", "an address", "--yes")
    assert b"Gartenweg" not in everything(copy.cwd)
    purged = next(event for event in copy.events() if event["seq"] == seq)
    assert "data" not in purged
    assert copy("verify").code == 0
    assert "Gartenweg" not in copy("memory", "list", "--all").out


# --- copies -------------------------------------------------------------------------------------------


def test_a_workspace_is_pushed_cloned_and_pulled(copy, tmp_path):
    """``push`` makes a complete backup, a clone has the same state, and ``pull`` brings what came later."""
    remote = bare(tmp_path / "remote.git")
    copy("push", "--url", remote)
    other = clone(copy, remote, tmp_path / "clone")
    assert other.json("status")["digest"] == copy.json("status")["digest"]
    copy("say", "Never touch the file seeds.csv.")
    copy("push")
    other("pull")
    assert other.json("status")["digest"] == copy.json("status")["digest"]
    assert "seeds.csv" in other("context", "go on").out


def test_two_copies_that_diverged_are_never_overwritten(copy, tmp_path):
    """Neither ``push`` nor ``pull`` loses what two people did apart."""
    remote = bare(tmp_path / "remote.git")
    copy("push", "--url", remote)
    other = clone(copy, remote, tmp_path / "clone")
    other("say", "Mine.")
    copy("say", "Yours.")
    copy("push")
    before = (other.cwd / "history.jsonl").read_bytes()
    assert other("push", ok=False).code != 0
    assert other("pull", ok=False).code != 0
    assert (other.cwd / "history.jsonl").read_bytes() == before


@pytest.mark.xfail(strict=True, reason="two copies that diverged cannot be brought together")
def test_two_copies_that_diverged_are_merged(copy, tmp_path):
    """``pull --merge`` keeps the published history, and appends what was done apart behind it."""
    remote = bare(tmp_path / "remote.git")
    copy("push", "--url", remote)
    other = clone(copy, remote, tmp_path / "clone")
    other("say", "Never touch the file mine.csv.")
    copy("say", "Never touch the file yours.csv.")
    copy("push")
    assert other("pull", "--merge", ok=False).code == 0
    text = other("context", "go on").out
    assert "mine.csv" in text
    assert "yours.csv" in text


def test_a_fork_has_the_history_up_to_a_moment_and_goes_its_own_way(copy, made, tmp_path):
    """``fork --at`` makes a workspace with the history until then; it shares nothing with the first."""
    copy("fork", tmp_path / "fork", "--at", made.then)
    fork = copy.at(tmp_path / "fork")
    assert (fork.cwd / "artifacts/a.md").read_text() == "One.\n"
    before = copy.json("status")["digest"]
    write(fork, "a.md", "Fork.\n")
    assert copy.json("status")["digest"] == before
    assert (copy.cwd / "artifacts/docs/b.md").read_text() == "Two.\n"
    assert fork("verify").code == 0


# --- trust --------------------------------------------------------------------------------------------


def test_a_clone_runs_nothing_until_it_is_trusted(agentx, tmp_path):
    """What comes from elsewhere can be read, and runs no program before ``trust`` and after ``--revoke``."""
    agentx("config", "set", "checks.tests.command", "python -c 'raise SystemExit(0)'")
    write(agentx, "a.md", "A.\n")
    remote = bare(tmp_path / "remote.git")
    agentx("push", "--url", remote)
    other = clone(agentx, remote, tmp_path / "clone")
    assert other.json("status")["restricted"]
    assert other("check", "tests", ok=False).code != 0
    calls = [event["data"] for event in other.events("ToolCallExecuted")]
    assert not [call for call in calls if call["tool"] == "run_tests" and call["status"] == "SUCCEEDED"]
    assert "SystemExit" in other("trust", "--show").out
    assert other.json("status")["restricted"]
    other("trust", "--yes")
    assert not other.json("status")["restricted"]
    assert other("check", "tests").code == 0
    other("trust", "--revoke")
    assert other.json("status")["restricted"]
    assert other("check", "tests", ok=False).code != 0


def test_a_setting_that_was_changed_by_hand_ends_trust(agentx):
    """A program that came into ``agentx.toml`` behind the user's back is not run."""
    agentx("config", "set", "checks.tests.command", "python -m pytest -q")
    file = agentx.cwd / "agentx.toml"
    file.write_text(file.read_text().replace("python -m pytest -q", "echo stolen"))
    assert agentx.json("status")["restricted"]
    assert "stolen" not in agentx("check", ok=False).out


# --- secrets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"The token is {GITHUB}, keep it.",
        f"GITHUB_TOKEN={GITHUB}",
        f'{{"token": "{GITHUB}"}}',
        "DATABASE_URL=postgres://ann:hunter2secretpw@db.example.com/shop",
    ],
)
def test_a_secret_is_redacted_before_it_is_written(agentx, text):
    """A secret in a message or an output is redacted at the append: it is in no file of the workspace."""
    agentx("say", text)
    agentx(
        "record", "--role", "tool", "--tool", "Bash", "--command", "env", "--exit-code", "0", "-", stdin=text
    )
    found = everything(agentx.cwd)
    assert GITHUB.encode() not in found
    assert b"hunter2secretpw" not in found
    assert "redacted" in agentx.events("UserMessageSent")[-1]["data"]["body"]["text"]


def test_an_ordinary_text_keeps_all_of_its_words(agentx):
    """Nothing is redacted in a text without a secret."""
    text = "The password field comes third; see commit 3f2a91c0d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9 and order 4711-0815."
    agentx("say", text)
    assert agentx.events("UserMessageSent")[-1]["data"]["body"]["text"] == text


# --- approvals ----------------------------------------------------------------------------------------


def test_a_write_with_a_secret_waits_for_the_user(agentx):
    """A file with a secret waits, is written if the user approves, and counts once."""
    done = write(agentx, MADE, f'{{"token": "{GITHUB}"}}\n', ok=False)
    assert done.code == 3
    assert not (agentx.cwd / "artifacts" / MADE).exists()
    (call,) = agentx.json("status")["pending"]
    agentx("approve", call)
    agentx(
        "tool", "write_file", f"path={MADE}", "content=-", "--call", call, stdin=f'{{"token": "{GITHUB}"}}\n'
    )
    assert (agentx.cwd / "artifacts" / MADE).exists()
    assert agentx.json("status")["pending"] == []
    assert write(agentx, "again.json", f'{{"token": "{GITHUB}"}}\n', ok=False).code == 3


def test_a_call_that_the_user_denies_is_never_made(agentx):
    """``approve --deny`` ends a call that waits; the agent's repetition is denied."""
    write(agentx, MADE, f'{{"token": "{GITHUB}"}}\n', ok=False)
    (call,) = agentx.json("status")["pending"]
    agentx("approve", call, "--deny", "--reason", "use the key ring")
    (decided,) = agentx.events("ApprovalDecided")
    assert (decided["data"].get("approved", False), decided["actor"]) == (False, "user")
    again = agentx("tool", "write_file", f"path={MADE}", "content=x", "--call", call, ok=False)
    assert again.code != 0
    assert not (agentx.cwd / "artifacts" / MADE).exists()


# --- settings and processes ---------------------------------------------------------------------------


def test_a_setting_is_read_set_and_recorded(agentx):
    """``config get``, ``set`` and ``show`` read and change ``agentx.toml``, and an unknown name is refused."""
    agentx("config", "set", "checks.tests.command", "make test")
    assert agentx("config", "get", "checks.tests.command").out.strip() == "make test"
    assert "make test" in (agentx.cwd / "agentx.toml").read_text()
    assert "checks.tests.command" in agentx("config", "show").out
    assert agentx("config", "set", "checks.nothing.at.all", "1", ok=False).code != 0


def test_a_broken_settings_file_is_said_in_words(agentx):
    """A settings file that cannot be read is an error that names it, not a traceback."""
    agentx.write("agentx.toml", "[checks\n")
    done = agentx("status", ok=False)
    assert done.code != 0
    assert "agentx.toml" in done.err
    assert "Traceback" not in done.err


def test_several_processes_write_at_the_same_time(agentx):
    """Processes that write at once lose nothing, and the history stays one chain."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: write(agentx, f"{n}.md", f"{n}\n").code, range(4)))
    assert done == [0, 0, 0, 0]
    assert sorted(path.name for path in (agentx.cwd / "artifacts").glob("*.md")) == [
        f"{n}.md" for n in range(4)
    ]
    assert agentx("verify").code == 0


def test_an_open_workspace_sees_what_another_process_recorded(made, tmp_path, monkeypatch):
    """Two open workspaces of the same directory agree; a rule said in one holds in the other."""
    monkeypatch.setenv("AGENTX_STATE_DIR", str(tmp_path / "state"))
    with Workspace.create(tmp_path / "task") as first, Workspace.open(tmp_path / "task") as second:
        first.say(RULE)
        with pytest.raises(AgentXError):
            second.tools.write_file("setup.cfg", "x")
        assert first.state.digest == second.state.digest or second.state.seq <= first.state.seq
