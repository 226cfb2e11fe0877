"""Kills and syncs: is what was acknowledged still there?

``kills``: a process appends and tells each acknowledgement; after a random time it is killed with SIGKILL; another process then
reads everything. One store is used for all kills, so that each opening also recovers from the kill before.

``syncs`` runs below strace, which marks each acknowledgement with a call of ``getpriority``.
"""

import os
import random
import time

from tests.compare import texts
from tests.compare.case import Case, Result
from tests.faults.children import start

_READ_S = 60.0


def kills(case: Case) -> Result:
    """Records acknowledged, and of them those that are missing after a kill -9."""
    draw, acknowledged, errors, survived = random.Random(11), set(), [], 0
    for kill in range(case.n):
        if case.late:
            break
        child = start(lambda tell, kill=kill: _append_for_ever(case, kill, tell))
        until = time.monotonic() + 30
        while not child.told and child.status is None and time.monotonic() < until:
            child.listen(time.monotonic() + 0.01)
        child.listen(time.monotonic() + draw.uniform(0.0, 0.3))
        child.kill()
        acknowledged |= {(kill, one["ack"]) for one in child.told if "ack" in one}
        errors += [one["error"].strip().splitlines()[-1] for one in child.told if "error" in one]
        survived += 1
    found = _read_elsewhere(case)
    if "error" in found:
        return {"kills": survived, "acknowledged": len(acknowledged), "unreadable": found["error"]}
    present = [tuple(one) for one in found["marks"]]
    lost = acknowledged - set(present)
    return {
        "kills": survived,
        "acknowledged": len(acknowledged),
        "lost": len(lost),
        "twice": len(present) - len(set(present)),
        "errors": len(errors),
        "first_error": errors[0][:300] if errors else "",
    }


def _append_for_ever(case: Case, kill: int, tell) -> None:
    driver = case.open()
    for number in range(100_000):
        driver.append(texts.record(kill, number))
        tell({"ack": number})


def _read_elsewhere(case: Case) -> Result:
    """Read in a process of its own, as after a restart."""

    def read(tell) -> None:
        driver = case.open()
        tell({"marks": [found for text in driver.read() if (found := texts.mark(text))]})

    told = start(read).finish(_READ_S)
    return told[-1] if told else {"error": f"no answer within {_READ_S:.0f} s"}


def syncs(case: Case) -> Result:
    """Append twenty records, with a mark for strace before the first and after each."""
    driver = case.open()
    for number in range(5):
        driver.append(texts.record(9, number))
    os.getpriority(os.PRIO_PROCESS, 0)
    for number in range(20):
        driver.append(texts.record(8, number))
        os.getpriority(os.PRIO_PROCESS, 0)
    return {"appended": 20}
