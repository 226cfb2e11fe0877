"""Find the values in a sentence by their form, and the type of value that a question asks for.

The types are those that a form tells in English: money, a date, a time of day, a duration, a count, a
measure, a telephone number, a name, and a place.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from agentx.synthesis.language.words import vocabulary

Kind = Literal["money", "large", "count", "duration", "measure", "label", "phone", "time", "date", "name"]
"""``large`` is a bare number from 100 on, ``label`` one that names a thing: "room 4"."""

Wanted = Literal[
    "person", "place", "date", "time", "duration", "count", "age", "amount", "money", "phone", "reason", "any"
]

_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS = (
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half"
)
_WORDS = rf"(?:{'|'.join(f'{_ONES} {_TENS}'.split())})"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_SEASON = r"(?:spring|summer|autumn|winter|christmas|easter|new year)"
_CURRENCY = (
    r"(?:€|£|\$|(?:euros?|dollars?|pounds?|quid|bucks|pence|cents?|francs?|crowns?|eur|usd|gbp|chf)\b)"
)
_TIME_UNIT = (
    r"(?:ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|nights?|weeks?|fortnights?|months?|years?)\b"
)
_OTHER_UNIT = (
    r"(?:[gmtk]b|[kcm]?m|k?g|mg|kilos?|grams?|miles?|(?:kilo|centi|milli)?met(?:re|er)s?|lit(?:re|er)s?|ml|l"
    r"|degrees?|percent|per cent|kwh?|watts?|tons?|tonnes?|square)\b"
)
_PHONE = re.compile(r"\+?\d[\d /()-]{5,}\d")
_FEWEST_DIGITS = 7
_DATE = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{4}-\d\d-\d\d\b"
    r"|\b(?:in|since|by|until|till|from|of|last|next|this|early|late|mid|to|for|through|before|after"
    rf"|during|around|and|at|over)[ -](?:the )?(?:{_MONTH}|{_SEASON})\b(?! \d)"
    rf"|\b(?:{_DAY}|yesterday|today|tonight|tomorrow|(?:mid)?weekend|christmas|easter)\b"
    rf"|\b(?:this|last|next) (?:morning|afternoon|evening|week|month|year|night|{_SEASON})\b"
    r"|\b(?:19|20)\d\d\b"
    rf"|\b(?:\d+|{_WORDS}|a|an) (?:days?|weeks?|months?|years?) (?:ago|later|from now)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:\d{1,2}[:.]\d\d(?!\.?\d)|\d{1,2} ?(?:[ap]\.?m\b|o['’]clock)|noon|midnight"
    r"|half (?:past )?\w+|quarter (?:to|past) \w+"
    rf"|(?:at|after|before|until|till|by) (?:about |around )?(?:{_WORDS}|\d{{1,2}})\b(?![:.]\d)"
    rf"(?!\s?(?:{_MONTH}|{_TIME_UNIT}|{_CURRENCY}|[a-z]+s\b)))",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"(?P<money>[€£$]\s?)?(?P<number>\d+(?:[.,]\d+)*|\b{_WORDS}(?:[- ]{_WORDS})*\b)(?P<end>k\b|%)?",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\s?,?-?\s?(?:a|an|per|each|every|/)\s?(?:month|week|year|day|night|hour|lesson|head|person|piece)\b"
)
_LABELS = re.compile(r"\b[^\W\d_]+\s$")
_ENDS = re.compile(r"\s*(?:$|[.,;:!?)'’]|(?:is|are|was|has|had|and|or|to|for|goes|from|in|on|at|with|now)\b)")
_LARGE = 100
_NAME = re.compile(r"(?:(?<=^)|(?<=[\s(\"'“‘/-]))[^\W\d_a-zß-öø-ÿ][\w’'&.-]*|#\w+")
_NO_NAME = re.compile(rf"(?:{_DAY}|{_MONTH}|yesterday|today|tonight|tomorrow|i(?:['’]\w+)?)", re.IGNORECASE)
_ACTS = re.compile(
    r"['’]s?\b|,| (?:is|was|has|had|and|or|will|can|who|also|just|still|does|did|\w+(?:s|ed)\b|[A-ZÀ-Þ]\w)"
    r"|\.? [A-ZÀ-Þ]"
)
"""What follows a name at the head of a sentence: a verb, or another name."""
_BEGINS = re.compile(r"(?:^|[.!?…:]\s*[\"'“‘(]?)$")
_PLACE = re.compile(
    r"\b(?:in|at|on|to|from|near|under|behind|into|inside|above|below|beside|outside|next to|opposite"
    r"|through)\s"
    r"(?!(?:the )?(?:moment|time|end|meantime|way|case|fact|case|future|past)\b)\S",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b\d+[a-z]? [A-ZÀ-Þ]|\b[A-ZÀ-Þ]\w+ \d+[a-z]?\b")
RELATIVE = re.compile(
    r"\b(?:sister|brother|mother|mum|mom|father|dad|aunt(?:ie)?|uncle|cousin|nephew|niece|neighbou?r|friend"
    r"|colleague|boss|wife|husband|son|daughter|(?:boy|girl)friend|partner|grand\w+|twins|parents|family)\b",
    re.IGNORECASE,
)
_SMALL = vocabulary(
    """the a an and but or so if my our your we he she it they his her their its this that these those there
    here yes no not now then well by from since in on at to of for with as who what when where why how
    ok okay thanks please"""
)

FITS: dict[Wanted, dict[Kind, float]] = {
    "money": {"money": 1.0, "large": 0.8},
    "age": {"duration": 1.0, "count": 0.8, "large": 0.6},
    "duration": {"duration": 1.0},
    "count": {"count": 1.0, "large": 0.8, "label": 0.3},
    "amount": {"money": 1.0, "measure": 1.0, "large": 0.8, "count": 0.8, "duration": 0.4},
    "phone": {"phone": 1.0},
    "time": {"time": 1.0, "date": 0.3},
    "date": {"date": 1.0, "time": 1.0},
}


class Value(msgspec.Struct, frozen=True):
    """A value in a text, at ``text[start:end]``."""

    kind: Kind
    start: int
    end: int
    text: str


def values(text: str) -> list[Value]:
    """Return the numbers, dates and times of a text.

    >>> [(one.kind, one.text) for one in values("From 4 May it is £1,600 a month in flat 3.")]
    [('date', '4 May'), ('money', '1,600'), ('label', '3')]
    """
    found: list[Value] = []
    forms: tuple[tuple[Kind, re.Pattern[str]], ...] = (("phone", _PHONE), ("date", _DATE), ("time", _TIME))
    for kind, form in forms:
        for match in form.finditer(text):
            if _free(found, match.start(), match.end()) and (
                kind != "phone" or sum(map(str.isdigit, match[0])) >= _FEWEST_DIGITS
            ):
                found.append(Value(kind, match.start(), match.end(), match[0]))
    for match in _NUMBER.finditer(text):
        start, end = match.span("number")
        inside = start and text[start - 1].isalnum() and not match["money"]
        if not inside and _free(found, start, end):
            found.append(Value(_kind(text, match), start, end, match["number"]))
    return sorted(found, key=lambda one: one.start)


def _free(found: list[Value], start: int, end: int) -> bool:
    return all(end <= one.start or start >= one.end for one in found)


def _kind(text: str, match: re.Match[str]) -> Kind:
    start, end = match.span("number")
    after, number = text[end : end + 24], match["number"]
    digits = number.replace(",", "")
    large = number[0].isdigit() and digits.count(".") < 2 and float(digits) >= _LARGE  # noqa: PLR2004
    if (
        match["money"]
        or (match["end"] or "").lower() == "k"
        or re.match(rf"\s?{_CURRENCY}", after, re.IGNORECASE)
    ):
        return "money"
    if match["end"] or re.match(rf"[\s-]?{_OTHER_UNIT}", after, re.IGNORECASE):
        return "measure"
    if re.match(rf"[\s-]?{_TIME_UNIT}", after, re.IGNORECASE):
        return "duration"
    if large or number.lower().endswith(("hundred", "thousand")):
        return "money" if _EACH.match(after) else "large"
    if number[0].isdigit() and _LABELS.search(text[:start]) and _ENDS.match(after):
        return "label"
    return "count"


def names(text: str, lower: Collection[str] = ()) -> Iterator[Value]:
    """Yield the capitalised words of a text.

    The word that begins a sentence is none if it is common, or occurs in ``lower`` case elsewhere.

    >>> [one.text for one in names("Yesterday Mr Ferreira met Rui's boss.")]
    ['Mr', 'Ferreira', 'Rui']
    """
    for match in _NAME.finditer(text):
        word = re.sub(r"['’]s?$", "", match[0].rstrip(".-'’"))
        low = re.split(r"['’]", word.casefold())[0]
        if not word or _NO_NAME.fullmatch(word):
            continue
        begins = _BEGINS.search(text[: match.start()])
        if not begins or not (
            low in _SMALL or low in lower or not _ACTS.match(text, match.start() + len(word))
        ):
            yield Value("name", match.start(), match.start() + len(word), word)


_ASKS: tuple[tuple[Wanted, str], ...] = (
    ("person", r"who(?:m|se|['’]\w+)?\b"),
    ("date", r"when\b|(?:what|which) (?:day|date|month|year|week)s?\b"),
    ("time", r"what time\b"),
    ("place", r"where\b|(?:what|which) (?:place|town|city|village|country|street|address)\b"),
    ("reason", r"why\b|how come\b"),
    ("age", r"how old\b"),
    ("duration", r"how long\b"),
    ("count", r"how many\b"),
    (
        "phone",
        (
            r"what(?:['’]s| is| are| was)?\b.* (?:(?:tele)?phone|mobile|number)\b"
            r"|(?:what|which) (?:phone )?number\b"
        ),
    ),
    (
        "money",
        (
            r"how much (?:is|are|was|were|do|does|did|will|would|has|have|had|can|should|more|extra|money"
            r"|rent|deposit)\b"
            r"|(?:what|which)\b.* (?:pay|pays|paying|paid|costs?|costing|earns?|earned|charges?|worth"
            r"|price|rent|salary|fee|premium|wage|deposit|budget)\b|what .*(?:cost|pay)ing\b"
        ),
    ),
    ("amount", r"how (?:much|far|big|high|tall|heavy|large|often|wide|deep|fast|strong)\b"),
    ("any", r"how\b|which\b|what\b"),
)


def wanted(question: str) -> Wanted:
    """Return the type of value that a question asks for; ``any`` if its form does not tell.

    >>> wanted("How old is the dog?"), wanted("What does Ben pay?"), wanted("Is Ben in Rome?")
    ('age', 'money', 'any')
    """
    low = question.casefold()
    found = [
        (match.start(), place, kind)
        for place, (kind, form) in enumerate(_ASKS)
        if (match := re.search(rf"\b(?:{form})", low))
    ]
    return min(found)[2] if found else "any"


_TYPED: dict[Wanted, re.Pattern[str]] = {
    "money": re.compile(
        r"pa(?:y|ys|ying|id)|costs?|costing|earn\w*|charg\w*|worth|prices?|rents?|salar\w+|fees?|wages?|money"
    ),
    "age": re.compile(r"old|ages?"),
    "phone": re.compile(r"(?:tele)?phone|mobile|number|reach|call|ring"),
    "date": re.compile(r"days?|dates?|months?|weeks?|years?"),
    "time": re.compile(r"times?|hours?"),
    "duration": re.compile(r"long|tak\w+|last\w*"),
    "place": re.compile(r"place|live\w*|town|city|village|country|street"),
    "person": re.compile(r"person|name"),
}


def types(kind: Wanted, word: str) -> bool:
    """Return whether a word of a question only names the type of value that it asks for."""
    form = _TYPED.get(kind)
    return form is not None and form.fullmatch(word.casefold()) is not None


def fit(kind: Wanted, text: str, known: str) -> float:
    """Return from 0 to 1 how well a text has a value of a type that a question (``known``) lacks."""
    low = known.casefold()
    if kind in ("person", "place"):
        named = any(one.text.casefold() not in low for one in names(text))
        if kind == "person":
            return 1.0 if named else 0.5 if RELATIVE.search(text) else 0.0
        return (
            (1.0 if named else 0.7) if _PLACE.search(text) or _ADDRESS.search(text) else 0.4 if named else 0.0
        )
    if kind in ("reason", "any"):
        return 1.0
    held = [
        one
        for one in values(text)
        if not re.search(rf"(?<![\w,.]){re.escape(one.text.casefold())}(?![\w])", low)
    ]
    return max((FITS[kind].get(one.kind, 0.0) for one in held), default=0.0)
