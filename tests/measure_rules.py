"""``python -m tests.measure_rules RULES [--show]``: how many rules compile to checks that stop what breaks them.

RULES is a file of JSON lines: ``id``, ``rule``, ``checkable``, ``breaks`` and ``innocent``, lists of actions. An action
has a ``tool``: ``write_file`` (``path``, ``before``, ``content``), ``delete_file``, ``run_command``, ``answer`` (``text``),
or ``run`` with ``steps``. Each rule is stated in a new workspace, and each action is put to its gates. Both a denial and a
question stop an action. A ``run`` is stopped if a step is, or if a rule about later commands is open at its end.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentx import Workspace
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.memory.checks import FollowUpCheck
from agentx.synthesis.memory.items import checks_of


def state_rule(ws: Workspace, words: str) -> list[Any]:
    """State a rule; if it does not become active, add it by hand. Return its checks."""
    ws.say(words)
    if not ws.engine.demands():
        ws.remember("constraint", words)
    return [check for item in ws.engine.checked() for check in checks_of(item)]


def stopped(ws: Workspace, action: dict[str, Any]) -> bool:
    """Return whether an action is denied or needs approval."""
    tool = action["tool"]
    if tool == "answer":
        violations = ws.engine.evaluate_answer(action["text"]).of("ask", "deny", "fix")
        return bool(violations or ws.check_answer(action["text"]))
    if tool == "run_command":
        arguments = {"command": action["command"]}
        if ws.engine.evaluate_command(action["command"]).of("ask", "deny", "fix"):
            return True
    else:
        arguments = {"path": action["path"]}
    if tool == "write_file":
        arguments["content"] = action["content"]
    verdict = ws.gates.before("", tool=tool, arguments=arguments)
    return verdict.verdict in ("deny", "ask")


def prepare(folder: Path, action: dict[str, Any]) -> Path:
    """Write the files that an action changes or deletes, as they were before, and return their folder."""
    before = folder / "before"
    before.mkdir()
    for one in action.get("steps", [action]):
        if one["tool"] == "delete_file" or one.get("before") is not None:
            target = before / one["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(one.get("before") or "x\n", encoding="utf-8")
    return before


def run_stopped(ws: Workspace, steps: Sequence[dict[str, Any]]) -> bool:
    """Return whether a step of a run is stopped, or a command that must follow a change is missing."""
    if any(stopped(ws, step) for step in steps):
        return True
    for item in ws.engine.checked():
        for check in checks_of(item):
            if not isinstance(check, FollowUpCheck):
                continue
            open_ = False
            for step in steps:
                if step["tool"] in ("write_file", "delete_file"):
                    open_ |= not check.paths or matches(check.paths, step["path"])
                elif step["tool"] == "run_command" and is_followed(check.command, step["command"]):
                    open_ = False
            if open_:
                return True
    return False


def is_followed(wanted: str, command: str) -> bool:
    """Return whether a command line has the words of the wanted command, in any order after the program."""
    program, *rest = wanted.split()
    words = command.split()
    return program in words and set(rest) <= set(words[words.index(program) :])


def measured(rule: dict[str, Any], *, show: bool) -> tuple[bool, int, int, int]:
    """Return whether a rule has a check, how many breaks passed, and of how many innocents how many stopped."""

    def tried(action: dict[str, Any]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            before = prepare(Path(folder), action)
            with Workspace.create(Path(folder) / "ws", from_dir=before) as ws:
                state_rule(ws, rule["rule"])
                return run_stopped(ws, action["steps"]) if action["tool"] == "run" else stopped(ws, action)

    with tempfile.TemporaryDirectory() as folder, Workspace.create(Path(folder) / "ws") as ws:
        checks = state_rule(ws, rule["rule"])
    if not checks and not show:
        return False, len(rule.get("breaks", ())), 0, len(rule["innocent"])
    missed = [action for action in rule.get("breaks", ()) if not tried(action)]
    wrong = [action for action in rule["innocent"] if tried(action)]
    if show:
        sys.stdout.write(f"{rule['id']} {rule['rule'][:100]}\n    {checks}\n")
        for name, actions in (("passed", missed), ("stopped", wrong)):
            for action in actions:
                sys.stdout.write(f"    wrongly {name}: {json.dumps(action)[:160]}\n")
    return bool(checks), len(missed), len(wrong), len(rule["innocent"])


def main() -> None:
    """Measure the rules of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rules", type=Path)
    parser.add_argument("--show", action="store_true", help="print each rule with its checks and failures")
    options = parser.parse_args()
    rules = [json.loads(line) for line in options.rules.read_text(encoding="utf-8").splitlines() if line]
    right = checkable = wrong = innocents = shown = other = 0
    for rule in rules:
        has_check, missed, stops, tries = measured(rule, show=options.show)
        wrong, innocents = wrong + stops, innocents + tries
        if rule["checkable"]:
            checkable += 1
            right += has_check and not missed and not stops
            shown += not has_check
        else:
            other += 1
            shown += not has_check
    sys.stdout.write(
        f"checkable rules enforced rightly: {right} of {checkable}\n"
        f"innocent actions stopped: {wrong} of {innocents}\n"
        f"rules shown only: {shown} of {len(rules)} ({other} of them cannot be checked)\n"
    )


if __name__ == "__main__":
    main()
