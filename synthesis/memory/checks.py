"""Checks: the part of a rule that code can enforce, as data that a person can read and write.

An item has any number of checks, and breaks none of them while all hold. A check is one mapping in YAML
(:mod:`agentx.synthesis.enforcement.check_file`), told apart by its ``kind``. Globs follow the rules of
gitignore, relative to the artifacts root.
"""

from typing import Any, Literal, get_args

import msgspec

Mode = Literal["observe", "warn", "ask", "deny", "fix"]
"""What happens to an action that breaks a check.

``observe`` records it, ``warn`` also tells the agent, ``ask`` waits for the user's approval, ``deny`` stops
it. ``fix`` corrects it where the correction is mechanical and says so, and otherwise stops it.
"""

MODES: tuple[Mode, ...] = get_args(Mode)
"""All modes, the mildest first."""

FileAction = Literal["create", "change", "delete"]
Place = Literal["files", "answers", "commands"]
DependencyPlace = Literal["manifests", "commands", "imports"]
Unit = Literal["lines", "words", "characters"]
Measured = Literal["file", "function", "line", "answer"]


class BaseCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """What all kinds of checks have in common.

    Attributes:
        mode: What happens to an action that breaks it.
        paths: Globs of the files that it is about; empty for all.
        exceptions: Globs of files that it is not about.
        topic: Applies only if the text, its path or the user's message is about this; empty for always.
        doubt: Why it is uncertain whether the check says what the rule says; empty if it is certain. A
            doubtful check asks instead of denying.
        by_hand: Whether the user wrote it, or set the mode of one that a model wrote; it then stays as it is
            when the rule's text is edited.
        written_by: Name of the model that wrote it; empty if the user or the compiler did.
    """

    mode: Mode = "deny"
    paths: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    topic: str = ""
    doubt: str = ""
    by_hand: bool = False
    written_by: str = ""


class PathCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="path"):
    """Files that may not be created, changed or deleted, or whose names must have a form.

    Attributes:
        actions: The actions that are forbidden.
        allowed: Actors who may do it nevertheless (``agent:migrator``).
        name: Regular expression for the whole file name; if given, only other names break the check.
    """

    actions: tuple[FileAction, ...] = ("create", "change")
    allowed: tuple[str, ...] = ()
    name: str = ""


class TextCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Text that may not be written.

    Attributes:
        phrases: Literal phrases, as whole words in any case.
        patterns: Regular expressions, multi-line.
        places: Where it may not be written. With ``paths``, answers are not checked.
    """

    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    places: tuple[Place, ...] = ("files", "answers")


class StructureCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="structure"):
    """Code that may not be written, or that each file must have, by ast-grep patterns.

    Attributes:
        languages: Names of ast-grep (``python``, ``typescript``, ``go``); empty for all in which the patterns
            can be read.
        patterns: Patterns with meta-variables (``print($$$)``, ``var $X = $Y``); any of them matches.
        rule: Alternatively a rule object of ast-grep.
        names: By meta-variable, a regular expression that the whole captured name must match; if given, only
            other names break the check.
        required: Whether each file must have a match, rather than none.
        instead: What to use in its place, for the message.
    """

    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    rule: dict[str, Any] = {}
    names: dict[str, str] = {}
    required: bool = False
    instead: str = ""


class DecoratorCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="decorator"):
    """A decorator or annotation that new functions of a kind must have.

    Attributes:
        decorator: Dotted name without the ``@``.
        functions: The kind of function in the user's words ("data-fetching"); empty for all functions.
    """

    decorator: str
    functions: str = ""


class DependencyCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="dependency"):
    """Packages that may not be added, or must be there, in manifests, by commands and as imports.

    Attributes:
        packages: Names or globs (``redis``, ``@types/*``, ``*`` for any new one), compared without case and
            without regard to ``-``, ``_`` and ``.``.
        ecosystems: ``python``, ``npm``, ``cargo``, ``go``, ``maven``, ``rubygems``, ``composer``, ``nuget``,
            ``docker``; empty for all.
        places: Where they are looked for.
        versions: If given, only versions that do not fit break the check: ``exact`` (pinned), ``range``, or a
            specifier such as ``<2``.
        required: Whether they must be there, rather than not. Only imports can be required.
        instead: The package to use in place of them.
    """

    packages: tuple[str, ...] = ()
    ecosystems: tuple[str, ...] = ()
    places: tuple[DependencyPlace, ...] = ("manifests", "commands", "imports")
    versions: str = ""
    required: bool = False
    instead: str = ""


class CommandCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="command"):
    """Command lines that may not be run, or flags that they must or may not have.

    Attributes:
        programs: A program with its subcommands (``npm``, ``git push``), one entry each.
        arguments: Regular expressions, of which each must match one argument for the check to apply.
        forbidden_flags: Flags that they may not have; long and short forms are separate entries.
        required_flags: Flags that they must have; an entry may list alternatives (``-s|--signoff``). Without
            either, the commands may not run at all.
        instead: The program and subcommands to use in place of them (``pnpm``).
    """

    programs: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    forbidden_flags: tuple[str, ...] = ()
    required_flags: tuple[str, ...] = ()
    instead: str = ""


class SizeCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="size"):
    """The size of a file, a function, a line or an answer.

    Attributes:
        of: What is measured.
        unit: In what.
        at_most: The limit.
    """

    of: Measured = "file"
    unit: Unit = "lines"
    at_most: int


class ContentCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="content"):
    """What a file must contain.

    Attributes:
        header: Text at its beginning, after a ``#!`` line; it may be in a comment.
        sections: Headings that a document must have, at any level.
        patterns: Regular expressions of which each must match somewhere.
    """

    header: str = ""
    sections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class ProgramCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="program"):
    """A command that must exit with status 0 at the end of a run that changed the files.

    Attributes:
        command: The command line. It runs like the workspace's own checks, once the workspace is trusted.
    """

    command: str


class FollowUpCheck(BaseCheck, frozen=True, kw_only=True, omit_defaults=True, tag="follow_up"):
    """A command that an agent must run, with success, after the last change of the files.

    Attributes:
        command: The program and those arguments that count (``make generate``).
    """

    command: str


Check = (
    PathCheck
    | TextCheck
    | StructureCheck
    | DecoratorCheck
    | DependencyCheck
    | CommandCheck
    | SizeCheck
    | ContentCheck
    | ProgramCheck
    | FollowUpCheck
)


def with_present_checks(detail: dict[str, Any]) -> dict[str, Any]:
    """Return the detail of an item with its check of format 3 as checks of the present format.

    >>> with_present_checks({"type": "rejection", "check": {"type": "forbid_path", "globs": ["*.md"]}})
    {'type': 'rejection', 'checks': [{'kind': 'path', 'paths': ['*.md']}]}
    """
    if "check" not in detail or detail.get("type") not in ("constraint", "rejection"):
        return detail
    rest = {name: value for name, value in detail.items() if name != "check"}
    return rest | {"checks": [_present_check(detail["check"])]} if detail["check"] else rest


def _present_check(check: dict[str, Any]) -> dict[str, Any]:
    kind = check["type"]
    if kind == "forbid_path":
        frozen = {"actions": ["create", "change", "delete"]} if check.get("frozen") else {}
        return {"kind": "path", "paths": check["globs"], **frozen}
    if kind == "forbid_text":
        given = {"answers": check.get("answers", True), "files": check.get("files", True)}
        places = [place for place in ("files", "answers") if given[place]]
        fields = {
            "phrases": check["phrases"],
            "paths": check.get("globs", []),
            "topic": check.get("topic", ""),
        }
        return {"kind": "text", **fields} | ({"places": places} if len(places) == 1 else {})
    paths = {"paths": check.get("globs", ["**/*.py"])}
    if kind == "require_decorator":
        return {"kind": "decorator", "decorator": check["decorator"], **paths} | {
            name: value for name, value in (("functions", check.get("functions")),) if value
        }
    wanted = {} if check.get("forbidden") else {"required": True}
    return {"kind": "dependency", "packages": [check["module"]], "places": ["imports"], **paths, **wanted}


def in_words(check: Check) -> str:
    """Describe a check in a line: kind, mode, and what is set."""
    common = ("mode", "by_hand", "written_by")
    settings = {name: getattr(check, name) for name in check.__struct_fields__ if name not in common}
    words = [
        f"{name.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in settings.items()
        if value
    ]
    author = check.written_by or "hand" * check.by_hand
    how = f"{check.mode}, by {author}" if author else check.mode
    return f"{type(check).__struct_config__.tag} ({how}): {'; '.join(words)}"
