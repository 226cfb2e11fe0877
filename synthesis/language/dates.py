"""Find dates in English text, and resolve relative ones against the time at which it was said.

"yesterday" and "last Thursday" mean a day only together with the day on which they were said. A text that is
shown later therefore has the date beside the words (:func:`with_dates`).
"""

import re
from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache

import msgspec

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_NUMBERS |= {"eight": 8, "nine": 9, "ten": 10, "twelve": 12, "a couple of": 2}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11)}

_SHIFTS = {"the day before yesterday": -2, "the day after tomorrow": 2, "yesterday": -1, "tomorrow": 1}
_SHIFTS |= {"last night": -1, "tonight": 0, "today": 0}
_SHIFTS |= {"this morning": 0, "this afternoon": 0, "this evening": 0}

_DAY = rf"(?:{'|'.join(_DAYS)})"
_MONTH = rf"(?:{'|'.join(rf'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)"
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?:day|week|month|year)"
_NUMBER = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_HABIT = r"(?!s\b|['’]s\b| (?:morning|afternoon|evening|night)s\b)"
_AT_MONTH = "|".join(
    f"(?<={word} )"
    for word in ("in", "until", "till", "since", "from", "to", "by", "of", "before", "after", "during")
)

_FORMS = tuple(
    re.compile(rf"\b{form}(?!\w)", re.IGNORECASE)
    for form in (
        r"(?P<iso>\d{4}-\d\d-\d\d)",
        rf"(?:the )?{_NUMBER} (?:of )?(?P<month>{_MONTH})\.?(?:,? {_YEAR})?",
        rf"(?P<month>{_MONTH})\.? (?:the )?{_NUMBER}(?![\d:.]\d)(?:,? {_YEAR})?",
        rf"(?P<since>{'|'.join(_SHIFTS)})(?: (?:morning|afternoon|evening|night))?",
        rf"(?P<which>last|next|this coming|this past) (?P<weekday>{_DAY})",
        rf"(?P<weekday>{_DAY}) (?P<later>week)",
        rf"(?:on|this|by|until|till|from|since|before|after) (?P<weekday>{_DAY}){_HABIT}",
        rf"(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? (?P<ago>ago|from now|from today)",
        rf"in (?P<count>{_COUNT}) (?P<unit>{_UNIT})s?(?:['’] time)?",
        r"(?P<which>last|next|this) (?P<unit>week|weekend|month|year)",
        r"the (?P<ordinal>[12]?\d|3[01])(?:st|nd|rd|th)",
        rf"(?P<month>{_MONTH}) {_YEAR}",
        rf"(?P<which>last |next |this )?(?P<season>{'|'.join(_SEASONS)})",
        rf"(?:{_AT_MONTH}|(?P<which>last |next |this ))(?P<month>{_MONTH})",
        rf"(?:in|until|since|of) {_YEAR}",
    )
)
_LISTED = re.compile(
    rf"\s*(?:,|and|or|to|n|&|-|–)\s*(?:{_DAY})|\s*,?\s*(?:the )?\d{{1,2}}\b(?!:)", re.IGNORECASE
)
"""What follows a weekday that is one of several, or that belongs to a date."""

_RELATIVE = ("since", "weekday", "ago", "count", "unit")
"""Groups of the forms that mean a day only together with the day on which they were said."""

_PAST = re.compile(
    r"\b(?:\w+ed|was|were|had|did|went|got|took|made|saw|met|came|said|told|found|left|bought|gave|ran|won"
    r"|lost|felt|began|spent|built|broke|wrote|ate|drove|flew|sent|taught|became|rang|fell|sold|paid|put|cut)\b",
    re.IGNORECASE,
)
_SINCE_THEN = re.compile(r"\b(?:time|have|has)\b[^.!?\n]*$", re.IGNORECASE)
_ENDS = re.compile(r"[.!?]\s|\n")
_FUTURE = re.compile(
    r"\b(?:will|shall|going to|won['’]t|\w+['’]ll|is|are|am|\w+['’](?:s|re|m))\b", re.IGNORECASE
)


class DateSpan(msgspec.Struct, frozen=True):
    """A date or a period in a text.

    Attributes:
        start: Offset of its first character; ``end`` is one past the last.
        first: Its first day; ``last`` is its last day.
        relative: Whether its words mean it only together with the day on which they were said.
    """

    start: int
    end: int
    first: date
    last: date
    relative: bool = False


def dates_in(text: str, said: str) -> list[DateSpan]:
    """Return the dates of a text in order; ``said`` is the time at which it was said, in ISO 8601.

    A date without a year is the nearest one. A weekday without "last" or "next" is the last one after a verb
    in the past, otherwise the next one.

    >>> [str(one.first) for one in dates_in("Moved from 4 March to next Friday.", "2026-02-17T09:00:00Z")]
    ['2026-03-04', '2026-02-20']
    """
    try:
        day = date.fromisoformat(said[:10])
    except ValueError:
        return []
    found: list[DateSpan] = []
    for form in _FORMS:
        for match in form.finditer(text):
            if any(one.start < match.end() and match.start() < one.end for one in found):
                continue
            parts = {name: value.casefold() for name, value in match.groupdict().items() if value}
            if "weekday" in parts and "later" not in parts and _LISTED.match(text, match.end()):
                continue
            past = _in_past(text, match.start())
            if (
                "count" in parts
                and "ago" not in parts
                and (past or _SINCE_THEN.search(text, 0, match.start()))
            ):
                continue  # "the first time in four years"
            if period := _period(parts, day, past=past):
                relative = any(name in parts for name in _RELATIVE)
                found.append(DateSpan(match.start(), match.end(), *period, relative))
    return sorted(found, key=lambda one: one.start)


@lru_cache(maxsize=1 << 14)
def with_dates(text: str, said: str) -> str:
    """Return a text with the date beside each relative one; cached, as memories recur.

    >>> with_dates("We shipped last Thursday.", "2026-06-01T13:08:00Z")
    'We shipped last Thursday (2026-05-28).'
    """
    for one in reversed(dates_in(text, said)):
        if one.relative:
            shown = f"{one.first}" if one.first == one.last else f"{one.first} to {one.last}"
            text = f"{text[: one.end]} ({shown}){text[one.end :]}"
    return text


def _in_past(text: str, place: int) -> bool:
    """Return whether the nearest verb before a place, in its sentence, is in the past."""
    begin = max((mark.end() for mark in _ENDS.finditer(text, 0, place)), default=0)
    past = [match.start() for match in _PAST.finditer(text, begin, place)]
    future = [match.start() for match in _FUTURE.finditer(text, begin, place)]
    return bool(past) and max(past) > max(future, default=-1)


def _period(parts: dict[str, str], day: date, *, past: bool) -> tuple[date, date] | None:
    try:
        if "iso" in parts:
            return _one(date.fromisoformat(parts["iso"]))
        if "since" in parts:
            return _one(day + timedelta(_SHIFTS[parts["since"]]))
        if "weekday" in parts:
            return _one(_weekday(parts, day, past=past))
        if "count" in parts:
            return _counted(parts, day)
        if "unit" in parts:
            return _unit(parts["unit"], day, {"last": -1, "next": 1}.get(parts["which"], 0))
        if "ordinal" in parts:
            return _one(_ordinal(int(parts["ordinal"]), day, past=past))
        return _named(parts, day, past=past)
    except (ValueError, OverflowError):  # 30 February, or before the first year
        return None


def _named(parts: dict[str, str], day: date, *, past: bool) -> tuple[date, date]:
    """Return the period of a season, of a month, of a day in a month, or of a year."""
    which = parts.get("which", "").strip()
    if "season" in parts:
        begin, end = _SEASONS[parts["season"]]
        year = _nearest(day, begin, which, past=past)
        return date(year, begin, 1), _month_end(year, end)
    if "month" not in parts:
        return date(int(parts["year"]), 1, 1), date(int(parts["year"]), 12, 31)
    month = next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(parts["month"][:3]))
    year = int(parts["year"]) if "year" in parts else _nearest(day, month, which, past=past)
    if "day" in parts:
        return _one(date(year, month, int(parts["day"])))
    return date(year, month, 1), _month_end(year, month)


def _one(day: date) -> tuple[date, date]:
    return day, day


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _nearest(day: date, month: int, which: str, *, past: bool) -> int:
    """Return the year in which a month is nearest to a day, or is the last or next one."""
    if which == "last":
        return day.year if month < day.month else day.year - 1
    if which == "next":
        return day.year if month > day.month else day.year + 1
    return min(
        sorted((day.year, day.year - 1, day.year + 1), reverse=not past),
        key=lambda year: abs((year - day.year) * 12 + month - day.month),
    )


def _weekday(parts: dict[str, str], day: date, *, past: bool) -> date:
    which = parts.get("which", "")
    away = (_DAYS.index(parts["weekday"]) - day.weekday()) % 7
    if which in ("last", "this past") or (past and not which and "later" not in parts):
        return day - timedelta((7 - away) % 7 or 7 if which else (7 - away) % 7)
    return day + timedelta((away or 7 if which == "next" else away) + 7 * ("later" in parts))


def _counted(parts: dict[str, str], day: date) -> tuple[date, date]:
    count = _NUMBERS.get(parts["count"]) or int(parts["count"])
    count = -count if parts.get("ago") == "ago" else count
    return _one(shifted(day, count, parts["unit"]))


def shifted(day: date, count: int, unit: str) -> date:
    """Return a day moved by a number of days, weeks, months or years.

    >>> shifted(date(2026, 1, 31), 1, "month")
    datetime.date(2026, 2, 28)
    """
    if unit in ("day", "week"):
        return day + timedelta(count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _unit(unit: str, day: date, way: int) -> tuple[date, date]:
    if unit in ("month", "year"):
        first = shifted(day.replace(day=1) if unit == "month" else day.replace(month=1, day=1), way, unit)
        return first, shifted(first, 1, unit) - timedelta(1)
    monday = day - timedelta(day.weekday()) + timedelta(7 * way)
    return (monday + timedelta(5) if unit == "weekend" else monday), monday + timedelta(6)


def _ordinal(number: int, day: date, *, past: bool) -> date:
    """Return the nearest day of this number before or after a day."""
    months = (shifted(day.replace(day=1), way, "month") for way in ((0, -1, -2) if past else (0, 1, 2)))
    each = [
        month.replace(day=number) for month in months if number <= _month_end(month.year, month.month).day
    ]
    return next(one for one in each if (one <= day if past else one >= day))
