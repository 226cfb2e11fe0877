"""``python -m tests.measure_gates FILE [--verbose]``: how many refused or ruled-out calls are stopped before their effect.

Each line of FILE is one case as JSON: ``setup`` is ``{"said": TEXT}`` or ``{"refused_call": {"tool": …, …}}``, ``action``
is what an agent is about to do, and ``expect`` is ``stop`` or ``pass``. Each case has a workspace of its own. A refused call
is really asked for and denied. The action is then shown to ``gates.before``, as a hook of another agent does, and to the
gate of our own tools. Nothing is run: commands stop at the gate, and a write that passes is made in the scratch workspace.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from agentx import Workspace
from agentx.settings import Settings
from agentx.trust.trust import Trust

STOPS = ("ask", "deny")
_DESCRIBES = ("text", "tool")


def main() -> None:
    """Measure a file of cases."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--verbose", action="store_true", help="also list the cases that are right")
    given = parser.parse_args()
    cases = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    tally: Counter[tuple[str, str, str]] = Counter()
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(case, Path(scratch))
        wanted = case["expect"]
        setup = next(iter(case["setup"]))
        for way, (verdict, _) in found.items():
            tally[wanted, way, "stopped" if verdict in STOPS else "passed"] += 1
            tally[f"{wanted} ({setup})", way, "stopped" if verdict in STOPS else "passed"] += 1
        wrong = [way for way, (verdict, _) in found.items() if (verdict in STOPS) != (wanted == "stop")]
        if wrong or given.verbose:
            print(f"{'WRONG' if wrong else 'right'} {case['id']} {wanted}: {json.dumps(case['setup'])}")
            print(f"      {json.dumps(case['action'])[:300]}")
            for way, (verdict, reason) in found.items():
                print(f"      {way}: {verdict}: {reason}")
    for wanted, way in sorted({(wanted, way) for wanted, way, _ in tally}):
        stopped, passed = tally[wanted, way, "stopped"], tally[wanted, way, "passed"]
        print(f"{wanted:24} {way:14} stopped {stopped} of {stopped + passed}")


def measure(case: dict[str, Any], scratch: Path) -> dict[str, tuple[str, str]]:
    """Return, for both ways to the gate, the verdict and its reason."""
    settings = Settings(environ=dict(os.environ), cache_dir=scratch / "models", state_dir=scratch / "state")
    root = scratch / "workspace"
    setup, action = case["setup"], case["action"]
    Workspace.create(root, settings=settings).close()
    # Asking for every call of the tool makes the refused call pending; afterwards nothing asks by itself.
    refused = setup.get("refused_call")
    approve = f"approve = [{json.dumps(refused['tool'])}]\n" if refused else ""
    plain = (root / "agentx.toml").read_text(encoding="utf-8")
    on = f"{plain}\n[tools]\nrun_command = true\nisolation = 'none'\n"
    (root / "agentx.toml").write_text(on + approve, encoding="utf-8")
    Trust.read(root, settings).grant("trusted", commands=True)
    with Workspace.open(root, settings=settings) as ws:
        if refused:
            asked = ws.tools.call(refused["tool"], _arguments(refused), call_id="refused")
            if not asked.approval_needed:
                raise SystemExit(f"{case['id']}: the call to refuse did not wait: {asked.output}")
            ws.approve("refused", approved=False, reason=str(refused.get("reason", "")))
        else:
            ws.say(setup["said"])
    (root / "agentx.toml").write_text(on, encoding="utf-8")
    Trust.read(root, settings).grant("trusted", commands=True)
    with Workspace.open(root, settings=settings) as ws:
        tool, arguments = action["tool"], _arguments(action)
        before = ws.gates.before(action.get("text", ""), tool=tool, arguments=arguments)
        return {"gates.before": (before.verdict, before.reason), "own tools": _own(ws, tool, arguments)}


def _own(ws: Workspace, tool: str, arguments: dict[str, Any]) -> tuple[str, str]:
    if tool == "run_command":  # the gate alone: commands are not run
        look = ws.tools.gates.before_call(tool, arguments, run="r", agent="main")
        if look.violations:
            return "deny", look.violations[0].reason
        return ("ask", look.ask) if look.ask else ("allow", "")
    result = ws.tools.call(tool, arguments, run="r")
    if result.approval_needed:
        return "ask", result.output
    return ("deny", result.output) if result.status == "DENIED" else ("allow", result.output[:100])


def _arguments(action: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; ``before`` of the material is what the file has, not an argument."""
    return {name: value for name, value in action.items() if name not in (*_DESCRIBES, "reason", "before")}


if __name__ == "__main__":
    main()
