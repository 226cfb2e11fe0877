"""Decide whether a word that may also be a verb is a noun: "the record" is, "we record it" is not.

There is no dictionary: the neighbouring words decide. If they do not, the word does not count as a noun.
"""

from collections.abc import Sequence

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.pipelines.proving.phrase_search import Token, singular

ALSO_VERBS = vocabulary(
    """
    access account act address aim alarm alert amount answer archive arrange array attempt audit back
    balance ban bar base batch bill bind block board book bound branch break bridge broadcast buffer bundle
    cache call cancel capture cast catch cause chain challenge change channel charge chart check choice
    claim class clock clone close cluster code collect combine command comment commit compare compile
    complete compound conduct conflict connect contact contract control copy cost count cover crash credit
    cross cut cycle damage date deal debit default delay demand deposit design detail display document draft
    draw drive drop dump duplicate edit effect end escape estimate exchange excuse execute exit export
    extract fail fall fault feed fetch field figure file fill filter fix flag float flow focus fold form
    format forward frame function gain gate group guard guess guide handle hash head help hit hold hook host
    import increase index influence input insert instance intent interest interface issue iterate join
    journal judge jump key label lack land lap launch layer lead leak lease leave level lift limit line link
    list load lock log loop map mark market mask match matter measure mention merge message mind mirror
    model monitor move name need nest note notice number object offer open order output override owe own
    pack package page parse part pass paste patch path pause pay peer pipe place plan play point pool port
    position post present press print probe process produce profile program progress project prompt proof
    protest prune publish pull purchase push query question queue quote race raise range rank rate reach
    read reason rebase receipt record reference reflect refund register reject release rely remark repair
    repeat reply report repost request rescue research reserve reset resource rest result retry return
    reverse review reward ring risk rollback rotate round route row rule run sample save scale scan schedule
    scope score screen script search section select sense sequence serve service set shadow shape share
    shift shop show sign signal size slice sort sound source space split spread stack staff stage stamp
    stand start state status step stock stop store stream stress string strip structure study style subject
    submit suit sum supply support surface swap switch table tag tail take talk target task tax team tender
    term test text thread tie time title token total trace track trade train transfer transform transport
    trap travel tree trigger trust try turn twist type update upload upset use value vary version view visit
    vote wait walk wash waste watch water wave way weight wire word work wrap write yield zone
    """
)
"""Nouns of technical prose that are also verbs."""

_DETERMINERS = vocabulary(
    """
    the a an each every any some no this these those its his her their our your my whose another other such
    both many several few most more one two three four five six seven eight nine ten all first second third
    last next same single whole own
    """
)
_PREPOSITIONS = vocabulary(
    "of in into by per as with without between from for on at about among like than via within across"
)
_VERB_BEFORE = vocabulary(
    """
    to i we you they who can could will would shall should must may might do does did don't doesn't didn't
    can't cannot couldn't won't wouldn't shouldn't let's please not never always also then often usually
    just only
    """
)
_SINGULAR_SUBJECTS = vocabulary(
    "it he she who which that this also always never often usually then only just"
)
_OBJECTS = vocabulary("it them him her us me what how whether where why")
_FUNCTION = vocabulary(
    """
    is are was were be been being has have had do does did can could will would shall should must may might
    and or but nor so that which who when where while if because since until before after there not
    """
)
_SETS_APART = vocabulary("not than unlike call calls say says versus vs avoid instead")
_OF_THE_TEXT = vocabulary(
    "book chapter section page part article text guide manual figure table example paragraph"
)
_QUOTES = "\"'“”‘’«»„"
_BACK = 3


def is_noun(words: Sequence[Token], place: int, length: int = 1) -> bool:
    """Return whether words are used as a noun, and are not a name, code, quoted or set apart.

    Args:
        words: All words of a text.
        place: Index of the first word in question.
        length: Number of words.
    """
    last = place + length - 1
    token, behind = words[last], words[last + 1] if last + 1 < len(words) else None
    between = behind.before if behind else ""
    before = _clause_before(words, place)
    if _is_code(words[place], between) or _is_name(words, place) or _is_quoted(words[place], between):
        return False
    if behind and between in {"-", "‑"} and length == 1:
        return False  # "record-breaking"
    if _is_set_apart(before) or _is_phrase(before, token.word, behind.word if behind else ""):
        return False
    if length > 1 or (singular(token.text) not in ALSO_VERBS and not token.word.endswith("ing")):
        return True
    after = behind.word if behind and not behind.pauses else ""
    if token.word.endswith("ing"):
        return bool(_DETERMINERS & {*before[-2:]}) and after not in _DETERMINERS
    if singular(token.text) != token.word.removesuffix("'s"):
        return not _plural_is_verb(before, after)
    return token.word.endswith("'s") or _singular_is_noun(before, after)


def _clause_before(words: Sequence[Token], place: int) -> list[str]:
    """Return the last few words before a place in its part of the sentence."""
    found: list[str] = []
    for at in range(place, max(place - _BACK - 1, 0), -1):
        if words[at].pauses:
            break
        found.append(words[at - 1].word)
    return found[::-1]


def _plural_is_verb(before: list[str], after: str) -> bool:
    last = before[-1] if before else ""
    if last in _SINGULAR_SUBJECTS or (last.endswith("ly") and after in _DETERMINERS | _OBJECTS):
        return True
    if last in _DETERMINERS or last in _PREPOSITIONS or last.endswith("'s"):
        return False
    if after in _DETERMINERS | _OBJECTS:
        return True
    subject = len(before) > 1 and before[-2] in _DETERMINERS and last not in _FUNCTION
    return subject and bool(after) and after not in _FUNCTION - {"that"} and after not in _PREPOSITIONS


def _singular_is_noun(before: list[str], after: str) -> bool:
    last = before[-1] if before else ""
    if last in _VERB_BEFORE or not before:
        return False
    if last in _DETERMINERS or last == "that" or last.endswith("'s"):
        return True
    if last in _PREPOSITIONS:
        return after not in _DETERMINERS
    plural = singular(last) != last
    return (
        not plural and after not in _DETERMINERS | _OBJECTS and any(word in _DETERMINERS for word in before)
    )


def _is_code(token: Token, between: str) -> bool:
    return (
        token.before.endswith(("_", ".", "@", "#", "$", "\\", "--", "::"))
        or between.startswith(("_", "()", "=", "::"))
        or between in {".", "("}
    )


def _is_name(words: Sequence[Token], place: int) -> bool:
    """Return whether a word is a name: capitalised, though no sentence, title or list begins there."""
    token = words[place]
    if not token.text[0].isupper() or token.pauses or not place:
        return False
    line = [one for one in words[max(place - 20, 0) : place + 20] if one.line == token.line]
    small = sum(1 for one in line if one.text[0].islower())
    return small > len(line) / 2


def _is_quoted(token: Token, between: str) -> bool:
    return token.before[-1:] in tuple(_QUOTES) and between[:1] in tuple(_QUOTES)


def _is_set_apart(before: list[str]) -> bool:
    """Return whether a word is named only to exclude it.

    Examples: "not a record", "instead of a record", "what others call a record".
    """
    at = len(before)
    while at and before[at - 1] in _DETERMINERS | {"of"}:
        at -= 1
    return bool(at) and before[at - 1] in _SETS_APART


def _is_phrase(before: list[str], word: str, after: str) -> bool:
    """Return whether a word is part of a fixed phrase, or names the text itself.

    Examples: "in view of", "step by step"; "this book".
    """
    last = before[-1] if before else ""
    return (
        (last == "in" and after == "of")
        or (last == "this" and word in _OF_THE_TEXT)
        or (after == "by" and not before)
        or before[-2:] == [word, "by"]
    )
