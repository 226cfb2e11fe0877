"""Eight processes append to one store at once."""

import time

from tests.compare import texts
from tests.compare.case import Case, Result
from tests.faults.children import start

_WRITERS, _EACH, _ROUNDS, _TIMEOUT_S = 8, 25, 3, 120.0


def crowd(case: Case) -> Result:
    """Of three rounds: records acknowledged, lost and in each writer's order; errors; the best records a second of the clock."""
    first = start(lambda tell: case.open().close())
    if made := first.finish(_TIMEOUT_S):
        raise RuntimeError(made[-1]["error"])
    rounds = [_round(case, _WRITERS, 100 * number) for number in range(_ROUNDS) if not case.late]
    worst = max(rounds, key=lambda one: one["lost"] + one["errors"])
    return {
        **worst,
        "rounds": len(rounds),
        "acknowledged": sum(one["acknowledged"] for one in rounds),
        "wanted": sum(one["wanted"] for one in rounds),
        "lost": sum(one["lost"] for one in rounds),
        "errors": sum(one["errors"] for one in rounds),
        "in_order": all(one["in_order"] for one in rounds),
        "per_s": max(one["per_s"] for one in rounds),
    }


def _round(case: Case, writers: int, base: int) -> Result:
    begin = time.monotonic()
    children = [start(lambda tell, w=w: _write(case, base + w, tell)) for w in range(writers)]
    told = [child.finish(max(1.0, begin + _TIMEOUT_S - time.monotonic())) for child in children]
    took = time.monotonic() - begin
    acknowledged = {(base + w, one["ack"]) for w, lines in enumerate(told) for one in lines if "ack" in one}
    errors = [one["error"].strip().splitlines()[-1] for lines in told for one in lines if "error" in one]
    spans = [one["span"] for lines in told for one in lines if "span" in one]
    writing = max((s[1] for s in spans), default=took) - min((s[0] for s in spans), default=0.0)
    marks: list[tuple[int, int]] = []
    answer = start(
        lambda tell: tell({"marks": [m for t in case.open().read() if (m := texts.mark(t)) and m[0] >= base]})
    ).finish(_TIMEOUT_S)
    problem = ""
    if answer and "marks" in answer[-1]:
        marks = [tuple(one) for one in answer[-1]["marks"] if base <= one[0] < base + writers]
    else:
        problem = answer[-1]["error"].strip().splitlines()[-1] if answer else "no answer"
    in_order = all(
        (own := [number for who, number in marks if who == base + w]) == sorted(own) for w in range(writers)
    )
    return {
        "wanted": writers * _EACH,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(marks)),
        "errors": len(errors),
        "first_error": errors[0][:300] if errors else problem,
        "in_order": in_order,
        "hung": sum(child.hung for child in children),
        "per_s": len(acknowledged) / writing if writing > 0 else 0.0,
    }


def _write(case: Case, writer: int, tell) -> None:
    driver = case.open()
    begin = time.monotonic()
    for number in range(_EACH):
        try:
            driver.append(texts.record(writer, number))
        except Exception as error:
            tell({"error": f"{type(error).__name__}: {error}".splitlines()[0]})
        else:
            tell({"ack": number})
    tell({"span": [begin, time.monotonic()]})
