"""Compiles rules about command lines, and about commands that follow a change."""

import re
from collections.abc import Iterator

from agentx.synthesis.compiling.reading import Clause, Reading, globs_in
from agentx.synthesis.compiling.tables import OBVIOUS_PROGRAMS, PROGRAMS
from agentx.synthesis.demands.tables.vocabulary import compiled
from agentx.synthesis.memory.checks import Check, CommandCheck, FollowUpCheck

_FLAG = compiled(r"(?<![\w-])(?P<flag>--?[A-Za-z][\w-]*)(?:=[\w./-]+)?(?![\w/])")
_CODE = compiled(r"[`\"'](?P<code>[^`\"'\n]{2,80})[`\"']")
_SUBCOMMANDS = compiled(r"^(?:[\w:.-]+)$")
_STOPS = frozenset(
    [
        "with",
        "without",
        "in",
        "on",
        "to",
        "from",
        "for",
        "the",
        "a",
        "an",
        "and",
        "or",
        "is",
        "are",
        "must",
        "should",
        "may",
        "can",
        "never",
        "always",
        "not",
        "needs",
        "need",
        "has",
        "have",
        "when",
        "before",
        "after",
        "commands",
        "command",
        "directly",
        "here",
        "ever",
        "anything",
        "any",
        "it",
        "i",
        "you",
        "we",
        "that",
        "this",
        "yourself",
        "until",
        "unless",
        "again",
        "please",
        "at",
        "all",
        "anywhere",
        "as",
        "only",
        "calls",
        "call",
        "invocation",
        "of",
        "by",
        "because",
        "against",
        "your",
        "my",
        "our",
        "its",
        "their",
        "will",
        "who",
        "run",
        "using",
        "use",
    ]
)
_PHRASES: tuple[tuple[re.Pattern[str], dict[str, tuple[str, ...]]], ...] = (
    (
        compiled(r"\bforce[- ]?push\w*|\bpush\w* (?:with )?(?:--force|-f)\b|\bforce (?:a )?push"),
        {"programs": ("git push",), "forbidden_flags": ("--force", "-f", "--force-with-lease")},
    ),
    (
        compiled(
            r"\b(?:skip|bypass|disable|circumvent)\w* (?:the |our |any )?(?:git |pre-?commit |commit"
            r" )*hooks?\b"
        ),
        {"programs": ("git commit", "git push"), "forbidden_flags": ("--no-verify",)},
    ),
    (
        compiled(r"\bamend(?:ing)?\b(?=.*\bcommit|$| )"),
        {"programs": ("git commit",), "forbidden_flags": ("--amend",)},
    ),
    (compiled(r"\brebas(?:e|ing)\b"), {"programs": ("git rebase",)}),
    (
        compiled(
            r"\bpush(?:es|ing)? (?:\w+ ){0,3}?(?:to|on|onto) (?:the )?[`\"']?(?P<branch>main|master"
            r"|production|prod|release|develop|trunk)\b"
        ),
        {"programs": ("git push",)},
    ),
    (
        compiled(r"\bcommit(?:s|ting)? (?:\w+ ){0,2}?(?:directly )?(?:to|on|onto) [`\"']?(?:main|master)\b"),
        {},
    ),
    (compiled(r"\b(?:git )?stash\b(?=.*\bgit\b|$|ing)"), {"programs": ("git stash",)}),
    (compiled(r"\bsudo\b"), {"programs": ("sudo",)}),
    (
        compiled(r"\brm -rf?\b|\brm -fr\b"),
        {"programs": ("rm",), "forbidden_flags": ("-rf", "-fr", "-r", "-R", "--recursive")},
    ),
    (
        compiled(r"\b(?:curl|wget)\b.{0,20}(?:\||pip(?:e|ed|ing)|into).{0,12}\b(?:ba|z)?sh(?:ell)?\b"),
        {"pipe": ()},
    ),
)

_AFTER = compiled(
    r"\b(?:after|when(?:ever)?|once|every time|each time|any ?time|if)\b (?P<change>[^,`]{0,20}?(?:chang"
    r"|edit|touch|modif|updat"
    r"|alter|add|edited|regenerat)\w*[^,]{0,80}?)(?:,|\s+(?=run\b|always\b|you (?:must|have|need)\b"
    r"|please\b|then\b|re-?run\b|make"
    r" sure\b|call\b|execute\b|`))"
)
_FINISH = compiled(
    r"\b(?:before|until|when|after)\b (?:you(?:'re| are|'ve)? |we |i )?(?:\w+ )?(?:finish\w*|commit\w*|say"
    r" (?:you're |it's )?done"
    r"|call(?:ing)? it done|done|hand\w*|end|stop\w*|report\w*|push\w*|clos(?:e|ing)|finaliz\w+|declar\w+)\b"
)
_RUN = compiled(
    r"\b(?:re-?)?(?:run(?:ning)?|execut\w+|call|invok\w+|do)\b (?:the |a |an )?(?:[`\"']"
    r"(?P<code>[^`\"']{2,80})[`\"']|(?P<bare>"
    r"(?:[\w./-]+ ){0,3}?[\w./:-]+)(?=$|\s*[,.;]| before\b| again\b| and\b| so\b| to\b| after\b| when\b|"
    r" once\b| first\b))"
)
_BACKTICK = compiled(r"`(?P<code>[a-z./][^`]{2,80})`")
_RUNNERS = PROGRAMS | frozenset(
    [
        "python",
        "python3",
        "node",
        "sh",
        "bash",
        "just",
        "task",
        "nox",
        "phpunit",
        "rspec",
        "jest",
        "vitest",
        "mage",
        "rubocop",
        "go",
        "make",
    ]
)


def compile_follow_up(reading: Reading) -> tuple[Check, ...]:
    """Return the check of a command that must follow a change."""
    for match in filter(None, (_AFTER.search(reading.words),)):
        globs = globs_in(match["change"])
        if globs and (command := _command(reading.words[match.end("change") :])):
            return (FollowUpCheck(command=command, paths=globs),)
    backwards = re.search(
        r"(?i)(?P<run>.{0,80}?)\b(?:after|when(?:ever)?|every time|each time|once)\b (?P<change>[^.]*\b"
        r"(?:chang|edit|touch|modif|updat|alter)\w*[^.]*)",
        reading.words,
    )
    if backwards and (globs := globs_in(backwards["change"])) and (command := _command(backwards["run"])):
        return (FollowUpCheck(command=command, paths=globs),)
    if (
        _FINISH.search(reading.words)
        and re.search(r"(?i)\brun\b", reading.words)
        and (command := _command(reading.words))
        and not re.search(r"(?i)\b(?:never|don'?t|do not) (?:\w+ )?run\b", reading.words)
    ):
        return (FollowUpCheck(command=command, paths=reading.globs),)
    return ()


def _command(words: str) -> str:
    """Return the command line that words say to run; empty if none is certain."""
    for match in (*_RUN.finditer(words), *_BACKTICK.finditer(words)):
        command = match["code"] or match.groupdict().get("bare") or ""
        program = command.split()[0] if command.split() else ""
        if program in _RUNNERS or program.startswith(("./", "scripts/", "bin/", "tools/")):
            return command.strip(" .,")
    return ""


def compile_commands(reading: Reading) -> tuple[Check, ...]:
    """Return the checks of a rule about command lines."""
    checks: list[Check] = []
    for clause in reading.clauses:
        checks += _phrase(clause) if clause.bans else ()
        if checks:
            return tuple(checks)
    for clause in reading.clauses:
        flags = tuple(dict.fromkeys(match["flag"] for match in _FLAG.finditer(clause.words)))
        programs = tuple(_programs(clause.words)) or tuple(_programs(reading.words) if flags else ())
        if flags and programs:
            return (_flagged(clause, programs, flags),)
    for clause in reading.clauses:
        if clause.bans and re.search(
            r"(?i)\b(?:never|not|don'?t|no|stop|mustn'?t)\b[^,]{0,25}\b(?:run|use|call|execute|invoke"
            r"|start)\w*\b",
            clause.words,
        ):
            programs = tuple(_coded(clause.words)) or tuple(
                one for one in _programs(clause.words) if " " in one
            )
            if programs:
                return (CommandCheck(programs=programs),)
    return ()


def _phrase(clause: Clause) -> Iterator[Check]:
    for pattern, fields in _PHRASES:
        match = pattern.search(clause.words)
        if not match or not fields or re.search(r"(?i)\bwithout\b", clause.words[: match.start()]):
            continue
        if "pipe" in fields:
            yield CommandCheck(programs=("curl", "wget"), doubt="whether its output is run by a shell")
            return
        branch = match.groupdict().get("branch")
        arguments = (rf"(?:.*:)?{branch.lower()}\w*",) if branch else ()
        yield CommandCheck(arguments=arguments, **fields)  # type: ignore[arg-type]
        return


def _flagged(clause: Clause, programs: tuple[str, ...], flags: tuple[str, ...]) -> CommandCheck:
    """Return the check of flags: forbidden, or required ("never X without --flag", "always with --flag")."""
    first = min(clause.words.find(flag) for flag in flags)
    before = clause.words[:first].lower()
    banned = re.search(
        r"\b(?:never|not|don'?t|no|avoid|stop|forbidden|banned|mustn'?t|leave out|drop)\b|isn't|n't\b", before
    )
    without = re.search(r"\b(?:without|unless|missing|omit|forget|leave (?:out|off)|skip)\b[^,]*$", before)
    turned = re.search(
        r"\b(?:never|forbidden|banned|off[- ]limits|not allowed|taboo|no[- ]go)\b",
        clause.words[first:].lower(),
    )
    if (banned and not without) or (
        turned and not without and not re.search(r"\b(?:always|must|needs?|has to)\b", before)
    ):
        forms = tuple(dict.fromkeys(form for flag in flags for form in _forms(flag)))
        return CommandCheck(programs=programs, forbidden_flags=forms)
    alternatives = "|".join(dict.fromkeys(form for flag in flags for form in _forms(flag)))
    either = re.search(r"\bor\b|/|\(", clause.words[first:]) or len(flags) == 1
    return CommandCheck(programs=programs, required_flags=(alternatives,) if either else flags)


def _forms(flag: str) -> tuple[str, ...]:
    """Return a flag with one and with two dashes, as programs such as terraform take both."""
    if flag.startswith("--") or len(flag) <= 3:  # noqa: PLR2004 - "-rf" is a group of letters
        return (flag,)
    return (flag, f"-{flag}")


def _coded(words: str) -> Iterator[str]:
    for match in _CODE.finditer(words):
        parts = match["code"].split()
        if parts and parts[0] in PROGRAMS and not any(part.startswith("-") for part in parts):
            yield " ".join(parts)


def _programs(words: str) -> Iterator[str]:
    """Yield the programs with their subcommands that words name."""
    found = False
    for match in _CODE.finditer(words):
        parts = match["code"].split()
        if parts and parts[0] in PROGRAMS:
            found = True
            yield " ".join(
                part
                for index, part in enumerate(parts)
                if not part.startswith("-") and (index == 0 or _SUBCOMMANDS.match(part))
            )
    if found:
        return
    parts = re.sub(r"[`\"',;:()]", " ", words).split()
    for index, part in enumerate(parts):
        if part.lower() in OBVIOUS_PROGRAMS and (part.islower() or index == 0):
            rest = []
            for word in parts[index + 1 : index + 3]:
                if (
                    word.lower() in _STOPS
                    or word.startswith("-")
                    or not _SUBCOMMANDS.match(word)
                    or not word.islower()
                ):
                    break
                rest.append(word)
            yield " ".join([part.lower(), *rest])
            return
