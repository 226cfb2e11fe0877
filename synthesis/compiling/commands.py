"""Compiles rules about command lines, and about commands that follow a change."""

import re
from collections.abc import Iterator

from agentx.synthesis.compiling.reading.places import globs_in, masked
from agentx.synthesis.compiling.reading.rule import RuleClause, RuleReading, clauses_of
from agentx.synthesis.compiling.reading.stance import is_story, stance
from agentx.synthesis.compiling.reading.tables import DEEDS, MANY_COMMANDS, OBVIOUS_PROGRAMS, PROGRAMS
from agentx.synthesis.compiling.reading.where import UNCERTAIN_PLACE
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.language.words import STOP_WORDS, vocabulary
from agentx.synthesis.memory.checks import Check, CommandCheck, FollowUpCheck

_FLAG = compiled(r"(?<![\w-])(?P<flag>--?[A-Za-z][\w-]*)(?:=[\w./-]+)?(?![\w/])")
_CODE = compiled(r"[`\"'](?P<code>[^`\"'\n]{2,80})[`\"']")
_SUBCOMMAND = re.compile(r"[a-z][\w:.-]*")
_STOPS = STOP_WORDS | vocabulary(
    """
    never must can command commands call calls invocation run runs using gets get takes need needs requires
    wants
    goes against explicit whatever them via line lines again flag flags option options their may cannot is
    isn't
    aren't doesn't before are today anywhere both always carries comes
    """
)
_NO_PROGRAMS = STOP_WORDS | vocabulary(
    "give pass add set with run call use put keep every each any all flag option"
)
_GOVERNS = (
    r"(?:needs?|gets?|takes?|wants?|requires?|must|should|ha(?:s|ve) to|always|only|never|may|with"
    r"|without|is|are"
    r"|goes|runs?|carr(?:y|ies)|comes?|belongs?|[-=→:]+>?)"
)
_SHAPED = compiled(
    rf"(?:^"
    rf"|[\s(`\"'])(?-i:(?P<program>[a-z][\w.-]{{1,24}}(?: [a-z][\w-]{{1,20}})?))[`\"']?(?: \w+){{0,2}}?"
    rf" {_GOVERNS}(?!\w)"
    r"[^-]{0,60}?(?=[`\"'(]?--?[A-Za-z])"
)
_CALLED = compiled(
    r"\b(?:run|call|invoke|give|execute|use"
    r"|pass) (?:the )?[`\"']?(?P<program>[a-z][\w.-]{1,24}(?: [a-z][\w-]{1,20})?)"
    r"[`\"']? (?=[^.;]{0,40}[`\"'( ]--?[A-Za-z])"
)
_WITHOUT = compiled(r"\b(?:without|unless|missing|omit\w*|forget\w*|leave (?:out|off)|skip|lacks?)\b[^,;]*$")

_NEVER = compiled(r"\b(?:never|not|no|cannot|avoid|stop|forbidden|banned|taboo|no-go)\b|n['’]t\b")

_WHEN = compiled(
    r"\b(?:after|when(?:ever)?|once|every time|each time|any ?time|if|as soon as|follow(?:ed|s|ing)?"
    r"|until|before"
    r"|on (?:every|each|any)|(?:every|each|any) (?:change|edit|touch)|means|then|afterwards|(?:finish"
    r"|done)\w*)\b|→|=>"
)
_CHANGED = compiled(
    r"\b(?:chang|edit|touch|modif|updat|alter|add|regenerat|tweak|fiddl|writ|new|creat|mov|renam|sav)\w*\b"
)
_FINISH = compiled(
    r"\b(?:before|until|when|after|once|prior to)\b (?:you(?:'re| are|'ve| have)? |we "
    r"|i )?(?:\w+ )?(?:finish\w*"
    r"|commit\w*|sa(?:y|id) |call(?:ing)? (?:it|something|anything)|done|hand\w*|end|stop\w*|report\w*"
    r"|push\w*"
    r"|clos(?:e|ing)|finaliz\w+|declar\w+|tell\w* me|deliver\w*|wrap\w*)|\blast (?:thing|step)\b"
    r"|\bat the (?:very )?end\b"
)
_RUN = compiled(
    r"\b(?:re-?)?(?:run(?:ning)?|execut\w+|call|invok\w+|do|follow (?:it )?up with)\b (?:(?:the |all "
    r"|our )*[\w-]+ (?:with|using|via"
    r"|through) )?(?:the |a |an )?(?:[`\"'](?P<code>[^`\"']{2,80})[`\"']"
    r"|(?P<bare>(?:[\w./-]+ ){0,3}?[\w./:-]+)(?=$|\s*[,.;]| (?:before|again|and|so|to|after|when|once"
    r"|first|until"
    r"|for|over|then|afterwards)\b))"
)
_BACKTICK = compiled(r"`(?P<code>[a-z./][^`]{2,80})`")
_LOCAL = ("./", "scripts/", "bin/", "tools/", "ci/")


# --- commands that follow a change ---


def compile_follow_up(reading: RuleReading) -> tuple[Check, ...]:
    """Return the check of a command that must follow a change: a command, files, and when."""
    command = _wanted_command(reading.cases)
    if not command or not _WHEN.search(reading.cases):
        return ()
    for clause in clauses_of(reading.cases):
        plain = clause.words.replace(command, " ")
        globs = globs_in(plain)
        if globs and _CHANGED.search(masked(plain)):
            return (FollowUpCheck(command=command, paths=globs),)
    if guessed := _guessed(reading.cases.replace(command, " ")):
        return (FollowUpCheck(command=command, paths=guessed, doubt=UNCERTAIN_PLACE),)
    if _FINISH.search(reading.cases):
        globs = globs_in(reading.cases.replace(command, " "))
        return (FollowUpCheck(command=command, paths=globs),)
    return ()


_WHAT = compiled(
    rf"{_CHANGED.pattern} (?:to )?(?:(?:the|any|our|a|an|something in) )+(?P<name>[a-z][\w-]{{2,30}})\b"
    r"(?! (?:with|using)\b)"
)


def _guessed(words: str) -> tuple[str, ...]:
    """Return globs for what is changed, if it has a name only ("after changing the schema")."""
    match = _WHAT.search(words)
    if not match or match["name"].lower() in STOP_WORDS | _NO_FILES:
        return ()
    name = match["name"].lower().removesuffix("s")
    return (f"**/*{name}*", f"**/*{name}*/**")


_NO_FILES = vocabulary("code file files anything something everything stuff thing things change changes line")


def _wanted_command(words: str) -> str:
    """Return the command line that words say to run; empty if none is certain."""
    for match in (*_RUN.finditer(words), *_BACKTICK.finditer(words)):
        command = (match["code"] or match.groupdict().get("bare") or "").strip(" .,")
        program = (command.split() or [""])[0]
        known = program in PROGRAMS | _RUNNERS or program.startswith(_LOCAL)
        quoted = bool(match["code"]) and " " in command and not re.search(r"[(){}=<>$]|\.\w+$", program)
        hyphened = re.fullmatch(r"[a-z]\w+-\w+", (match.groupdict().get("bare") or "").strip(" .,"))
        if (known or quoted or hyphened) and stance(words, match.start(), match.end()) != "banned":
            return command
    return ""


_RUNNERS = vocabulary(
    "python python3 node sh bash just task nox phpunit rspec jest vitest mage rubocop go make ninja"
    " meson invoke"
    " deno bun mix stack cabal sbt lein zig nim Rscript julia perl lua ant rake gulp grunt turbo nx lerna"
)


# --- command lines ---


def compile_commands(reading: RuleReading) -> tuple[Check, ...]:
    """Return the checks of a rule about command lines."""
    for clause in reading.clauses:
        if checks := tuple(_deeds(clause)):
            return checks
    for clause in reading.clauses:
        flags = [(match.start(), match.end(), match["flag"]) for match in _FLAG.finditer(clause.words)]
        if not flags or is_story(clause.words):
            continue
        programs = tuple(_programs(clause.words, flags[0][0])) or tuple(_programs(reading.words, 0))
        if programs:
            return (_flagged(clause.words, programs, flags),)
    for clause in reading.clauses:
        if programs := tuple(dict.fromkeys(_ruled_out(clause.words))):
            wanted = next((one for one, found in _coded(clause.words) if found == "wanted"), "")
            return (CommandCheck(programs=programs, instead=wanted),)
    return ()


def _deeds(clause: RuleClause) -> Iterator[Check]:
    """Yield the check of a deed that has a name of its own, such as a force push."""
    for pattern, fields in DEEDS:
        match = re.search(pattern, clause.words, re.IGNORECASE)
        if not match or is_story(clause.words):
            continue
        without = re.search(r"(?i)\bwithout\b", clause.words[: match.start()])
        if not without and (clause.bans or stance(clause.words, match.start(), match.end()) == "banned"):
            branch = match.groupdict().get("branch")
            arguments = (
                (rf"^(?:\+?[\w./-]*:)?(?:refs/heads/)?{re.escape(branch.lower())}\w*$",) if branch else ()
            )
            yield CommandCheck(arguments=arguments, **fields)  # type: ignore[arg-type]
            return


def _flagged(words: str, programs: tuple[str, ...], flags: list[tuple[int, int, str]]) -> CommandCheck:
    """Return the check of flags: forbidden, or required ("never X without --flag", "always with --flag")."""
    banned: list[str] = []
    wanted: list[str] = []
    for start, end, flag in flags:
        found = stance(words, start, end)
        if missing := _WITHOUT.search(words[:start]):  # "never X without --flag"
            doubly = _NEVER.search(words[: missing.start()]) or _NEVER.search(words[end:])
            found = "wanted" if doubly else "banned"
        (banned if found in ("banned", "blamed") else wanted).append(flag)
    if banned and not (wanted and set(wanted) - set(banned)):
        return CommandCheck(programs=programs, forbidden_flags=_forms(banned))
    if banned:
        required = ("|".join(_forms(wanted)),)
        return CommandCheck(programs=programs, forbidden_flags=_forms(banned), required_flags=required)
    alternatives = "|".join(_forms(wanted))
    either = len(wanted) == 1 or re.search(r"\bor\b|/|\(", words[flags[0][0] :])
    return CommandCheck(programs=programs, required_flags=(alternatives,) if either else tuple(wanted))


def _forms(flags: list[str]) -> tuple[str, ...]:
    """Return flags, those of several letters with one and two dashes, as terraform takes both."""
    short = 3  # "-rf" is a group of letters
    forms = ((flag,) if flag.startswith("--") or len(flag) <= short else (flag, f"-{flag}") for flag in flags)
    return tuple(dict.fromkeys(form for group in forms for form in group))


def _coded(words: str) -> Iterator[tuple[str, str]]:
    """Yield the programs in quotes, without flags, with what is decided about them."""
    for match in _CODE.finditer(words):
        parts = match["code"].split()
        if (
            parts
            and (parts[0] in PROGRAMS or parts[0].startswith(_LOCAL))
            and not any(part.startswith("-") for part in parts)
        ):
            yield " ".join(parts), stance(words, match.start(), match.end())


def _ruled_out(words: str) -> Iterator[str]:
    yield from (program for program, found in _coded(words) if found == "banned")
    for match in re.finditer(r"(?<![\w`\"'./-])[a-z][\w.-]*(?![\w`\"'])", words):
        if match.group() not in OBVIOUS_PROGRAMS:
            continue
        parts = words[match.start() :].split()[:4]
        named = _with_subcommand(parts)
        alone = " " not in named and not re.search(
            r"(?i)\b(?:run|use|call|execute|invoke|start|type|touch|command|via|with)\w*\b", words
        )
        if not alone and stance(words, match.start(), match.start() + len(named)) == "banned":
            yield named


def _with_subcommand(parts: list[str]) -> str:
    kept = parts[:1]
    for word in parts[1:4]:
        plain = word.strip(",;:()→=")
        many = (
            kept == parts[:1]
            and parts[0] in MANY_COMMANDS
            and plain in ("run", "set", "use", "get", "up", "down")
        )
        if not _SUBCOMMAND.fullmatch(plain) or (plain in _STOPS and not many):
            break
        kept.append(plain)
        if plain != word:
            break
    return " ".join(kept)


def _programs(words: str, flag: int) -> Iterator[str]:
    """Yield the programs with their subcommands whose flags words are about."""
    coded = [
        " ".join(part for index, part in enumerate(parts) if index == 0 or _SUBCOMMAND.fullmatch(part))
        for parts in (match["code"].split() for match in _CODE.finditer(words))
        if parts and (parts[0] in PROGRAMS or (len(parts) > 1 and re.fullmatch(r"[a-z][\w.-]*", parts[0])))
    ]
    if coded:
        yield from dict.fromkeys(coded)
        return
    plain = re.sub(r"['’]s\b|[`\"']", " ", words)
    names = re.finditer(r"(?<![\w./-])[A-Za-z][\w.-]*", plain)
    near = [match for match in names if match.group().lower() in OBVIOUS_PROGRAMS]
    near.sort(key=lambda match: abs(match.start() - flag))
    for match in near[:1]:
        if not flag or match.start() < flag or not _shaped(words):
            rest = plain[match.start() :].split()
            yield _with_subcommand([rest[0].lower().strip(",;:()"), *rest[1:3]])
            return
    if deed := _GIT_DEED.search(words):
        yield f"git {deed['deed'].lower()}"
    elif shaped := _shaped(words):
        yield shaped


_GIT_DEED = compiled(r"\b(?:your|my|our|all|every|each|git) (?:git )?(?P<deed>commit|push|merge)(?:e?s)?\b")


def _shaped(words: str) -> str:
    """Return the program that words give a flag, known or not."""
    for pattern in (_CALLED, _SHAPED):
        for match in pattern.finditer(words):
            named = _with_subcommand(match["program"].split())
            if named and named.split()[0] not in _NO_PROGRAMS:
                return named
    return ""
