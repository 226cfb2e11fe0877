"""What the gate sees of a command line that hides what it runs, and what it leaves alone."""

import io
import json
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.hosts.hook import respond
from agentx.hosts.host import load

RULES = (
    "Never run git commit; I commit myself.",
    "Never run git reset --hard.",
    "Never run git push --force.",
    "Never create a requirements.txt file.",
)
PAYLOADS = Path(__file__).parents[1] / "payloads"
SHARES_WORKSPACES = True


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    """A workspace with rules about commands and about a file, open."""
    with Workspace.create(tmp_path_factory.mktemp("gate") / "task", title="A task") as ws:
        for rule in RULES:
            ws.say(rule)
        yield ws


def looked(ws, command):
    return ws.gates.before("do it", tool="Bash", arguments={"command": command})


@pytest.mark.parametrize(
    "command",
    [
        # programs in no table, which run what their arguments say
        "rtk git commit -m x",
        "flock /tmp/l git commit -m x",
        "direnv exec . git commit -m x",
        "strace -f git commit -m x",
        "systemd-run git commit -m x",
        "nix develop -c git commit -m x",
        "aws-vault exec p -- git commit",
        "unheard-of --quiet git -C app commit -m x",
        "coproc git commit -m x",
        # a script in an option
        'script -qc "git commit -m x" /dev/null',
        'su -c "git commit -m x"',
        'nix-shell --run "cd a && git commit -m x"',
        'npx -c "git commit -m x"',
        'fish -c "git commit -m x"',
        "pwsh -NoProfile -c git commit",
        'busybox sh -c "git commit -m x"',
        "env -S 'git commit -m x'",
        "trap 'git commit -m x' EXIT",
        # what a shell reads, or a word becomes
        "echo 'git commit -m x' | sh",
        "cat <<E | sh\ngit commit -m x\nE",
        "printf '%s %s\\n' git commit | bash -s",
        "(echo 'cd a'; echo 'git commit -m x') | bash",
        "sh <<< 'git commit -m x'",
        "$(echo git) commit",
        "G=$(which git); $G commit",
        "`command -v git` commit -m x",
        "$'\\x67it' commit -m x",
        'g"i"t commit -m x',
        'eval "$(echo git commit -m x)"',
        "alias gc='git commit'; gc -m x",
        "/usr/lib/git-core/git-commit -m x",
        "GIT commit -m x",
        # ways of Git
        "git -c alias.z=commit z -m x",
        "git -c alias.z='!git commit -m x' z",
        "git push origin +main",
        "git push --mirror",
        "git push --forc",
        "git -c remote.origin.push=+main push",
        "git reset --har HEAD~1",
        "git submodule foreach git commit -am x",
    ],
)
def test_a_command_that_is_forbidden_is_denied_whatever_runs_it(ruled, command):
    assert looked(ruled, command).verdict == "deny"


@pytest.mark.parametrize(
    "command",
    [
        'parallel ::: "git commit -m x"',
        'tmux new -d "git commit -m x"',
        "echo 'git commit -m x' | at now",
        "ssh host <<E\ngit commit -m x\nE",
        "python -c \"import os; os.system('gi' + 't commit')\"",
        "node -e \"require('child_process').execSync('git commit -m x')\"",
        "perl -e 'system(q(git commit -m x))'",
        "awk 'BEGIN { system(\"git commit -m x\") }'",
        "vim -c '!git commit -m x' -c q",
        "tar cf a --checkpoint=1 --checkpoint-action=exec='git commit -m x' .",
        "PAGER='git commit -m x' git log",
        "git rebase -x 'git commit --amend' main",
        "git config alias.ci commit && git ci -m x",
        "git ci -m x",
        "echo Z2l0IGNvbW1pdA== | base64 -d | sh",
        "echo commit | xargs git",
        "/usr/bin/gi? commit -m x",
        "${GIT:-git} commit -m x",
        "ln -s /usr/bin/git zz && zz commit -m x",
        "echo 'git commit -m x' > x.sh && PATH=. x.sh",
        "bash < script.txt",
        "make commit",
        "man -P 'git commit' ls",
        "docker run --entrypoint git x commit",
        "unshare -r bash",
        "python gen.py --dest requirements.txt",
        "convert x requirements.txt",
    ],
)
def test_what_may_be_forbidden_and_cannot_be_read_is_named(ruled, command):
    verdict = looked(ruled, command)
    assert verdict.verdict == "deny" or verdict.unread


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git log --grep commit",
        "echo git commit",
        "git commit-graph write",
        'grep -rn "git commit" docs',
        "git show --stat HEAD",
        "git add requirements.txt",
        "git push origin main",
        "git push -u origin feature/x",
        "git reset --soft HEAD~1",
        "git tag -a v1 -m 'no git commit here'",
        "git config user.name x",
        "man git commit",
        "which git",
        "find . -name '*.py' -exec grep -l 'git push --force' {} +",
        "sed -i 's/git commit/git save/' README.md",
        "cat > HELP.md <<'E'\nUse git commit -m x.\nE",
        "echo 'run git commit' >> NOTES.md",
        "gh pr create --title 'Explain git commit hooks' --body 'See docs.'",
        "brew install git",
        "cargo build --release",
        "npm test -- --watch=false",
        "docker run --rm -v $PWD:/w -w /w node:20 npm test",
        "kubectl get pods -n prod",
        "terraform plan -out=tf.plan",
        "psql -c 'select count(*) from users' mydb",
        "ffmpeg -i in.mp4 -c:v libx264 -crf 23 out.mp4",
        "ssh host uptime",
        "bash -lc 'ls -la'",
        "bash --version",
        "python3 -m pytest -q tests",
        "sqlite3 app.db 'select 1'",
        "cat requirements.txt",
        "diff requirements.txt requirements-dev.txt",
        "mkdir -p git/commit && cd git/commit",
        "kubectl exec -it api -- ls",
    ],
)
def test_an_everyday_command_is_allowed_and_nothing_of_it_is_named(ruled, command):
    verdict = looked(ruled, command)
    variable = ("docker run --rm -v $PWD:/w -w /w node:20 npm test",)  # as every unknown variable
    assert verdict.verdict.startswith("allow")
    assert verdict.unread == () or command in variable


@pytest.mark.parametrize("command", ["pip install -r requirements.txt", "python -c 'print(1)'", "make test"])
def test_what_is_named_is_not_denied_for_it(ruled, command):
    verdict = looked(ruled, command)
    assert verdict.verdict.startswith("allow")
    assert verdict.unread


@pytest.mark.parametrize(
    "command",
    [
        "bash", "bash -i", "cd app && zsh -il", "sh -s", "exec fish", "python", "python3 -i x.py", "node", "ssh host",
        "ssh -p 22 -i key user@host", "psql mydb", "su - bob", "sudo -i", "docker exec -it c sh", "env bash --norc",
        "bash < /dev/tty", "sqlite3 app.db", "irb", "script -qc bash /dev/null",
    ],
)  # fmt: skip
def test_a_session_that_no_check_would_see_is_not_opened(ruled, command):
    assert looked(ruled, command).verdict == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'ls'", "ls | bash", "bash < x.sh", "bash x.sh", "bash --version", "bash -n x.sh", "python -V", "node -v",
        "python -m http.server", "python - < x.py", "echo 1 | node", "ssh -N -L 8080:localhost:80 host", "ssh host ls",
        "ssh -T git@github.com",
        "psql -l", "psql -f schema.sql", "sqlite3 app.db < schema.sql", "{ bash; } < x.sh", "php -S localhost:80 -t x",
        "(cat x) | (cd a; python)",
    ],
)  # fmt: skip
def test_a_program_that_is_told_at_once_what_to_do_is_no_session(ruled, command):
    assert looked(ruled, command).verdict.startswith("allow")


def test_a_session_may_be_opened_where_no_rule_is_about_commands_or_paths(tmp_path):
    with Workspace.create(tmp_path / "task", title="A task") as ws:
        ws.say("Never write the word synergy.")
        assert looked(ws, "bash -i").verdict.startswith("allow")


def test_the_command_line_says_the_same(ruled, monkeypatch, capsys):
    for command, code in (("flock /l git commit -m x", 4), ("git status", 0), ("bash -i", 4)):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"command": command})))
        words = ["gate", "pre", "x", "--tool", "Bash", "--arguments", "-", "-C", str(ruled.root)]
        assert main(words) == code
    assert "waits for commands" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "file"),
    [("codex", "PreToolUse-Bash.json"), ("claude-code", "PreToolUse-Bash.json")],
)
def test_a_hook_denies_it(ruled, tmp_path, host, file):
    payload = json.loads((PAYLOADS / host / file).read_text("utf-8"))
    environ = {"AGENTX_NO_SERVER": "1", "AGENTX_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    decided = {}
    for command in ("flock /l git commit -m x", "bash -i", "git status"):
        sent = payload | {"cwd": str(ruled.root), "tool_input": {"command": command}}
        printed, status = respond(load(host), json.dumps(sent).encode(), environ)
        answer = json.loads(printed) if printed else {}
        decided[command] = answer.get("hookSpecificOutput", {}).get("permissionDecision", "")
        assert status == 0
    assert decided == {"flock /l git commit -m x": "deny", "bash -i": "deny", "git status": ""}


@pytest.mark.parametrize(
    "said",
    [
        "Never run npm install, and no redis.",
        "No redis, and never run git commit.",
        "We don't want redis, always run pip with --no-cache-dir",
        "Never run docker run redis; we won't use redis.",
        "No redis, and never create a requirements.txt file.",
    ],
)
def test_what_was_refused_is_asked_about_beside_a_rule_that_code_checks(tmp_path, said):
    with Workspace.create(tmp_path / "task", title="A task") as ws:
        ws.say(said)
        assert looked(ws, "pip install --no-cache-dir redis").verdict == "ask"
        assert looked(ws, "git status").verdict.startswith("allow")
        assert looked(ws, "cat requirements.txt").verdict.startswith("allow")


def test_a_rule_about_a_file_does_not_ask_about_commands_that_read_it(ruled):
    for command in ("pip install -r requirements.txt", "git add requirements.txt"):
        assert looked(ruled, command).verdict.startswith("allow")
