"""The trust store: private files that nobody else can have written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.settings import read_settings
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.trust.store import Store, StoreUnusable
from agentx.trust.trust import Trust
from agentx.trust.trusted_items import of_schedule

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "state")
    made.write("one", b"content")
    return made


def record(user):
    (found,) = (user.state_dir / "trust").glob("workspace-*.json")
    return found


def test_what_is_kept_is_private_and_read_again(store, tmp_path):
    """Directory 0700, file 0600, and the content comes back."""
    assert store.read("one") == b"content"
    assert (tmp_path / "state" / "trust").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state" / "trust" / "one").stat().st_mode & 0o777 == 0o600
    assert store.names() == ["one"]
    assert store.remove("one")
    assert not store.remove("one")
    assert store.read("one") is None


def test_a_store_that_is_not_there_is_empty(tmp_path):
    """Nothing is made by looking."""
    store = Store(tmp_path / "none")
    assert (store.read("one"), store.names(), store.remove("one")) == (None, [], False)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("place", ["state", "state/trust", "state/trust/one"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_can_write_is_ignored_with_a_sentence(store, tmp_path, place, mode):
    """The directory above counts as well: whoever writes it can put another store in this one's place."""
    (tmp_path / place).chmod((tmp_path / place).stat().st_mode | mode)
    with pytest.raises(StoreUnusable, match="Other users can write"):
        store.read("one")


@pytest.mark.parametrize("name", ["trust", "trust/one"])
def test_a_link_is_not_followed(store, tmp_path, name):
    """Neither in place of the directory nor of a file."""
    place = tmp_path / "state" / name
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnusable):
        store.read("one")


def test_a_pipe_in_place_of_a_record_is_refused_at_once(store, tmp_path):
    """Reading a FIFO would wait for ever."""
    (tmp_path / "state" / "trust" / "one").unlink()
    os.mkfifo(tmp_path / "state" / "trust" / "one", 0o600)
    with pytest.raises(StoreUnusable):
        store.read("one")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("place", ["state", "state/trust", "state/trust/one"])
def test_what_belongs_to_another_user_is_ignored(store, tmp_path, place):
    """Two users of a machine cannot trust for each other."""
    os.chown(tmp_path / place, 12_345, 12_345)
    with pytest.raises(StoreUnusable, match="belongs to another user"):
        store.read("one")


def test_a_loose_umask_does_not_make_a_store_that_is_refused(tmp_path):
    """Where the daemon made the state directory with a umask of 002, it is tightened at the first word of trust."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o775)
    Store(tmp_path / "state").write("one", b"x")
    assert Store(tmp_path / "state").read("one") == b"x"


@pytest.mark.parametrize("content", [b"", b'{"path": "/x"', b"\xff\xfe", b"[]", b'{"path": 1}'])
def test_a_torn_record_restricts_and_can_be_made_again(user, root, why, content):
    """A record that cannot be read says nothing."""
    record(user).write_bytes(content)
    assert "is damaged; `agentx trust` creates it again" in why(root)
    Trust.read(root, user).grant("trusted")
    assert why(root) == ""


def test_a_state_directory_that_cannot_be_written_leaves_a_new_workspace_to_its_process(tmp_path, user):
    """It is said so; the process that made the workspace works on, the next one finds it restricted."""
    user.state_dir.write_text("in the way")
    with Workspace.create(tmp_path / "task", settings=user) as ws:
        assert ws.restricted == ""
        assert "trusted by the process that made it alone" in " ".join(ws.engine.write_path.notes)
    with Workspace.open(tmp_path / "task", settings=user) as ws:
        assert "cannot be used" in ws.restricted


def test_without_a_home_nothing_is_trusted_and_reading_settings_works(tmp_path, monkeypatch):
    """A container's user may be in no user database."""
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    settings = read_settings({"PATH": os.environ["PATH"]})
    assert settings.state_dir == Path()
    with Workspace.create(tmp_path / "task", settings=settings) as ws:
        assert ws.restricted == ""
    with Workspace.open(tmp_path / "task", settings=settings) as ws:
        assert "The home directory is unknown" in ws.restricted


def test_a_relative_state_directory_is_refused(monkeypatch, root, tmp_path):
    """Seen from a clone it could be the clone's own."""
    monkeypatch.chdir(tmp_path)
    settings = read_settings({"AGENTX_STATE_DIR": "state"})
    assert "AGENTX_STATE_DIR is 'state'" in Trust.read(root, settings).why_restricted()


def test_two_processes_that_add_to_a_record_lose_nothing(user, root):
    """Schedules that are set at once are trusted, all of them."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom agentx.settings import Settings\nfrom agentx.trust.trusted_items import of_schedule\n"
        "from agentx.storage.events.schedule_events import ScheduleSet\nfrom agentx.trust.trust import Trust\n"
        "trust = Trust.read(Path(sys.argv[1]), Settings(state_dir=Path(sys.argv[2])))\n"
        "for n in range(20):\n    trust.keep(of_schedule(ScheduleSet(id=f'{sys.argv[3]}{n}', cron='* * * * *')))\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(root), str(user.state_dir), name], env=environ)
        for name in "ab"
    ]
    assert [process.wait() for process in running] == [0, 0]
    trust = Trust.read(root, user)
    for name in "ab":
        for number in range(20):
            trust.require_item(of_schedule(ScheduleSet(id=f"{name}{number}", cron="* * * * *")))
