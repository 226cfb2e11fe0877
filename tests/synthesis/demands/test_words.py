"""Stems of words, which two wordings of a subject are compared by."""

import sys
import threading

from agentx.synthesis.language.words import stem

WORDS = [
    "running",
    "happily",
    "generously",
    "relational",
    "conditional",
    "hopefulness",
    "sensitivity",
    "communication",
    "dying",
    "entries",
]


def test_many_threads_may_ask_for_stems_at_once():
    look_up = stem.__wrapped__  # what is kept is no question
    wanted, got, before = [look_up(word) for word in WORDS], list[list[str]](), sys.getswitchinterval()

    def ask():
        got.extend([look_up(word) for word in WORDS] for _ in range(200))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert len(got) == 800
    assert all(one == wanted for one in got)
