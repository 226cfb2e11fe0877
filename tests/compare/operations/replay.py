"""The state again from history alone, the same bytes twice, and the state of an earlier moment."""

from tests.compare import texts
from tests.compare.case import Case, Result
from tests.compare.driver import NotItsPurpose

_RECORDS, _EARLIER = 60, 20


def replay(case: Case) -> Result:
    """Each part is ``yes``, ``no``, or ``not its purpose``."""
    driver = case.open()
    for number in range(_RECORDS):
        driver.append(texts.record(1, number))
    driver.close()
    driver = case.open()
    before = _or_not(driver.digest)
    found: Result = {"earlier": _earlier(driver)}
    driver.close()
    driver = case.open()
    again = _or_not(driver.digest)
    found["twice"] = "not its purpose" if before is None else "yes" if again == before else "no"
    rebuilt = _or_not(lambda: (driver.rebuild(), driver.digest())[1])
    found["rebuilt"] = (
        "not its purpose" if rebuilt is None or before is None else "yes" if rebuilt == before else "no"
    )
    driver.close()
    return found


def _earlier(driver) -> str:
    wanted = [texts.record(1, number).text for number in range(_EARLIER)]
    got = _or_not(lambda: driver.as_of(_EARLIER))
    return "not its purpose" if got is None else "yes" if got == wanted else "no"


def _or_not(do):
    try:
        return do()
    except NotItsPurpose:
        return None
