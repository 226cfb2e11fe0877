"""Compiles rules about sizes."""

import re

from agentx.synthesis.compiling.reading.places import formats_in
from agentx.synthesis.compiling.reading.rule import RuleReading
from agentx.synthesis.compiling.reading.stance import sentences_of
from agentx.synthesis.compiling.reading.where import Where, where_of
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, CommandCheck, Measured, SizeCheck, Unit

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: number for number, word in enumerate(_ONES.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), start=2)
}
_WORD = "|".join((*_NUMBERS, "hundred", "thousand", "dozen", "a hundred", "a thousand", "a dozen"))
_AMOUNT = compiled(
    rf"(?<![\w.])(?<!\bthe )(?P<number>\d{{1,3}}(?:[,' ]\d{{3}})+|\d{{1,6}}k?"
    rf"|(?:{_WORD})(?:[ -](?:and )?(?:{_WORD}))*)(?:[ -])?"
    r"(?:source |code |physical |full |short |whole )?(?P<unit>lines?|loc|words?|char(?:acter)?s?"
    r"|columns?|cols?|letters?|pages?)\b"
)
_LIMIT = compiled(
    r"\b(?:at (?:the )?most|(?:no|not|never|isn't|don't)\b.{0,30}\b(?:more|longer|bigger|larger|over|past"
    r"|beyond|above|exceed\w*)"
    r"|max(?:imum|es)?|up to|under|below|within|less|fewer|shorter|limit\w*|cap(?:s|ped|ping)?|cuts?"
    r"|exceed\w*|more than|longer"
    r"|over|beyond|past|above|keep|stay|tops|ceiling|budget|fit(?:s|ting)? (?:in|on|into)|never|only"
    r"|or so|upper bound|split|stop)\b"
)
_BELOW = compiled(r"\b(?:under|below|less than|fewer than|shorter than)\b")
_AT_LEAST = compiled(
    r"\b(?:at least|min(?:imum)?|(?:no|not) (?:less|fewer|shorter) than|or more|(?:less|fewer"
    r"|shorter) than .{0,20}\bis (?:too|not))\b"
)
_MEASURED: tuple[tuple[Measured, re.Pattern[str]], ...] = (
    ("function", compiled(r"\b(?:functions?|methods?|procedures?|subroutines?|handlers? bod\w+)\b")),
    (
        "answer",
        compiled(
            r"\b(?:answers?|answering|repl(?:y|ies|ying)|respon(?:ses?|d\w*)|final (?:message|text|word)"
            r"|summar(?:y|ies)"
            r"|messages? to me|tell(?:ing)? me|report(?:ing)? back|get back to me|talk(?:ing)? to me"
            r"|explain\w*|chat)\b"
        ),
    ),
    (
        "file",
        compiled(
            r"\b(?:files?|modules?|components?|class(?:es)?|documents?|chapters?|articles?|posts?"
            r"|lessons?|notes?|pages?|scripts?"
            r"|abstracts?|newsletters?|stylesheets?|templates?|essays?|scenes?|queries|drafts?|entries"
            r"|readme|stories|letters?"
            r"|blurbs?|recipes?|sheets?|handouts?|columns|briefs?|memos?|releases? notes?|descriptions?"
            r"|bios?)\b"
        ),
    ),
)
_NOT_MEASURED = compiled(
    r"\b(?:commits?|subjects?|titles?|branch(?:es)?|tweets?|(?:per|a|each|every|no|any) sentences?"
    r"|paragraphs?"
    r"|parameters?|arguments?"
    r"|headlines?|names?"
    r"|captions?|alt|meta|docstrings?|comments?|headings?)\b"
)
_SUBJECT = compiled(
    r"\bcommits?\b.{0,30}?\b(?:subjects?|titles?|summar(?:y|ies)|first lines?"
    r"|messages?)\b|\b(?:subjects?"
    r"|titles?|first) (?:lines? )?(?:of )?(?:\w+ ){0,2}?commits?\b"
)
_WORDS_A_PAGE = 500


def compile_sizes(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of a rule about a size."""
    where, words = where_of(reading), reading.words
    amounts = list(_AMOUNT.finditer(words))
    amount = next((one for one in amounts if _LIMIT.search(_sentence(words, one.start()))), None)
    amount = amount or (amounts[0] if amounts and _LIMIT.search(words) else None)
    if not amount or where.open or _AT_LEAST.search(words):
        return ()
    unit, number = _unit(amount["unit"].lower()), _number(amount["number"].lower())
    if unit == "characters" and number and _SUBJECT.search(words):
        longer = number + 1 - bool(_BELOW.search(words))
        first_line = rf"^(?:--message=)?(?=[^\n]*\s)(?!-)[^\n]{{{longer},}}(?<![.\n])(?:\n|\Z)"
        doubt = "whether the text is the subject of the commit"
        return (CommandCheck(programs=("git commit",), arguments=(first_line,), doubt=doubt),)
    measured = _measured(words, amount, where)
    if not measured or not number:
        return ()
    pages = amount["unit"].lower().startswith("page")
    below = _BELOW.search(_sentence(words, amount.start()))
    return (
        SizeCheck(
            of=measured,
            unit=unit,
            at_most=number * _WORDS_A_PAGE if pages else number - bool(below),
            paths=() if measured == "answer" else where.paths or formats_in(words),
            exceptions=where.exceptions,
            doubt="how many words a page has" if pages else where.doubt,
        ),
    )


def _sentence(words: str, at: int) -> str:
    return next(words[start:end] for start, end in sentences_of(words) if at < end)


def _unit(word: str) -> Unit:
    if word.startswith(("char", "col", "letter")):
        return "characters"
    return "words" if word.startswith(("word", "page")) else "lines"


def _number(words: str) -> int:
    """Return the number that words say.

    >>> _number("forty"), _number("two hundred and fifty"), _number("1,000"), _number("a hundred")
    (40, 250, 1000, 100)
    """
    if words[0].isdigit():
        return int(re.sub(r"\D", "", words)) * (1000 if words.endswith("k") else 1)
    whole = part = 0
    for word in re.split(r"[ -]", words):
        if word in ("hundred", "dozen"):
            part = max(part, 1) * (100 if word == "hundred" else 12)
        elif word == "thousand":
            whole, part = whole + max(part, 1) * 1000, 0
        else:
            part += _NUMBERS.get(word, 0)
    return whole + part


def _measured(words: str, amount: re.Match[str], where: Where) -> Measured | None:
    sentence = _sentence(words, amount.start())
    if _NOT_MEASURED.search(sentence):
        return None
    unit = amount["unit"].lower()
    rest = words.replace(amount.group(), " ", 1)
    if unit.startswith(("char", "col")) and not re.search(
        r"(?i)\b(?:files?|answers?|repl|summar|blurbs?"
        r"|bios?)",
        rest,
    ):
        return "line"
    if unit.startswith(("char", "col")) and re.search(r"(?i)\b(?:lines?|wide|width|wrap)\b", sentence):
        return "line"
    near = sentence.replace(amount.group(), " ", 1)
    for text in (near, rest):
        for name, pattern in _MEASURED:
            if pattern.search(text) and not (name == "answer" and where.paths):
                return name
    return "file" if where.paths else None
