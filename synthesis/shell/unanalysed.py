"""The parts of a command line that may break a rule about commands or paths, and that no check can read."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.shell.carriers import code_in, may_run, text_of
from agentx.synthesis.shell.command_line import ProgramCall, located, read_command
from agentx.synthesis.shell.effects import effects, looks_only
from agentx.synthesis.shell.printed import printed
from agentx.synthesis.shell.unread import MOST, named, unread
from agentx.synthesis.shell.wrappers import is_shell

Globs = tuple[str, ...]
Matches = Callable[[Globs, str], bool]

_UNKNOWN = re.compile(r"[$`*?\[]|\{\}")
"""A program's name with one of these is only known when it is run."""

_RUNS_INPUT = vocabulary("at batch crontab parallel ssh xargs source .")
"""Programs that run what they read."""

_GIT = vocabulary(
    """
    add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column
    commit config commit-graph commit-tree count-objects credential describe diagnose diff diff-files
    diff-index diff-tree difftool fast-export fast-import fetch fetch-pack for-each-ref for-each-repo
    format-patch fsck gc get-tar-commit-id grep gui hash-object help hook index-pack init instaweb
    interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base
    merge-file merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id
    prune pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset
    restore rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index
    show-ref sparse-checkout stash status stripspace submodule subtree svn switch symbolic-ref tag
    unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack
    verify-tag version whatchanged worktree write-tree
    """
)
"""The subcommands that Git brings; every other is an alias, or a program of somebody's."""

_GIT_VALUES = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
_GIT_KEEPS = vocabulary("add commit push fetch tag log diff status show blame ls-files rm mv restore branch")
"""Subcommands whose effect on files is known, or that have none on those they name."""

_KNOWN_EFFECTS = vocabulary(
    "touch truncate tee cp mv install ln rsync rm unlink shred sed gsed chmod chown mkdir rmdir cd pushd"
    " echo printf"
)


@lru_cache(maxsize=256)
def unanalysed(
    command: str, programs: tuple[str, ...], globs: tuple[Globs, ...], matches: Matches
) -> tuple[str, ...]:
    """Return the parts of a command line that were not analysed and may break a rule.

    Args:
        command: The command line.
        programs: The programs with subcommands that rules are about.
        globs: The paths that rules are about, those of each rule together.
        matches: Returns whether a path matches one of some globs.

    >>> unanalysed("watch 'git push'", ("git push",), (), lambda *_: False)
    ('watch git push',)
    """
    parts = list(unread(command))
    if command.strip() and not looks_only(command) and read_command(command).understood:
        parts += map(named, _found(command, programs, globs, matches))
    return tuple(dict.fromkeys(filter(None, parts)))[:MOST]


def _found(
    command: str, programs: tuple[str, ...], globs: tuple[Globs, ...], matches: Matches
) -> Iterator[ProgramCall]:
    mention = _mention(programs)
    made = {posixpath.basename(one.path) for one in effects(command)}
    flowing, known = "", True
    for call, folder in located(command):
        # The words after `git add` are files; the text of an option can still be a command.
        keeps = call.program == "git" and subcommand(call.arguments) in _GIT_KEEPS
        texts = (text_of(call.words[1:] or call.arguments, plain=not keeps), call.given, flowing)
        # `unshare -r bash` opens a shell, `apt install bash` does not: no name tells which.
        shell = bool(call.arguments) and is_shell(posixpath.basename(call.arguments[-1]))
        if (
            _is_unknown(call, programs, made)
            or code_in(call)
            or any(mention.search(value) for value in call.set_to)
            or (may_run(call) and (any(map(mention.search, texts)) or (shell and not call.fed)))
            or (call.program in _RUNS_INPUT and call.fed and not known)
            or (globs and _holds_path(call, folder, globs, matches))
        ):
            yield call
        said = printed(call.program, call.arguments, call.given)
        # What a program passes on is known only if its words say it; a text goes through the whole pipe.
        known = said is not None if call.follower in {"|", "|&"} else True
        flowing = f"{flowing} {said or ''}" if call.follower in {"|", "|&"} else ""


def _is_unknown(call: ProgramCall, programs: tuple[str, ...], made: set[str]) -> bool:
    """Return whether it is unknown which program or subcommand is run."""
    if _UNKNOWN.search(call.program) or (call.program and call.program in made):
        return call.program not in {"[", "[["}
    if not any(entry.split()[0] == call.program for entry in programs):
        return False
    word = subcommand(call.arguments)
    if call.program == "git":
        sets = word == "config" and any("alias." in one for one in call.arguments)
        return sets or (bool(word) and word not in _GIT)
    return bool(_UNKNOWN.search(word))


def subcommand(arguments: Sequence[str]) -> str:
    """Return the first word that is neither an option nor the value of one of Git's options.

    >>> subcommand(("-C", "app", "--no-pager", "push", "-f"))
    'push'
    """
    rest = iter(arguments)
    for word in rest:
        if word in _GIT_VALUES:
            next(rest, "")
        elif not word.startswith("-"):
            return word
    return ""


@lru_cache(maxsize=64)
def _mention(programs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the words of one of the entries in order, whatever stands between them."""
    forms = [
        r"(?![\w-])[^\n;|&]{0,80}?(?<![\w-])".join(
            re.escape(word).replace(r"\*", r"\S*") for word in one.split()
        )
        for one in programs
    ]
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(forms) or '(?!)'})(?![\w-])", re.IGNORECASE)


def _holds_path(call: ProgramCall, folder: str, globs: tuple[Globs, ...], matches: Matches) -> bool:
    """Return whether a program is given a ruled path, and may write there."""
    keeps = call.program == "git" and subcommand(call.arguments) in _GIT_KEEPS
    if keeps or call.program in _KNOWN_EFFECTS or not may_run(call):
        return False
    values = (part for word in call.arguments for part in {word, word.partition("=")[2]} if part)
    places = [posixpath.join(folder, value) for value in values if not value.startswith("-")]
    within = (*places, *(f"{place}/any" for place in places))
    return any(matches(one, place) for place in within for one in globs)
