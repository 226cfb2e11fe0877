"""Compiles rules about files: which may not be written or deleted, and where files may be written."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from agentx.synthesis.compiling.reading.places import MARK, globs_in, masked
from agentx.synthesis.compiling.reading.rule import RuleClause, RuleReading
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import STOP_WORDS, stem, vocabulary
from agentx.synthesis.memory.checks import Check, FileAction, PathCheck


@cache
def _stems(words: str) -> frozenset[str]:
    """Return the stems of words, to compare verbs in any form."""
    return frozenset(map(stem, words.split()))


_GENERIC = STOP_WORDS | vocabulary(
    """
    folder folders directory directories dir tree subtree stuff thing things content contents whole rest
    entire
    area part parts document documents page pages chapter chapters copy copies line lines byte bytes single
    existing old older already new another else else's inside below beneath within around near nearby outside
    manually hand hands yourself myself directly ever again anymore any please circumstance circumstances
    be been
    gets get got being may might allow allowed permission single-handedly text texts data note notes record
    records even either both neither agent ai you're i'm under no nothing none nobody anyone everything place
    places somewhere anywhere nowhere elsewhere work change changes edit edits write writes there here go
    going
    go's let's touch stay stays keep keeps read reading fine free welcome happy unless root level top hey
    ok project repo repository codebase workspace my our something
    goes lands land belongs belong dare raw
    """
)
"""Words that name no thing of their own beside a marked one."""


_NEGATION = (
    r"(?:never|not|no|none|nothing|nobody|no[- ]one|neither|nor|without|cannot|(?:do|does|did|is|are"
    r"|was|were|must"
    r"|should|would|could|ca|wo|has|have|had|need|sha)n['’]?t|avoid(?:ing)?|stop|quit|refrain from"
    r"|under no circumstances|forbidden to|keep from|steer clear of|refuse to|instead of|rather than)"
)

_CHANGE = (
    "touch edit hand-edit modify change alter rewrite rewritten rewrote reformat overwrite overwritten update"
    " tamper tinker mess fiddle adjust tweak improve tidy polish refactor patch reorder rearrange"
    " correct mangle"
    " amend revise retouch replace meddle poke fix regenerate recreate rebuild write written wrote"
)
_DELETE = "delete remove rename move drop purge wipe prune erase trash discard relocate"
_CREATE = (
    "create add make generate commit save put introduce leave start land place dump produce"
    " store drop export check spawn"
)
_VERBS = f"{_CHANGE} {_DELETE} {_CREATE}"
_ALL: tuple[FileAction, ...] = ("create", "change", "delete")

_NEGATED = compiled(rf"^(?:{_NEGATION})$")
_ENDS = frozenset(
    (",", ":", "(", ")", "by", "until", "because", "without", "when", "since", "as", "unless", "if")
)
_WHO = (
    r"(?:I|me|myself|humans?|people|(?-i:[A-Z]\w+)|the (?:\w+ )?(?:team|board|lawyers?|owners?|editors?"
    r"|office"
    r"|bot|script))"
)
_SAFE = (
    r"(?:read[- ]only|off[- ]limits|frozen|locked|sealed|untouchable|immutable|sacred|holy|history|evidence"
    r"|taboo|out of (?:bounds|reach)|no[- ]go|hands[- ]off|append[- ]only|write[- ]protected|verboten"
    r"|archived"
    r"|(?:strictly )?for (?:reading|reference|looking)|none of your business|(?:not|n['’]t) (?:yours|for you)"
    r"|mine\b|(?:carved|set) in stone|(?-i:[A-Z]\w+|my|(?:somebody|someone) else)['’]?s?(?: \w+)? (?:turf"
    r"|territory|job|domain|baby|call|desk|department|area|business|responsibility|property|world)"
    r"|(?-i:[A-Z]\w+['’]s)(?=$|\s*(?:,|and\b|alone\b)))"
)
_MADE = (
    r"(?:(?:auto-?|machine-?|re)?generated|vendored|overwritten|mirrored|synced|exported|signed(?: off)?"
    r"|published|submitted|closed|final|comes? (?:out of|back from|straight from|from)|(?:produced|owned"
    r"|maintained|looked after|managed|handled) by|under (?:review|audit|embargo|legal hold)|belongs? to"
    r"|go(?:es)? through (?-i:[A-Z])\w+)"
)
_AS_IS = (
    r"(?:exactly |just |precisely )?(?:as (?:it|they|is|are)|the way|how (?:it|they)|untouched|unchanged"
    r"|unedited|intact|alone|put\b|where (?:it|they)|in peace|what (?:it|they))"
)
_NEAR = rf"[^{MARK}]{{0,60}}?"
_SHIELDED = compiled(
    "|".join(
        (
            (
                rf"{MARK}{_NEAR}\b(?:(?:is|are|stays?|remains?|was|were|as|been|counts? as)\b|(?<=['’])(?:s"
                rf"|re)\b)"
                rf" (?:\w+ly |all |now |both |already |still |considered |to be |to stay )*{_SAFE}"
            ),
            rf"{MARK}{_NEAR}\b(?:stays?|remains?|keeps?|left|kept|be) (?:\w+ )?{_AS_IS}",
            rf"\b(?:leave|leaving) (?:the |our )?{MARK} (?:\w+ )?(?:to|for) {_WHO}",
            rf"\b(?:leave|let|keep)\b [^,;]{{0,40}}?{MARK}[^,;]{{0,24}}?\b(?:be\b(?! )|{_AS_IS}|read-only)",
            r"\b(?:hands|fingers|paws|mitts) (?:\w+ )?(?:off|out of|away from)\b",
            r"\b(?:stay|keep|stays|steer) (?:well |far )?(?:out|away|off|clear) (?:of|from)\b",
            (
                r"\b(?:don['’]t|do not|never) (?:even )?(?:go (?:near|in|into|anywhere near)|enter"
                r"|set foot in)\b"
            ),
            rf"\bonly {_WHO} (?:\w+ ){{0,3}}?(?:touch|edit|change|write|modif|update|work)\w*",
            rf"\b(?:nobody|no[- ]one) (?:but|except|besides|other than) {_WHO}\b|\bi(?:['’]m| am) the only\b",
            (
                rf"\b(?-i:I|[A-Z]\w+) (?:\w+ )?(?:look after|maintain|own|handle|edit|write|do|keep|manage"
                rf"|curate|take care of|tend|update)s?\b[^,;]*?{MARK}[^,;]*?\b(?:(?:my|him|her)self"
                rf"|personally"
                r"|alone)\b"
            ),
        )
    )
)
"""Says that files stay as they are, or that only others may change them."""

_WEAKLY = compiled(
    rf"{MARK}{_NEAR}\b(?:{_MADE}|gets? (?:replaced|overwritten|regenerated|wiped))"
    rf"|\b(?:re)?generates? (?:\w+ ){{0,3}}{MARK}"
)
"""Says where files come from, so that a change by hand would perhaps be lost."""

_REFERRED = compiled(
    r"\b(?:it|they|them|that|those|these|this|everything|(?:the|that|this|those"
    r"|these) (?:\w+ )?(?:folder|files?"
    r"|directory|whole thing|rest|ones?))\b(?! (?:[a-z]+ )?(?:function|class|word|package|librar)\w*)"
)
_EVERYWHERE: tuple[str, ...] = ("**",)
_TURNED = 4
"""Number of words by which a negation may follow its verb."""

_OLD = compiled(
    r"\b(?:existing|old(?:er)?|already|merged|applied|published|past|released|(?:once"
    r"|after) (?:\w+ ){1,4}?(?:merged"
    r"|applied|run|shipped|released|published|in|there))\b"
)
_ELSE = compiled(r"\b(?:nowhere else|not (?:any|some)where else|elsewhere is|(?:and )?nothing else)\b")
_ONLY = compiled(
    r"\b(?:only|just|nothing but|exclusively|solely|restrict\w*|limit\w*|confine\w*|nowhere else)\b"
)
_INSIDE = compiled(
    r"\b(?:stay|keep|remain|work|restrict\w*|limit\w*|confine\w*)\b.{0,40}\b(?:in|inside|within|to|under)\b"
)


def compile_files(reading: RuleReading) -> tuple[Check, ...]:
    """Return the checks of a rule about files."""
    if rest := _rest_of(reading):
        return (rest,)
    named: tuple[str, ...] = ()
    found: list[PathCheck] = []
    for number, clause in enumerate(reading.clauses):
        words = masked(clause.words) if clause.globs else _REFERRED.sub(MARK, clause.words)
        if only := _only_in(clause, words, reading, clause.globs or named):
            return (only,)
        if found and not clause.globs:
            continue
        later = next((one.globs for one in reading.clauses[number + 1 :] if one.globs), ())
        globs = clause.globs or named or (later if MARK not in words else ())
        actions = _forbidden(words, names=bool(clause.globs))
        if globs and actions:
            if _OLD.search(words):
                actions = ("change", "delete")
            elif "create" in actions and "delete" not in actions and _is_folder(globs):
                actions = ("create",)
            below = ("/*/**",) if all(re.match(r"/\*[^/]*$", glob) for glob in globs) else ()
            found.append(PathCheck(paths=globs, actions=actions, exceptions=(*reading.exceptions, *below)))
        named = clause.globs or named
    return tuple(found) or tuple(_kept_as_is(reading))


_REST = compiled(
    r"\b(?:(?:everything|anything|everywhere|anywhere) else|all (?:the )?other(?:s| \w+)|the (?:whole )?rest"
    r"|(?:any|every|the) other (?:folders?|packages?|director(?:y|ies)|files?|modules?))\b"
)
_OURS = compiled(
    r"\b(?:only|ours|yours|(?:is|are) where (?:you|we)|(?:you|we) (?:can|may|should)|your (?:playground"
    r"|territory|area|job"
    r"|folder)|free to|fine|ok(?:ay)?|allowed)\b"
)


def _rest_of(reading: RuleReading) -> PathCheck | None:
    """Return the check of a rule that protects all but some files ("a/ is yours, everything else is not")."""
    match = _REST.search(reading.words)
    before = reading.words[: match.start()] if match else ""
    allowed = globs_in(before)
    if not match or not allowed or not _OURS.search(before) or globs_in(reading.words[match.end() :]):
        return None
    after = f"{MARK} {masked(reading.words[match.end() :])}"
    if not (_SHIELDED.search(after) or _negated(_tokens(after), names=False) or _NOT_YOURS.search(after)):
        return None
    return PathCheck(paths=_EVERYWHERE, exceptions=(*allowed, *reading.exceptions), actions=_ALL)


_NOT_YOURS = compiled(
    r"\b(?:not|n['’]t) (?:\w+ )?(?:touch|write|edit|change)\w*\b|\bother owners?\b|\boff limits\b"
    r"|\bread[- ]only\b"
    r"|\b(?:not|n['’]t|none of) your\b|\bno concern\b"
)
_STAYS = compiled(
    rf"\b(?:stays?|remains?|is|are|was|were|kept|left|leave|keep)\b [^.;]{{0,30}}?(?:{_AS_IS}|{_SAFE})"
    r"|\bnot (?:a|one|even a|a single) (?:comma|word|byte|letter|line|character|pixel|thing|bit|iota)\b"
    r"|\b(?:ha(?:s|ve) no business|(?:do|does)(?:n['’]t| not) belong|nothing (?:goes|changes)) (?:in )?"
    r"(?:it|there|them|those)\b"
)


def _kept_as_is(reading: RuleReading) -> Iterator[PathCheck]:
    """Yield the check of a rule that names files once, and says elsewhere that they stay as they are."""
    named = [clause for clause in reading.clauses if clause.globs]
    if not named or not _STAYS.search(reading.words):
        return
    said = _STAYS.search(reading.words)
    first = reading.words.find(named[0].words)
    for clause in named[1:]:  # a place for something else
        if said and reading.words.find(clause.words) < said.start() and first >= 0:
            return
    yield PathCheck(paths=named[0].globs, actions=_ALL, exceptions=reading.exceptions)


def _is_folder(globs: Sequence[str]) -> bool:
    return all(glob.endswith("/**") for glob in globs)


def compile_origins(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of a rule that only says where files come from ("src/gen is generated from …")."""
    for clause in reading.clauses:
        if clause.globs and _WEAKLY.search(masked(clause.words)):
            doubt = "It is uncertain whether the files may be changed by hand."
            return (PathCheck(paths=clause.globs, actions=_ALL, exceptions=reading.exceptions, doubt=doubt),)
    return ()


def _forbidden(words: str, *, names: bool) -> tuple[FileAction, ...]:
    """Return what a clause forbids to do with files."""
    return _negated(_tokens(words), names=names) or (_ALL if _SHIELDED.search(words) else ())


def _negated(words: list[str], *, names: bool) -> tuple[FileAction, ...]:
    """Return the actions that a negation forbids; the rest of its clause must name files and nothing else."""
    for at, word in enumerate(words):
        if not _NEGATED.match(word) or words[at - 1 : at] in (["has"], ["have"], ["had"]):
            continue
        first = max(0, at - _TURNED)  # "please change there never something"
        for number in (*range(at + 1, min(at + 16, len(words))), *range(at - 1, first - 1, -1)):
            following = words[number]
            if number < at and not _is_generic(words[number + 1 : at]):
                break
            rest = words[max(number, at) + 1 :]
            if following.startswith("commit") and rest[:1] in (["to"], ["on"], ["onto"]):
                break  # a branch
            if stem(following) in _stems(_VERBS) and _has_plain_object(rest):
                return _actions({stem(one) for one in words[min(number, at) :]})
            if number > at and not (
                _is_generic([following]) or following == "," or stem(following) in _stems(_VERBS)
            ):
                break
        if names and word.lower() != "none" and _is_unwanted(words[at + 1 :]):
            return ("create", "change")
    return ()


def _actions(verbs: set[str]) -> tuple[FileAction, ...]:
    if verbs & _stems(_CHANGE):
        return _ALL
    return ("delete",) if verbs & _stems(_DELETE) and not verbs & _stems(_CREATE) else ("create", "change")


def _has_plain_object(words: Sequence[str]) -> bool:
    for word in words:
        if word == MARK or word.lower() in _ENDS:
            return True
        if not _is_generic([word]) and stem(word) not in _stems(_VERBS):
            return False
    return True


_WANTED = "want need see like accept ship have use care allow find any more new to in a an the of my our"


def _is_unwanted(words: Sequence[str]) -> bool:
    """Return whether a negation is followed by the files themselves: "no .docx", "I don't want any PDFs"."""
    for at, word in enumerate(words):
        if word == MARK:
            return _has_plain_object(words[at + 1 :])
        if stem(word) not in _stems(_WANTED):
            return False
    return False


def _only_in(clause: RuleClause, words: str, reading: RuleReading, globs: Sequence[str]) -> PathCheck | None:
    """Return the check of a rule that restricts writing to some files ("new files only in drafts/")."""
    outside = re.search(rf"(?i)\boutside(?: of)? (?:(?:the |my |our )?{MARK}|it\b|there\b|that\b)", words)
    if not clause.globs or not (
        outside or _ONLY.search(words) or (_ELSE.search(reading.words) and _INSIDE.search(words))
    ):
        return None
    plain = [word for word in _tokens(words) if word not in ",:()"]
    known = _GENERIC | {"outside", "output", "outputs", "draft", "drafts", "result", "results", "suggestions"}
    if not all(
        word == MARK or word.lower() in known or stem(word.lower()) in _stems(f"{_VERBS} {_PLACING}")
        for word in plain
    ):
        return None
    if not outside and _ONLY_WHO.search(words):
        return None
    verbs = {stem(word) for word in plain} & _stems(_VERBS)
    new = re.search(r"(?i)\bnew\b", words) or (verbs and verbs <= _stems(_CREATE))
    base: tuple[str, ...] = ()
    allowed = tuple(globs)
    folders = tuple(glob for glob in globs if glob.endswith("/**"))
    if not outside and folders and len(folders) < len(globs):
        allowed, base = tuple(glob for glob in globs if glob not in folders), folders
    elif not outside and not folders:
        prefixes = tuple(dict.fromkeys(glob.rpartition("**/")[0] + "**" for glob in allowed))
        base = () if any(prefix == "**" for prefix in prefixes) else prefixes
        if not base:
            return None
    return PathCheck(
        paths=base or _EVERYWHERE,
        exceptions=tuple(dict.fromkeys((*allowed, *reading.exceptions))),
        actions=("create",) if new else _ALL,
    )


_ONLY_WHO = compiled(
    r"\b(?:only|just) (?:one|ones|person|people|I|me|(?-i:[A-Z]\w+)|the (?!files?|folder))\b"
)
_PLACING = "go belong live work stay keep restrict limit confine remain get"


def _is_generic(words: Iterable[str]) -> bool:
    """Return whether words name nothing but files in general."""
    return all(word in _GENERIC or word == MARK or word.isdigit() for word in map(str.lower, words))


def _tokens(words: str) -> list[str]:
    """Return words and marks in order, without punctuation other than commas and colons."""
    return re.findall(rf"{MARK}|[^\W_][\w'’-]*|[,:()]", words)
