"""A torn end, and a flipped byte: what is lost, and is it told?

The file that holds the records is the one that the driver names, or the one in which most of their marks stand in plain text;
without such a file, the largest. It is told when the product's own check, opening or reading says so; otherwise a wrong or missing
record is silent.
"""

import shutil
from pathlib import Path

from tests.compare import texts
from tests.compare.case import Case, Result
from tests.compare.driver import Driver, NotItsPurpose
from tests.faults.children import start

_RECORDS = 300
_CUT = 37
_PLACES = (1, 2, 3, 4, 5)
_READ_S = 90.0


def damage(case: Case) -> Result:
    """One cut of the last bytes, and five flipped bytes, each in a copy of its own."""
    whole = case.folder / "whole"
    made = start(lambda tell: _fill(case, whole)).finish(_READ_S)
    if made:
        raise RuntimeError(made[-1]["error"])
    named = case.make(whole, case.endpoint).record
    victim = whole / named if named else _holder(whole)
    size = victim.stat().st_size
    cases = {"cut": lambda data: data[:-_CUT]}
    for place in _PLACES:
        cases[f"flip {place}"] = lambda data, at=size * place // 6: _flipped(data, at)
    found = {name: _tried(case, whole, victim, name, change) for name, change in cases.items()}
    flips = [one for name, one in found.items() if name != "cut"]
    return {
        "file": str(victim.relative_to(whole)),
        "cut": found["cut"],
        "flips": len(flips),
        "flips_opened": sum(one["opened"] for one in flips),
        "flips_harmless": sum(one["opened"] and not one["lost"] and not one["told"] for one in flips),
        "flips_lost": sum(one["lost"] for one in flips if one["opened"]),
        "flips_lost_after_repair": _sum(one["lost_after_repair"] for one in flips),
        "flips_silent": sum(bool(one["lost"]) and not one["told"] for one in flips),
        "flips_told": sum(bool(one["told"]) for one in flips),
        "told_as": next((one["told"] for one in flips if one["told"]), "")[:200],
    }


def _sum(counts) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def _fill(case: Case, folder: Path) -> None:
    driver = case.open(folder)
    for number in range(_RECORDS):
        driver.append(texts.record(1, number))
    driver.close()


def _holder(folder: Path) -> Path:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return max(files, key=lambda path: (path.read_bytes().count(b"record-1-"), path.stat().st_size))


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :]


def _tried(case: Case, whole: Path, victim: Path, name: str, change) -> Result:
    copy = case.folder / name.replace(" ", "-")
    shutil.copytree(whole, copy, symlinks=True)
    path = copy / victim.relative_to(whole)
    path.write_bytes(change(path.read_bytes()))
    told = start(lambda tell: _look(case, copy, tell)).finish(_READ_S)
    shutil.rmtree(copy, ignore_errors=True)
    found = {key: value for one in told for key, value in one.items()}
    wanted = {texts.record(1, number).text for number in range(_RECORDS)}
    lost = len(wanted - set(found.get("texts", ())))
    repaired = None
    if not found.get("no_repair"):
        shutil.copytree(whole, copy, symlinks=True)
        path.write_bytes(change(path.read_bytes()))
        after = start(lambda tell: _repair(case, copy, tell)).finish(_READ_S)
        repaired = len(wanted - {text for one in after for text in one.get("texts", ())})
        shutil.rmtree(copy, ignore_errors=True)
    error = found.get("error", "" if "texts" in found else "no answer").strip().splitlines()
    return {
        "opened": "texts" in found,
        "lost": lost,
        "lost_after_repair": repaired,
        "told": (error[-1] if error else "") or found.get("check", ""),
    }


def _look(case: Case, folder: Path, tell) -> None:
    driver = case.make(folder, case.endpoint)
    try:
        tell({"check": driver.check()})
    except NotItsPurpose:
        tell({"check": ""})
    if type(driver).repair is Driver.repair:
        tell({"no_repair": True})
    driver.start()
    tell({"texts": driver.read()})


def _repair(case: Case, folder: Path, tell) -> None:
    driver = case.make(folder, case.endpoint)
    driver.repair()
    driver.start()
    tell({"texts": driver.read()})
