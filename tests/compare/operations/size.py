"""Bytes on the disk, and the time until the latest messages are read."""

import time

from tests.compare import texts
from tests.compare.case import Case, Result, size_of
from tests.faults.children import start

_TURNS, _LAST, _TIMES, _BATCH = 400, 30, 7, 500


def size(case: Case) -> Result:
    """Bytes after 400 turns with outputs of tools, closed as documented, over the bytes of their texts."""
    messages = list(texts.turns(_TURNS))
    driver = case.open()
    raw = done = 0
    for number, message in enumerate(messages):
        driver.append(message)
        raw += len(message.text.encode())
        done = number + 1
        if case.late:
            break
    driver.close()
    held = size_of(case.folder)
    return {"messages": done, "of": len(messages), "text_bytes": raw, "disk_bytes": held, "ratio": held / raw}


def load(case: Case) -> Result:
    """Processor and clock time to open a store of many records and read the latest thirty, in fresh processes; the least of seven."""
    made = start(lambda tell: _fill(case, tell)).finish(case.limit_s + 120)
    if not made or "records" not in made[-1]:
        raise RuntimeError(made[-1]["error"] if made else "it could not be filled in time")
    records = made[-1]["records"]
    wanted = [texts.record(1, number).text for number in range(records)][-_LAST:]
    processor, clock = [], []
    for _ in range(_TIMES):
        told = start(lambda tell: _timed(case, wanted, tell)).finish()
        if not told or "right" not in told[-1]:
            raise RuntimeError(told[-1]["error"] if told else "no answer")
        processor.append(told[-1]["processor_ms"])
        clock.append(told[-1]["clock_ms"])
        right = told[-1]["right"]
    return {
        "records": records,
        "processor_ms": min(processor),
        "clock_ms": min(clock),
        "right": right,
    }


def _fill(case: Case, tell) -> None:
    driver = case.open()
    number = 0
    while number < case.records and not case.late:
        driver.append_all([texts.record(1, number + n) for n in range(_BATCH)])
        number += _BATCH
    driver.close()
    tell({"records": number})


def _timed(case: Case, wanted: list[str], tell) -> None:
    clock, processor = time.perf_counter(), time.process_time()
    found = case.open().read(_LAST)
    tell(
        {
            "processor_ms": (time.process_time() - processor) * 1e3,
            "clock_ms": (time.perf_counter() - clock) * 1e3,
            "right": found == wanted,
        }
    )
