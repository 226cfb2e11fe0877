"""Command lines that may not be run, and flags that they must or may not have."""

import pytest

from agentx.synthesis.enforcement.commands import broken_commands
from agentx.synthesis.memory.checks import CommandCheck

FORCE = CommandCheck(programs=("git push",), forbidden_flags=("-f", "--force"))
SIGNED = CommandCheck(programs=("git commit",), required_flags=("-s", "--signoff"))
APPROVED = CommandCheck(programs=("terraform apply",), forbidden_flags=("-auto-approve",))
CONTEXT = CommandCheck(programs=("kubectl",), required_flags=("--context",))
PNPM = CommandCheck(programs=("npm install", "yarn add"), instead="pnpm")
SUDO = CommandCheck(programs=("sudo",))
WIPE = CommandCheck(programs=("rm",), forbidden_flags=("-rf",))


@pytest.mark.parametrize(
    ("check", "command"),
    [
        (FORCE, "git push --force origin main"), (FORCE, "git -C web push -uf origin main"),
        (FORCE, "cd a && GIT_TRACE=1 git push origin main -f"), (FORCE, "bash -c 'git push --force'"),
        (SIGNED, "git add -A && git commit -m 'Fix -s'"), (SIGNED, "git commit --amend --no-edit"),
        (APPROVED, "terraform apply -auto-approve"), (APPROVED, "cd e && terraform apply -a=b --auto-approve"),
        (APPROVED, "terraform apply -auto-approve=true"), (CONTEXT, "kubectl get pods -n checkout"),
        (PNPM, "npm install --save-dev vitest"), (PNPM, "cd packages/ui && yarn add clsx"), (PNPM, "npm i x"),
        (SUDO, "sudo apt update"), (SUDO, "env A=1 sudo -u x ls"), (WIPE, "rm -r -f build"), (WIPE, "rm -fr b"),
    ],
)  # fmt: skip
def test_a_command_that_breaks_a_check_is_found(check, command):
    assert len(list(broken_commands(check, command))) == 1


@pytest.mark.parametrize(
    ("check", "command"),
    [
        (FORCE, "git push --force-with-lease"), (FORCE, "git log -f push"), (FORCE, "echo git push --force"),
        (FORCE, "git fetch --force"), (SIGNED, "git commit -s -m 'Fix'"), (SIGNED, "git commit --signoff -am 'D'"),
        (SIGNED, "git commit -asm x"), (SIGNED, "git log --oneline && git status"), (APPROVED, "terraform plan"),
        (APPROVED, "terraform apply -var-file=staging.tfvars"), (APPROVED, "grep -rn 'auto-approve' .github"),
        (CONTEXT, "kubectl --context=stg-eu get pods"), (CONTEXT, "kubectl rollout status x --context prod"),
        (CONTEXT, "helm template charts/api | head"), (PNPM, "pnpm add -D vitest --filter ui"),
        (PNPM, "npm view vitest versions --json"), (PNPM, "cat yarn.lock 2>/dev/null || echo none"),
        (SUDO, "echo sudo"), (SUDO, "grep sudo notes"), (WIPE, "rm -r build"), (WIPE, "rm -- -rf"),
    ],
)  # fmt: skip
def test_a_command_that_keeps_a_check_passes(check, command):
    assert list(broken_commands(check, command)) == []


def test_arguments_and_paths_limit_a_check():
    to_main = CommandCheck(programs=("git push",), arguments=(r"^(main|master)$",))
    assert list(broken_commands(to_main, "git push origin main"))
    assert not list(broken_commands(to_main, "git push origin maintenance"))
    migrations = CommandCheck(programs=("rm",), paths=("migrations/**",))
    assert list(broken_commands(migrations, "cd migrations && rm 1.sql"))
    assert not list(broken_commands(migrations, "rm build/1.sql"))


@pytest.mark.parametrize(
    ("check", "command", "corrected"),
    [
        (SIGNED, "git add -A && git commit -m 'Fix it'", "git add -A && git commit --signoff -m 'Fix it'"),
        (SIGNED, "git commit -m \"Fix 'it'\" | cat", "git commit --signoff -m \"Fix 'it'\" | cat"),
        (PNPM, "npm i -D x && ls", "pnpm add -D x && ls"),
        (PNPM, "npm install", "pnpm install"),
        (PNPM, "cd ui && yarn add x@2", "cd ui && pnpm add x@2"),
        (CommandCheck(programs=("pip",), instead="uv pip"), "pip install x", ""),
        (CommandCheck(programs=("rm",), instead="trash"), "sudo rm a b", "sudo trash a b"),
        (CONTEXT, "kubectl get pods", ""),
        (FORCE, "git push -f", ""),
        (SIGNED, "git commit -m a; git commit -m a", ""),
        (
            SIGNED,
            "git commit -m a > log 2>&1; git commit -m a --amend",
            "git commit --signoff -m a > log 2>&1; git commit -m a --amend",
        ),
        (SIGNED, "echo 'git commit'; (git commit)", "echo 'git commit'; (git commit --signoff)"),
    ],
)
def test_a_mechanical_correction_is_the_whole_command_line(check, command, corrected):
    assert next(broken_commands(check, command)).correction == corrected
