"""Running a command in a copy: real processes, with each isolation and without."""

import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
import uuid
from pathlib import Path

import pytest

from agentx.quality import confine, process, sandbox
from agentx.quality.bubblewrap import IsolationUnavailableError, why_unavailable
from agentx.quality.sandbox import SandboxError, SandboxPolicy, isolation_for, run_in_copy
from agentx.quality.tree import TreeLimits, TreeTooLargeError
from agentx.storage.errors import UsageError
from tests.agentx.quality.conftest import why_not


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def is_alive(pid):
    """Whether a process goes on; one that was killed may take a while to end on a busy machine."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.01)
    return True


def test_exit_status_and_both_streams_come_back_in_order(run):
    done = run("echo one; echo two >&2; exit 3")
    assert (done.exit_code, done.output, done.timed_out) == (3, "one\ntwo\n", False)
    assert (done.output_bytes, done.truncated, done.changes) == (8, False, ())


def test_a_string_is_read_by_the_shell_and_a_sequence_is_not(run):
    assert run("echo $((1 + 1)) | tr 2 3").output == "3\n"
    assert run(["echo", "$((1 + 1))", "a b"]).output == "$((1 + 1)) a b\n"


def test_python_is_the_one_that_runs_agentx(run):
    done = run("python -c 'import sys; print(sys.prefix)'")
    assert done.output.strip() == sys.prefix


def test_death_by_a_signal_is_128_and_its_number(run):
    assert run("kill -9 $$").exit_code == 137


def test_a_missing_program_is_127_with_a_sentence(run):
    done = run("no-such-program-here --flag")
    assert done.exit_code == 127
    assert any("a program was not found" in note for note in done.notes)


def test_a_missing_module_says_which_python_lacks_it(run):
    done = run("python -m no_such_module_here")
    assert done.exit_code == 1
    assert "the Python that runs AgentX has no no_such_module_here" in done.notes[-1]


@pytest.mark.parametrize("command", ["", "  ", [], "echo a\0b", "echo \ud800"])
def test_what_is_no_command_is_wrong_use(run, command):
    with pytest.raises(UsageError):
        run(command)


def test_time_limit_ends_a_program_that_ignores_sigterm(run, isolation, monkeypatch):
    if isolation != "landlock":  # which must end it within that time
        monkeypatch.setattr(process, "TERM_GRACE_S", 0.2)
    done = run("trap '' TERM; echo started; while :; do sleep 1; done", timeout_s=1)
    assert (done.timed_out, done.exit_code) == (True, None)
    assert done.output == "started\n"


def test_time_limit_ends_children_too(run, tree):
    done = run("sh -c \"trap '' TERM; sleep 300\" & echo $!; wait", timeout_s=1)
    assert done.timed_out
    if done.isolation == "none":  # inside bubblewrap the number means nothing out here
        assert not is_alive(int(done.output.split()[0]))


def test_output_before_a_time_out_is_kept(run, isolation):
    timeout_s = 1 if isolation == "none" else 2  # confining it takes a while on a busy machine
    done = run("echo before; sleep 300", timeout_s=timeout_s)
    assert (done.timed_out, done.output) == (True, "before\n")


def test_a_grandchild_that_holds_the_pipe_does_not_hang_the_call(run):
    done = run("sleep 300 & echo done", timeout_s=60)
    assert (done.exit_code, done.timed_out, done.output) == (0, False, "done\n")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="strays are found through /proc")
def test_a_grandchild_in_a_session_of_its_own_is_found_and_ended(tree):
    detach = "import os,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(300)"
    (tree / "detach.py").write_text(detach)
    policy = SandboxPolicy(isolation="none")
    done = run_in_copy(tree, "python detach.py; sleep 1", timeout_s=60, max_output_bytes=999, policy=policy)
    assert done.exit_code == 0
    assert not is_alive(int(done.output))
    assert "it left processes running in the background; they were ended" in done.notes


def test_a_program_that_closes_its_output_is_still_waited_for(run):
    done = run("exec >&- 2>&-; sleep 0.5; : > late.txt; exit 4")
    assert done.exit_code == 4
    assert [change.path for change in done.changes] == ["late.txt"]


def test_100_mb_of_output_stay_bounded_and_are_counted(run):
    tracemalloc.start()
    done = run("printf START; head -c 100000000 /dev/zero | tr '\\0' x; printf END", max_output_bytes=20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (done.exit_code, done.output_bytes, done.truncated) == (0, 100_000_008, True)
    assert len(done.output) < 20_100
    assert done.output.startswith("STARTxxx")
    assert done.output.endswith("xxxEND")
    assert "[... 99980008 bytes left out ...]" in done.output
    assert peak < 5_000_000


def test_output_that_is_not_utf8_and_control_characters(run):
    assert run(r"printf 'a\377b\033[31mc\000d'").output == "a\ufffdb\x1b[31mc\0d"


def test_a_cut_never_splits_a_character(run):
    done = run("python -c \"print('é€😀' * 1000)\"", max_output_bytes=101)
    assert done.truncated
    assert "\ufffd" not in done.output


def test_secrets_in_the_environment_are_not_visible(run):
    environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-secret", "LC_TIME": "C", "WANTED": "yes"}
    done = run("env", environ=environ, env_allow=("WANTED",))
    names = {line.split("=")[0] for line in done.output.splitlines()}
    assert "sk-secret" not in done.output
    assert {"WANTED", "LC_TIME", "HOME", "PATH", "TERM"} <= names
    assert names <= {
        "WANTED", "LC_TIME", "HOME", "PATH", "TERM", "LANG", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "VIRTUAL_ENV",
        "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "AGENTX_RUN",
    }  # fmt: skip


def test_a_policy_does_not_print_the_environment_that_it_holds():
    assert "sk-secret" not in repr(SandboxPolicy(environ={"KEY": "sk-secret"}))


def test_home_and_temporary_directory_are_private_and_writable(run):
    home = os.environ.get("HOME", "/")
    done = run('echo "$HOME"; touch "$HOME/a" "$TMPDIR/b" && echo ok')
    assert done.output.splitlines()[0] != home
    assert done.output.splitlines()[1] == "ok"
    assert done.changes == ()


def test_there_is_no_input_to_wait_for(run):
    assert run("cat; echo end").output == "end\n"


def test_what_a_command_does_to_its_copy_does_not_reach_the_artifacts(run, tree):
    (tree / "inside").symlink_to(tree / "notes.md")  # absolute: it must not lead back out of the copy
    done = run("rm -r pkg; echo spoiled > notes.md; echo spoiled > inside; echo spoiled > ../history.jsonl")
    assert done.exit_code == 0
    assert (tree / "notes.md").read_text() == "# Notes\n"
    assert (tree / "pkg" / "mod.py").exists()
    assert (tree.parent / "history.jsonl").read_text() == '{"seq":1}\n'


def test_the_copy_is_gone_afterwards_whatever_was_left_in_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make_deep = "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"
    run(["python", "-c", make_deep])
    run("mkdir locked; touch locked/file; chmod 000 locked")
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]


def test_a_tree_over_the_limits_is_refused_with_a_sentence(run, tree):
    with pytest.raises(TreeTooLargeError, match="contains more than 2 files"):
        run("true", limits=TreeLimits(max_files=2))
    with pytest.raises(TreeTooLargeError, match="contains more than 10 bytes"):
        run("true", limits=TreeLimits(max_total_bytes=10))


def test_what_is_excluded_and_git_are_not_copied(run, tree):
    (tree / ".git").mkdir()
    (tree / ".git" / "config").write_text("[core]\n")
    (tree / "pkg" / ".git").write_text("gitdir: elsewhere\n")
    (tree / "huge").mkdir()
    (tree / "huge" / "data").write_text("x")
    done = run("find . -type f | sort", exclude=("huge/",))
    assert done.output.split() == ["./notes.md", "./pkg/mod.py"]
    assert done.changes == ()


# With isolation only


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolated(request, tree):
    """Run a command with each isolation that works here, for a user with things in the home."""
    home = tree.parent / "home"
    environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
    (home / "cache").mkdir(parents=True)
    (home / "token").write_text("secret")
    (home / "cache" / "entry").write_text("kept")
    if reason := why_not(request.param):
        pytest.skip(reason)

    def run_it(command, *, timeout_s=60, **policy):
        full = SandboxPolicy(**{"environ": environ, "isolation": request.param, **policy})
        return run_in_copy(tree, command, timeout_s=timeout_s, max_output_bytes=20_000, policy=full)

    return run_it


def test_isolated_home_is_hidden_but_for_what_is_named(isolated, tree):
    home = tree.parent / "home"
    done = isolated(f"cat {home}/token; cat {home}/cache/entry", readable=(home / "cache",))
    assert done.isolation != "none"
    assert "secret" not in done.output
    assert done.output.endswith("kept")


def test_a_search_path_that_names_the_home_does_not_open_it(isolated, tree):
    """A home or a root directory in PATH makes nothing below it readable."""
    home = tree.parent / "home"
    environ = {"PATH": f"{home}:{home.parent}:/:{os.environ['PATH']}", "HOME": str(home)}
    assert "secret" not in isolated(f"cat {home}/token", environ=environ).output


def test_a_hidden_place_in_a_directory_of_the_system_stays_hidden(isolated, tree, monkeypatch):
    """A workspace below a directory that commands may read is left out, and its neighbours are not."""
    system = tree.parent / "system"
    for name in ("tool", "task/history"):
        (system / name).mkdir(parents=True)
        (system / name / "file").write_text(f"content of {name}\n")
    monkeypatch.setattr(sandbox, "SYSTEM", (*sandbox.SYSTEM, str(system)))
    done = isolated(f"cat {system}/tool/file {system}/task/history/file", hidden=(system / "task",))
    assert done.output.startswith("content of tool\n")
    assert "content of task/history" not in done.output


def test_a_toolchain_that_a_variable_names_can_be_read(isolated, tree):
    """The directory of JAVA_HOME can be read, that of CARGO_HOME, which holds credentials, cannot."""
    for name in ("java", "cargo"):
        (tree.parent / name).mkdir()
        (tree.parent / name / "file").write_text(name)
    environ = {"PATH": os.environ["PATH"], "JAVA_HOME": str(tree.parent / "java")}
    environ["CARGO_HOME"] = str(tree.parent / "cargo")
    done = isolated('cat "$JAVA_HOME/file" "$CARGO_HOME/file"', environ=environ)
    assert (done.output.splitlines()[0][:4], done.exit_code) == ("java", 1)


SECRETS = (
    ".cargo/credentials.toml",
    ".cargo/config.toml",
    ".npmrc",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
)


def test_toolchain_below_the_home_is_found_and_secrets_beside_it_are_not(run, isolation, tree):
    """A shim in PATH finds its toolchain in the empty home; an isolated command cannot change it."""
    home = tree.parent / "home"
    files = {
        ".cargo/bin/tool": '#!/bin/sh\nexec "$HOME/.rustup/toolchains/$(cat "$HOME/.rustup/default")/tool" "$@"\n',
        ".rustup/toolchains/one/tool": '#!/bin/sh\necho "one $1"\n',
        ".rustup/default": "one\n",
        ".cargo/registry/index": "package\n",
        ".m2/repository/a.jar": "jar\n",
        **dict.fromkeys(SECRETS, "secret\n"),
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    environ = {"PATH": f"{home}/.cargo/bin:{os.environ['PATH']}", "HOME": str(home)}
    done = run("tool two && cat ~/.cargo/registry/index ~/.m2/repository/a.jar", environ=environ)
    assert (done.exit_code, done.output) == (0, "one two\npackage\njar\n")
    assert "secret" not in run(f"cd ~; cat {' '.join(SECRETS)}", environ=environ).output
    if isolation != "none":
        command = f"cat {' '.join(str(home / name) for name in SECRETS)}; echo x > ~/.rustup/default"
        assert "secret" not in run(command, environ=environ).output
        assert (home / ".rustup/default").read_text() == "one\n"


def test_isolated_writes_outside_the_copy_reach_nothing(isolated, tree):
    done = isolated(
        f"echo spoiled > {tree}/notes.md; echo spoiled > /etc/agentx-was-here; touch /usr/agentx-was-here"
    )
    assert done.exit_code != 0
    assert (tree / "notes.md").read_text() == "# Notes\n"
    assert not Path("/etc/agentx-was-here").exists()


def test_isolated_has_no_capabilities(isolated):
    """A command that root starts has none of root's capabilities, and can gain none."""
    source = "import os; os.mknod('disk', 0o060600, os.makedev(1, 0))"
    done = isolated(["python", "-c", source])
    assert (done.exit_code, "PermissionError" in done.output) == (1, True)


def test_isolated_programs_do_what_programs_do(isolated):
    """Pipes, here-documents, links and moves between directories, temporary files, job control and a C library's needs."""
    script = """
    set -e
    mkdir -p one two && echo a > one/file && mv one/file two/ && ln two/file one/hard && ln -s ../two/file one/soft
    cat one/soft one/hard | sort | uniq -c > counted && chmod 755 counted && touch -d 2020-01-01 counted
    t=$(mktemp) && cat > "$t" <<END
here
END
    cat "$t" /dev/null && (sleep 30 & kill $!; wait) && timeout 5 true && head -c 4 /dev/urandom > /dev/null
    echo said > /dev/stdout && yes | head -n 1
    """
    done = isolated(script)
    assert (done.exit_code, done.output) == (0, "here\nsaid\ny\n")


def test_isolated_python_starts_threads_and_processes(isolated):
    """A test runner's needs: threads, subprocesses in sessions of their own, pairs of sockets, event loops."""
    source = (
        "import asyncio, subprocess, threading\n"
        "t = threading.Thread(target=print, args=['thread']); t.start(); t.join()\n"
        "print(subprocess.check_output(['echo', 'child'], start_new_session=True, text=True), end='', flush=True)\n"
        "async def main():\n"
        "    made = await asyncio.create_subprocess_exec('echo', 'awaited'); await made.wait()\n"
        "asyncio.run(main())\n"
    )
    assert isolated(["python", "-c", source]).output == "thread\nchild\nawaited\n"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
@pytest.mark.parametrize("timeout_s", [60, 5])
def test_what_leaves_its_session_and_its_environment_does_not_outlive_an_isolated_run(
    isolated, tree, timeout_s
):
    """Not even a daemon that clears all by which it could be found goes on, after a normal end or a time-out."""
    mark = uuid.uuid4().hex
    daemon = (
        "import os\nif os.fork(): os._exit(0)\nos.setsid()\n"
        f"os.execve('/bin/sh', ['sh', '-c', 'sleep 300; exit', '{mark}'], {{'PATH': '/usr/bin:/bin'}})\n"
    )
    (tree / "daemon.py").write_text(daemon)
    done = isolated(
        "python daemon.py; sleep 0.3; echo started; " + "sleep 300" * (timeout_s == 5), timeout_s=timeout_s
    )
    assert (done.output, done.timed_out) == ("started\n", timeout_s == 5)
    found = [one for one in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(one)]
    assert found == []


def test_a_command_under_landlock_that_wants_a_socket_is_told_why_not(tree):
    """A failure that Landlock may have caused says what Landlock does not allow."""
    if reason := why_not("landlock"):
        pytest.skip(reason)
    policy = SandboxPolicy(environ={"PATH": os.environ["PATH"]}, isolation="landlock")
    command = ["python", "-c", "import socket; socket.socket()"]
    done = run_in_copy(tree, command, timeout_s=60, max_output_bytes=9_999, policy=policy)
    assert "install bubblewrap if the command needs them" in done.notes[-1]


def test_a_command_that_cannot_be_confined_does_not_run(tree, monkeypatch):
    """Where the launcher fails, nothing has run, and the error says so."""
    if reason := why_not("landlock"):
        pytest.skip(reason)
    monkeypatch.setattr(confine, "DEVICES", [7])  # which is not a path
    policy = SandboxPolicy(environ={"PATH": os.environ["PATH"]}, isolation="landlock")
    with pytest.raises(SandboxError, match="was not run: agentx: cannot confine the command"):
        run_in_copy(tree, "touch made", timeout_s=60, max_output_bytes=9_999, policy=policy)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("under_landlock", [True, False])
def test_each_jump_of_the_filter_stays_inside_it_and_ends_in_a_verdict(machine, under_landlock):
    """The filter of either architecture is one that the kernel takes: bounded, and closed by a verdict."""
    steps = confine._program(machine, under_landlock=under_landlock)
    assert len(steps) < 4096
    assert steps[-1][0] == confine._RETURN
    for place, (code, yes, no, _) in enumerate(steps):
        assert place + 1 + max(yes, no) < len(steps) or code == confine._RETURN


# Without isolation


def test_without_any_isolation_the_result_says_so(tree, monkeypatch):
    monkeypatch.setattr(confine, "why_unavailable", lambda: "this system has no Landlock")
    policy = SandboxPolicy(environ={"PATH": "/nowhere"}, isolation="auto")
    done = run_in_copy(tree, "true", timeout_s=60, max_output_bytes=99, policy=policy)
    assert done.isolation == "none"
    assert done.notes[0] == (
        "ran without isolation: bubblewrap (bwrap) is not installed; this system has no Landlock"
    )


def test_landlock_takes_the_place_of_a_bubblewrap_that_is_missing():
    """Where bubblewrap is not installed, commands are isolated by Landlock."""
    if reason := why_not("landlock"):
        pytest.skip(reason)
    assert isolation_for(SandboxPolicy(environ={"PATH": "/nowhere"}))[0] == "landlock"


def test_an_old_landlock_is_not_called_isolation_and_a_newer_one_says_what_it_lacks(monkeypatch):
    """Below ABI 3 a command could empty files; below ABI 6 it can send signals, which each result says."""
    policy = SandboxPolicy(environ={"PATH": "/nowhere"})
    probe = confine.why_unavailable.__wrapped__
    monkeypatch.setattr(confine, "landlock_abi", lambda: 2)
    monkeypatch.setattr(confine, "why_unavailable", probe)
    assert isolation_for(policy)[0] == "none"
    monkeypatch.setattr(confine, "landlock_abi", lambda: 5)
    monkeypatch.setattr(confine, "why_unavailable", lambda: None)
    isolation, (note,) = isolation_for(policy)
    assert (isolation, "could send signals" in note) == ("landlock", True)


@pytest.mark.parametrize("wanted", ["bubblewrap", "landlock"])
def test_insisting_on_isolation_raises_where_there_is_none(tree, monkeypatch, wanted):
    monkeypatch.setattr(confine, "why_unavailable", lambda: "this system has no Landlock")
    policy = SandboxPolicy(environ={"PATH": "/nowhere"}, isolation=wanted)
    with pytest.raises(IsolationUnavailableError, match=r"not installed|no Landlock"):
        run_in_copy(tree, "true", timeout_s=60, max_output_bytes=99, policy=policy)


def test_a_bubblewrap_that_is_refused_counts_as_none(tree, tmp_path):
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    assert why_unavailable(str(fake.parent)) == (
        "bubblewrap (bwrap) does not work here: No permissions to create new namespace"
    )


def test_an_interrupted_call_leaves_nothing_running(tree, tmp_path):
    (tree / "wait.py").write_text(
        "import os,time\nopen(os.environ['MARK'],'w').write(str(os.getpid()))\ntime.sleep(300)"
    )
    script = (
        "import os, pathlib, signal, threading, time\n"
        "from agentx.quality.sandbox import SandboxPolicy, run_in_copy\n"
        f"mark = pathlib.Path({str(tmp_path / 'mark')!r})\n"
        "def interrupt():\n"
        "    while not (mark.exists() and mark.read_text()): time.sleep(0.02)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "policy = SandboxPolicy(environ={'MARK': str(mark)}, env_allow=('MARK',), isolation='none')\n"
        f"run_in_copy(pathlib.Path({str(tree)!r}), 'python wait.py', timeout_s=100, max_output_bytes=9, policy=policy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, text=True)
    assert "KeyboardInterrupt" in done.stderr
    assert not is_alive(int((tmp_path / "mark").read_text()))
