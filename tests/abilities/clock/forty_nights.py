"""Forty days of one workspace: what each day says of its rules, as one JSON list.

``python forty_nights.py DIRECTORY``, with this folder on Python's path and the clock's variable set. The user says something
each day, so that there is a night after each; every third day a task is graded that kept one of the rules.
"""

import json
import sys

import sitecustomize

from agentx import Workspace

DAY_S = 86_400
RULES = {
    "new": ("Label each seed tray with its sowing date.", 5.0),
    "six": ("Water the lemon trees before noon.", 6.5),
    "eight": ("Close the greenhouse roof when it hails.", 8.0),
    "nine": ("Never spray the beehives.", 9.0),
    "ten": ("Read the thermometer, not the forecast.", 10.0),
    "kept": ("Rake the gravel path after mowing.", 5.0),
}


def main(root: str) -> None:
    """Live them, and print what came of the rules."""
    days = []
    with Workspace.create(root) as ws:
        ids = {name: ws.remember("rule", text, score=score).id for name, (text, score) in RULES.items()}
        task = ws.gates.after("Sowed the beans", passed=True).task.id
        for day in range(1, 41):
            sitecustomize.put_forward(day * DAY_S)
            ws.say("Good morning.")
            if day % 3 == 0:
                ws.gates.after("Mowed the lawn", passed=True, kept=[ids["kept"]])
            found = {item.id: item for item in ws.memory(status=None)}
            rules = {name: (found[rule].score, found[rule].status) for name, rule in ids.items()}
            loaded = [item.id for item in ws.boot().items]
            days.append(
                {
                    "rules": rules,
                    "loaded": [name for name, rule in ids.items() if rule in loaded],
                    "task": found[task].status,
                }
            )
    print(json.dumps(days))


if __name__ == "__main__":
    main(sys.argv[1])
