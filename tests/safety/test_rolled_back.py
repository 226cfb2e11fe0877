"""What a rejected attempt of an unsandboxed role changed is put back, so that the next one cannot be accepted for it."""

import os
import sys
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main

FLOW = """\
pipeline: one
files:
  style: {path: style.md, class: static}
  notes: {path: notes.md, class: append-only}
  report: {path: report.md}
roles:
  reporter:
    by: [python, p.py]
    sandbox: false
    attempts: 3
    reads: [{file: style}, {file: notes}]
    writes: [{file: report}]
stages:
  - {id: report, role: reporter}
"""
ACTS = {
    "a static file": "open('style.md', 'w').write('Other.')",
    "an append-only file": "open('notes.md', 'w').write('Other.')",
    "an addition": "open('notes.md', 'a').write('More.')",
    "a file of no class": "open('plain.md', 'w').write('Other.')",
    "a new file": "open('new.md', 'w').write('New.')",
    "a file in a new folder": "os.makedirs('a/b', exist_ok=True); open('a/b/new.md', 'w').write('New.')",
    "a removal": "os.path.exists('style.md') and os.remove('style.md')",
    "a rename": "os.path.exists('style.md') and os.rename('style.md', 'moved.md')",
    "the mode": "os.chmod('style.md', 0o755)",
    "a link": "os.path.lexists('style.md') and os.remove('style.md'); os.symlink('notes.md', 'style.md')",
    "a folder in its place": "os.path.isfile('style.md') and os.remove('style.md'); os.makedirs('style.md', exist_ok=True); open('style.md/x', 'w').write('x')",
    "a child process": "subprocess.run([sys.executable, '-c', \"open('style.md', 'w').write('Other.')\"])",
    "a shell": "subprocess.run('printf Other. > style.md', shell=True)",
    "no text": "open('style.md', 'wb').write(bytes(range(256)))",
}


def state(folder):
    return {
        str(one.relative_to(folder)): (one.is_symlink(), os.access(one, os.X_OK), one.read_bytes())
        for one in sorted(folder.rglob("*"))
        if one.is_file() or one.is_symlink()
    }


def run(root, act, flow=FLOW, times=2):
    folder = root.parent / "flow"
    folder.mkdir()
    (folder / "flow.yaml").write_text(flow)
    work = f"import os, subprocess, sys\nos.chdir({str(root / 'artifacts')!r})\n{act}\nprint('Text.')\n"
    (folder / "p.py").write_text(work)
    return [main(["-C", str(root), "pipeline", "run", str(folder / "flow.yaml")]) for _ in range(times)]


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "desk"
    with Workspace.create(root, title="Desk") as ws:
        for name in ("style", "notes", "plain"):
            ws.tools.write_file(f"{name}.md", f"{name}.\n")
    return root


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_no_attempt_is_accepted_for_what_an_earlier_one_changed(root, act, capsys):
    before = state(root / "artifacts")
    codes = run(root, act)
    out = " ".join("".join(capsys.readouterr()).split())
    assert 0 not in codes, out
    assert "was put back" in out
    after = state(root / "artifacts")
    after.pop("report.md", None)
    assert after == before


def test_the_configuration_is_put_back(root):
    config = Path(root / "agentx.toml")
    before = config.read_bytes()
    assert 0 not in run(root, f"open({str(config)!r}, 'wb').write({before + b'# more'!r})")
    assert config.read_bytes() == before


def test_one_that_keeps_to_its_file_is_accepted(root):
    assert run(root, f"assert {sys.executable!r}") == [0, 0]


OWN = """\
pipeline: one
files:
  text: {path: style.md, class: SORT}
roles:
  writer:
    by: [python, p.py]
    sandbox: false
    attempts: 2
    writes: [{file: text}]
stages:
  - {id: text, role: writer}
"""


@pytest.mark.parametrize("sort", ["static", "append-only"])
def test_no_role_rewrites_its_own_file_past_its_class(root, sort, capsys):
    before = state(root / "artifacts")
    codes = run(root, "open('style.md', 'w').write('Text.\\n')", OWN.replace("SORT", sort))
    assert 0 not in codes, capsys.readouterr().out
    assert state(root / "artifacts") == before


SIDE_BY_SIDE = """\
pipeline: two
files:
  one: {path: one.md}
  two: {path: two.md}
roles:
  first: {by: [python, p.py], sandbox: false, attempts: 3, writes: [{file: one}]}
  second: {by: [python, p.py], sandbox: false, attempts: 3, writes: [{file: two}]}
stages:
  - {id: first, role: first}
  - {id: second, role: second}
"""


def test_while_another_one_runs_nothing_is_put_back_and_it_stops(root, capsys):
    wait = """
import time
open(f'here-{os.getpid()}.md', 'w').close()
while len([one for one in os.listdir('.') if one.startswith('here-')]) < 2:
    time.sleep(0.01)
"""
    codes = run(root, wait + "open('plain.md', 'w').write('Other.')", SIDE_BY_SIDE, times=1)
    out = " ".join("".join(capsys.readouterr()).split())
    assert codes == [1], out
    assert "nothing was put back" in out
    assert (root / "artifacts/plain.md").read_text() == "Other."


LATER = (
    FLOW.replace("stages:\n", "stages:\n  - {id: wait, role: waiter, after: [report]}\n")
    .replace(
        "roles:\n",
        "roles:\n  waiter: {by: [python, p.py, wait], sandbox: false, reads: [{file: report}], "
        "writes: [{file: waited}]}\n",
    )
    .replace("  report: {path", "  waited: {path: waited.md}\n  report: {path")
)


def test_what_a_process_writes_that_a_role_left_behind_is_no_amendment(root, capsys):
    left = "import time; time.sleep(0.3); open('style.md', 'w').write('Other.')"
    act = f"""
if 'wait' in sys.argv:
    import time
    time.sleep(1)
    sys.exit(print('Waited.'))
subprocess.Popen([sys.executable, '-c', {left!r}], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
"""
    codes = run(root, act, LATER.replace("sandbox: false, reads", "sandbox: false, attempts: 1, reads"))
    out = " ".join("".join(capsys.readouterr()).split())
    assert 0 not in codes, out
    assert "FileAmended" not in (root / "history.jsonl").read_text()
