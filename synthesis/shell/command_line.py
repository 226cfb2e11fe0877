"""Read a command line: the programs that it runs, in order, each with its words, redirects and input.

The line is parsed with tree-sitter, and never run. Variables that it sets itself, loops over known words, and
braces are expanded. Scripts in ``bash -c``, ``eval``, ``find -exec`` and here-documents of a shell are read
too. A line that does not parse is read as far as possible, and is not :attr:`CommandLine.understood`.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import islice, product, zip_longest
from typing import TYPE_CHECKING

import msgspec

from agentx.synthesis.shell.printed import printed, unescaped
from agentx.synthesis.shell.wrappers import carried, is_shell, runs_as_written, script_of, unwrapped

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMAND = 10_000
"""Maximum number of characters that are read."""

_MAX_CALLS = 1_000
_MAX_NESTING = 40
_MAX_SCRIPTS = 3
_MAX_VALUES = 64


class ProgramCall(msgspec.Struct, frozen=True):
    """One program of a command line, without its wrappers (``timeout 60``, ``uv run``, ``python -m``).

    Attributes:
        program: Base name of the program; empty for the redirects of a group.
        arguments: Its arguments, including the subcommand.
        follower: The operator before the next step: ``|``, ``&&``, ``||``, ``;``, ``&`` or empty.
        group_follower: The operator after the enclosing group: ``|`` for ``a`` in ``(a && b) | c``; ``$(`` if
            the program's output becomes words of another.
        shells: The subshells that the program runs in, outermost first, each by a number.
        inside: Number of enclosing substitutions, such as ``$(…)``.
        writes: The files that its output is redirected to, each with the operator ``>`` or ``>>``.
        given: The text of its here-document or here-string, or that is piped into a shell, if it is known.
        fed: Whether its input is a pipe, a file or a text, and not what somebody types.
        sets: Names of variables that are set for it, or by a statement without a program.
        set_to: The values that are set for it.
        as_written: Whether exactly this program runs: found on ``PATH``, and by no wrapper that changes more
            than its time or user.
        words: The program and its arguments with all wrappers, as written.
    """

    program: str
    arguments: tuple[str, ...] = ()
    follower: str = ""
    group_follower: str = ""
    shells: tuple[int, ...] = ()
    inside: int = 0
    writes: tuple[tuple[str, str], ...] = ()
    given: str = ""
    fed: bool = False
    sets: tuple[str, ...] = ()
    set_to: tuple[str, ...] = ()
    as_written: bool = True
    words: tuple[str, ...] = ()


class CommandLine(msgspec.Struct, frozen=True):
    """A command line that was read.

    Attributes:
        calls: The programs, and the redirects of groups, in order.
        understood: Whether all of it was read, without a syntax error.
    """

    calls: tuple[ProgramCall, ...]
    understood: bool


@lru_cache(maxsize=256)
def read_command(command: str) -> CommandLine:
    """Read a command line.

    >>> [(call.program, call.writes) for call in read_command("cd app && { pwd; } >> a.txt").calls]
    [('cd', ()), ('', (('>>', 'a.txt'),)), ('pwd', ())]
    """
    reader = _Reader()
    reader.script(command[:MAX_COMMAND])
    if reader.calls:
        reader.calls[-1] = msgspec.structs.replace(reader.calls[-1], follower="", group_follower="")
    return CommandLine(tuple(reader.calls), reader.understood and len(command) <= MAX_COMMAND)


def steps(command: str) -> tuple[ProgramCall, ...]:
    """Return the programs that a command line runs, each without its wrappers.

    >>> [step.program for step in steps("cd app && timeout 60 uv run pytest -q 2>&1 | tail -5")]
    ['cd', 'pytest', 'tail']
    """
    return tuple(call for call in read_command(command).calls if call.program)


@lru_cache(maxsize=64)
def located(command: str) -> tuple[tuple[ProgramCall, str], ...]:
    """Return the programs that a command line runs, each with the directory in which it works.

    >>> [(call.program, folder) for call, folder in located("(cd web && npm test); git -C api pull; ls")]
    [('cd', ''), ('npm', 'web'), ('git', 'api'), ('ls', '')]
    """
    folders: dict[tuple[int, ...], str] = {}
    found: list[tuple[ProgramCall, str]] = []
    for call in read_command(command).calls:
        # A subshell begins where its parent is; what it changes to is gone with it.
        within = (call.shells[:count] for count in range(len(call.shells), -1, -1))
        folder = next((folders[shells] for shells in within if shells in folders), "")
        own = _own_folder(call)
        found.append((call, posixpath.normpath(posixpath.join(folder, own)) if own else folder))
        if call.program in {"cd", "pushd"} and call.arguments:
            folders[call.shells] = posixpath.normpath(posixpath.join(folder, call.arguments[-1]))
    return tuple(found)


_FOLDER_FLAGS = {
    **dict.fromkeys(("git", "go", "cargo"), ("-C",)),
    **dict.fromkeys(("make", "gmake", "ninja"), ("-C", "--directory")),
    **dict.fromkeys(("npm", "pnpm"), ("-C", "--prefix", "--dir")),
    **dict.fromkeys(("yarn", "bun"), ("--cwd",)),
    **dict.fromkeys(("terraform", "tofu"), ("-chdir",)),
    **dict.fromkeys(("uv", "poetry"), ("-C", "--directory", "--project")),
    **dict.fromkeys(("gradle", "gradlew"), ("-p", "--project-dir")),
    **dict.fromkeys(("composer", "just"), ("-d", "--working-dir", "--working-directory")),
}
"""By program, the flags that name the directory in which it works."""


def _own_folder(call: ProgramCall) -> str:
    """Return the directory that a program's own option names; empty for none."""
    flags = _FOLDER_FLAGS.get(call.program, ())
    for word, following in zip_longest(call.arguments, call.arguments[1:], fillvalue=""):
        flag, joined, value = word.partition("=")
        if flag in flags:
            return value if joined else following
    return ""


# --- the syntax tree ----------------------------------------------------------------------------------------

_OPERATORS = {"&&", "||", "|", "|&", ";", "&", "\n", ";;", ";&", ";;&"}
_PIPES = {"|", "|&"}
_WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion",
    "brace_expression", "extglob_pattern", "regex", "array", "string_content", "test_operator",
}  # fmt: skip
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_SUBSTITUTIONS = {"command_substitution", "process_substitution"}
_HEREDOC_PARTS = {
    *_REDIRECTS, "<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor",
}  # fmt: skip
_COMMANDS = {"command", "declaration_command", "unset_command", "test_command"}
_READS = {"read", "unset", "mapfile", "readarray", "getopts"}
_CHAINS = {"list", "pipeline", "negated_command", "redirected_statement"}
_GROUPS = {
    "subshell", "compound_statement", "if_statement", "while_statement", "for_statement",
    "c_style_for_statement", "case_statement",
}  # fmt: skip
NOWHERE = re.compile(r"/dev/(?:null|std(?:out|err)|tty|fd/\d+)")
"""Devices that keep nothing of what is written to them."""

_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?!\w|\[)")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_TYPED = re.compile(r"/dev/(?:tty\w*|stdin|console|pts/\d+)")


@cache
def _parser() -> "Parser":
    from tree_sitter import Language, Parser  # noqa: PLC0415 - loaded when the first command is read
    from tree_sitter_bash import language  # noqa: PLC0415 - as above

    return Parser(Language(language()))


class _Parts:
    """The parts of a simple command, as they are read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.sets: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self.set_to: list[str] = []
        self.given = ""
        self.fed = False
        self.later: list[list[Node]] = []


class _Reader:
    """Walks the syntax tree of a command line, and of the scripts in it.

    Attributes:
        calls: What was found so far.
        understood: Whether nothing was skipped.
    """

    def __init__(self) -> None:
        self.calls: list[ProgramCall] = []
        self.understood = True
        self._known: dict[str, list[str]] = {"PWD": ["."]}
        self._functions: dict[str, Node] = {}
        self._aliases: dict[str, str] = {}
        self._called: set[str] = set()
        self._shells: tuple[int, ...] = ()
        self._inside = self._scripts = self._nesting = self._branches = self._numbers = 0
        self._last: tuple[int, bool] = 0, False
        self._feeding: tuple[int, int] = 0, 0
        self._fed = 0

    def script(self, text: str) -> None:
        """Read a script in the current shell."""
        if not text.strip():  # most calls have no command, and need no grammar
            return
        if self._scripts > _MAX_SCRIPTS:
            self.understood = False
            return
        root = _parser().parse(text.encode("utf-8", "replace")).root_node
        if root.has_error and (closed := _closed(text)) != text:
            root = _parser().parse(closed.encode("utf-8", "replace")).root_node
        self.understood &= not root.has_error
        self._scripts += 1
        self._sequence(root.children)
        self._scripts -= 1
        for name in list(self._functions) if not self._scripts else ():
            if name not in self._called:
                self._subshell([self._functions.pop(name)])

    # --- statements

    def _sequence(self, nodes: Iterable["Node"]) -> None:
        """Read statements; in text that does not parse, also loose words."""
        loose: list[Node] = []
        unended = False
        for node in nodes:
            if node.type in _WORDS | _REDIRECTS:
                loose.append(node)
                continue
            self._command(loose)
            loose = []
            if node.type in _OPERATORS:
                self._follow(node.type)
                unended = False
            elif node.is_named and node.type != "comment":
                if unended:  # a line has ended
                    self._follow(";")
                self._statement(node)
                unended = True
        self._command(loose)

    def _follow(self, sign: str) -> None:
        """Note the operator after the last statement."""
        start, grouped = self._last
        if start < len(self.calls):
            sign = sign if sign in {"&&", "||", "|", "|&", "&"} else ";"
            if grouped:
                self._close(start, sign)
            if sign in _PIPES:
                self._feeding = start, len(self.calls)
            self.calls[-1] = msgspec.structs.replace(self.calls[-1], follower=sign)

    def _close(self, start: int, sign: str) -> None:
        """Note the operator after a group that began at a call."""
        for number, call in enumerate(self.calls[start:], start):
            if call.group_follower in {"", "&&"}:
                self.calls[number] = msgspec.structs.replace(call, group_follower=sign)

    def _statement(self, node: "Node", redirects: Sequence["Node"] = ()) -> None:
        if self._nesting >= _MAX_NESTING or len(self.calls) >= _MAX_CALLS:
            self.understood = False
            return
        self._nesting += 1
        kind, children = node.type, node.children
        if kind in _CHAINS:
            self._chain(node, redirects)
        elif kind in _GROUPS:
            self._group(node, redirects)
        elif kind in _COMMANDS:
            self._command([*children, *redirects], of_shell=kind != "command")
        elif kind == "function_definition":
            name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if name is not None and body is not None:
                self._functions[_text(name)] = body
        elif kind in {"variable_assignment", "variable_assignments"}:
            self._assign([node] if kind == "variable_assignment" else children)
        else:
            self._sequence(children if kind != "case_item" else self._body(node))
        self._nesting -= 1

    def _chain(self, node: "Node", redirects: Sequence["Node"]) -> None:
        """Read the parts of ``a && b | c > d``; redirects belong to the last one."""
        parts: list[Node] = []
        waiting = [node]
        while waiting:  # without recursion, as a chain of any length nests to the left
            part = waiting.pop()
            if part.type in _CHAINS:
                waiting += reversed(part.children)
            elif part.type in _OPERATORS or (part.is_named and part.type != "comment"):
                parts.append(part)
        branches = sum(part.type in {"&&", "||"} for part in parts)
        self._branches += branches
        unit: list[Node] = []
        piped = False
        for part in parts:
            if part.type in _OPERATORS:
                self._redirected(unit, fed=piped)
                self._follow(part.type)
                unit, piped = [], part.type in _PIPES
            else:
                unit.append(part)
        self._redirected([*unit, *redirects], fed=piped)
        self._branches -= branches

    def _redirected(self, nodes: Sequence["Node"], *, fed: bool = False) -> None:
        redirects = [node for node in nodes if node.type in _REDIRECTS]
        self._fed += fed
        statements = [node for node in nodes if node.type not in _REDIRECTS]
        for number, node in enumerate(statements, start=1):
            self._statement(node, redirects if number == len(statements) else ())
        if not statements:
            self._command(redirects)
        self._fed -= fed

    def _group(self, node: "Node", redirects: Sequence["Node"]) -> None:
        start = len(self.calls)
        self._command(redirects)  # they are opened before the group changes its directory
        fed = any(_is_input(node) for node in redirects)
        self._fed += fed
        if node.type == "subshell":
            self._subshell(node.children)
        elif node.children[0].type == "((":
            self._add(_parts(["(("]))
            self._substitutions(node)
        else:
            branches = node.type != "compound_statement"
            self._branches += branches
            self._sequence(self._body(node))
            self._branches -= branches
        self._fed -= fed
        self._last = start, True

    def _body(self, node: "Node") -> list["Node"]:
        """Return the statements of a group; the words of a loop become the values of its variable."""
        if node.type == "c_style_for_statement":
            self._substitutions(node, but="do_group")
            return [child for child in node.children if child.type == "do_group"]
        parts, variable = node.children_by_field_name("value"), node.child_by_field_name("variable")
        words = [value for part in parts for value in self._values(part)]
        if variable is not None:
            self.calls.append(self._call("", (), sets=(_text(variable),)))
            self._set(_text(variable), words)
        return [child for child in node.children if child not in parts and child != variable]

    def _set(self, name: str, values: list[str]) -> None:
        self.understood &= len(values) <= _MAX_VALUES
        self._known[name] = values[:_MAX_VALUES]
        if not values:
            del self._known[name]

    def _subshell(self, nodes: Iterable["Node"], *, inside: int = 0) -> None:
        """Read statements in their own shell: what they change to or set ends with it."""
        before, known, last = self._shells, self._known, self._last
        self._numbers += 1
        self._shells, self._known = (*before, self._numbers), dict(known)
        self._inside += inside
        self._sequence(nodes)
        self._shells, self._known, self._last = before, known, last
        self._inside -= inside

    # --- commands

    def _command(self, nodes: Sequence["Node"], *, of_shell: bool = False) -> None:
        """Read a simple command, once for each value of its variables.

        Args:
            nodes: Its words and redirects.
            of_shell: Whether it is a statement of the shell (``export``, ``[``), whose signs are words too.
        """
        if not nodes:
            return
        known, start = self._known, len(self.calls)
        texts = (_text(node) for node in nodes if node.type != "heredoc_redirect")
        names = dict.fromkeys(name for text in texts for name in _VARIABLE.findall(text))
        several = [name for name in names if len(known.get(name, ())) > 1]
        if not several:
            self._once(nodes, of_shell=of_shell)
            return
        found = list(islice(product(*(known[name] for name in several)), _MAX_VALUES + 1))
        self.understood &= len(found) <= _MAX_VALUES
        for chosen in found[:_MAX_VALUES]:
            self._known = {**known, **{name: [value] for name, value in zip(several, chosen, strict=True)}}
            self._once(nodes, of_shell=of_shell)
        self._known = known
        self._last = start, True

    def _once(self, nodes: Sequence["Node"], *, of_shell: bool) -> None:
        start, parts = len(self.calls), _Parts()
        for node in nodes:
            if node.type == "variable_assignment" and of_shell:
                self._assign([node])
                parts.words.append(_text(node))
            elif node.type == "variable_assignment":
                parts.sets.append(_text(node).partition("=")[0])
                value = node.child_by_field_name("value")
                parts.set_to += self._values(value) if value is not None else []
            elif node.type in _REDIRECTS:
                self._redirect(node, parts)
            elif of_shell or node.type in _WORDS | {"command_name"}:
                parts.words += self._values(node)
            elif node.is_named:
                self.understood = False  # the grammar allows what a shell does not: `cat (rm a)`
                self._statement(node)
        self._close(start, "$(")  # what a substitution prints becomes words
        start = len(self.calls)
        self._last = start, False
        if parts.words and parts.words[0] in self._functions:
            self._add(_parts([], parts))
            self._called.add(parts.words[0])
            body = self._functions.pop(parts.words[0])
            self._statement(body)
            self._functions[parts.words[0]] = body
            self._last = start, True
        elif parts.words and parts.words[0] in self._aliases:
            alias = parts.words[0]
            meaning = self._aliases.pop(alias)  # an alias is not expanded within itself
            self.script(f"{meaning} {shlex.join(parts.words[1:])}")
            self._aliases[alias] = meaning
            self._last = start, True
        else:
            self._add(parts)
        for later in parts.later:
            self._sequence(later)

    def _redirect(self, node: "Node", parts: _Parts) -> None:
        """Read a redirect; a here-document's first line can hold further words, redirects and statements."""
        parts.fed |= _is_input(node)
        if node.type == "herestring_redirect":
            parts.given = "\n".join(value for child in node.children[1:] for value in self._values(child))
        elif node.type == "heredoc_redirect":
            body = "".join(_text(child) for child in node.children if child.type == "heredoc_body")
            tabs = node.children[0].type == "<<-"
            parts.given = re.sub(r"^\t+", "", body, flags=re.MULTILINE) if tabs else body
            for child in node.children:
                if child.type in _REDIRECTS:
                    self._redirect(child, parts)
                elif child.type == "heredoc_body":
                    self._substitutions(child)
            words = node.children_by_field_name("argument")
            parts.words += [value for word in words for value in self._values(word)]
            rest = [
                child for child in node.children if child.type not in _HEREDOC_PARTS and child not in words
            ]
            if rest:
                parts.later.append(rest[0].children if rest[0].type == "pipeline" else rest)
        else:
            self._file(node, parts)

    def _file(self, node: "Node", parts: _Parts) -> None:
        """Read the redirect to or from a file; the grammar adds the words after it to it."""
        sign = next((child.type for child in node.children if child.type[:1] in "<>&"), "")
        after = [child for child in node.children if child.type in _WORDS | {"ERROR"}]
        for path in self._values(after[0]) if after else ():
            is_copy = sign in {">&", "<&"} and re.fullmatch(r"\d*-?", path)
            if ">" in sign and not is_copy and not NOWHERE.fullmatch(path):
                parts.writes.append((">>" if ">>" in sign else ">", path))
        end = next((number for number, child in enumerate(after) if child.type == "ERROR"), len(after))
        parts.words += [value for word in after[1:end] for value in self._values(word)]
        if end < len(after):  # the grammar does not expect `;` after a here-document's start
            parts.later.append([*after[end].children, *after[end + 1 :]])

    def _assign(self, nodes: Iterable["Node"]) -> None:
        """Read assignments; in a branch, a variable keeps its earlier values too."""
        start = len(self.calls)
        for node in nodes:
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                known = _text(name)
                found = self._values(value) if value is not None else [""]
                before = self._known.get(known, []) if self._branches or "+=" in _text(node) else []
                self._set(known, list(dict.fromkeys((*before, *found))))
                self.calls.append(self._call("", (), sets=(known,)))
        self._last = start, True

    def _add(self, parts: _Parts) -> None:
        """Add the program of these words; for ``bash -c "a && b"``, the programs that the shell runs."""
        named = unwrapped(parts.words)
        program, arguments = (named[0], tuple(named[1:])) if named else ("", ())
        if is_shell(program) and not parts.given:
            parts.given = self._piped(parts)
        script = script_of(program, arguments, parts.given)
        if script is None and len(parts.words) > len(named) and re.search(r"\s", program):
            script = program  # `npx -c "a b"`, `env -S "a b"`
        if script is not None:
            self._run(script, parts, own_shell=program != "eval")
        elif named or parts.writes or parts.sets:
            self.calls.append(
                self._call(program, arguments, parts, as_written=runs_as_written(parts.words, named))
            )
        if program == "alias":
            given = (word.partition("=") for word in arguments)
            self._aliases |= {name: value for name, sign, value in given if sign}
        elif program in _READS:
            for name in arguments:
                self._known.pop(name, None)
        self._nesting += 1
        for inner in carried(program, arguments) if self._nesting < _MAX_NESTING else ():
            self._add(_parts(inner))
        self.understood &= self._nesting < _MAX_NESTING
        self._nesting -= 1

    def _run(self, script: str, parts: _Parts, *, own_shell: bool) -> None:
        """Read the script of a shell, with the redirects of the shell; in this one, or in one of its own."""
        start = len(self.calls)
        if parts.writes:
            self.calls.append(self._call("", (), parts))
        shells, known = self._shells, self._known
        if own_shell:
            self._numbers += 1
            self._shells, self._known = (*shells, self._numbers), dict(known)
        self.script(script)
        if own_shell:
            self._shells, self._known = shells, known
        self._last = start, True

    def _piped(self, parts: _Parts) -> str:
        """Return the text that is piped into the program which is read next; empty if it is not known."""
        start, end = self._feeding
        if parts.fed or not self._fed or end != len(self.calls):
            return ""
        texts = [
            None if call.writes else printed(call.program, call.arguments, call.given)
            for call in self.calls[start:end]
        ]
        return "\n".join(filter(None, texts)) if None not in texts else ""

    def _call(
        self,
        program: str,
        arguments: tuple[str, ...],
        parts: _Parts | None = None,
        *,
        as_written: bool = True,
        sets: tuple[str, ...] = (),
    ) -> ProgramCall:
        parts = parts or _Parts()
        return ProgramCall(
            program=program,
            arguments=arguments,
            shells=self._shells,
            inside=self._inside,
            writes=tuple(parts.writes),
            given=parts.given,
            fed=parts.fed or bool(self._fed),
            set_to=tuple(parts.set_to),
            sets=sets or tuple(parts.sets),
            as_written=as_written,
            words=tuple(parts.words),
        )

    # --- words

    def _values(self, node: "Node") -> list[str]:
        """Return the words that a word becomes: several for braces, and for an array."""
        kind, text = node.type, _text(node)
        if kind in {"string", "translated_string", "concatenation", "command_name", "array"}:
            return self._joined(node)
        if kind == "raw_string":
            return [text[1:-1]]
        if kind == "ansi_c_string":
            return [unescaped(text[2:-1])]
        if kind in {"simple_expansion", "expansion"}:
            found = self._expanded(node)
            return found if found == [text] else [word for value in found for word in _split(value)]
        if kind in _SUBSTITUTIONS:
            said = self._substituted(node)
            return ["/dev/fd/63"] if kind == "process_substitution" else _split(said)
        if kind == "brace_expression":
            ends = re.fullmatch(r"\{(\d{1,4})\.\.(\d{1,4})\}", text)
            numbers = range(int(ends[1]), int(ends[2]) + 1) if ends else ()
            self.understood &= len(numbers) <= _MAX_VALUES
            return [str(number) for number in numbers[:_MAX_VALUES]] or [text]
        if kind in _WORDS or not node.is_named:
            return [re.sub(r"\\(\n|.)", lambda one: one[1].strip("\n"), text, flags=re.DOTALL)]
        self._substitutions(node)
        return text.split()

    def _substituted(self, node: "Node") -> str:
        """Read a substitution, and return what it prints; its own text if that is not known."""
        start = len(self.calls)
        self._subshell(node.children, inside=1)
        if _text(node) in {"$(pwd)", "`pwd`"}:
            return "."
        made = self.calls[start:]
        found = printed(made[0].program, made[0].arguments, made[0].given) if len(made) == 1 else None
        return _text(node) if found is None or made[0].writes else found.rstrip("\n")

    def _expanded(self, node: "Node") -> list[str]:
        """Return the values of a variable; the text itself if it is not known."""
        self._substitutions(node)
        text = _text(node)
        name = re.fullmatch(r"\$\{?(\w+)(?:\[[@*]\])?\}?", text)
        return self._known.get(name[1], [text]) if name else [text]

    def _joined(self, node: "Node") -> list[str]:
        """Return the values of a word that has several parts, with the text between them."""
        parts: list[list[str]] = []
        place, source = node.start_byte, node.text or b""
        quoted = node.type in {"string", "translated_string"}
        for child in node.children:
            if gap := source[place - node.start_byte : child.start_byte - node.start_byte]:
                parts.append([gap.decode(errors="replace")])
            place = child.end_byte
            if child.type == "string_content":
                parts.append([re.sub(r"\\([\\$`\"\n])", lambda one: one[1].strip("\n"), _text(child))])
            elif quoted and child.type in {"simple_expansion", "expansion"}:
                parts.append(self._expanded(child))
            elif quoted and child.type == "command_substitution":
                parts.append([self._substituted(child)])
            elif child.is_named or not quoted:
                parts.append(self._values(child))
        if node.type == "array":
            return [value for part in parts for value in part if value.strip("() \n")]
        if node.type == "command_name":
            return [value for part in parts for value in part]
        if sum(max(map(len, part), default=0) for part in parts) > MAX_COMMAND:  # `x=$x$x`, over and over
            self.understood = False
            return [_text(node)]
        found = ["".join(chosen) for chosen in islice(product(*parts), _MAX_VALUES)]
        unquoted = node.type == "concatenation" and any(_text(child) == "{" for child in node.children)
        return [word for value in found for word in _spelled_out(value)] if unquoted else found

    def _substitutions(self, node: "Node", *, but: str = "") -> None:
        """Read the commands of substitutions anywhere in a node, except in children of a kind."""
        waiting = [child for child in reversed(node.children) if child.type != but]
        while waiting:
            child = waiting.pop()
            if child.type in _SUBSTITUTIONS:
                self._subshell(child.children, inside=1)
            else:
                waiting += reversed(child.children)


def _parts(words: Sequence[str], like: _Parts | None = None) -> _Parts:
    """Return parts with these words, and with the redirects of others."""
    parts = _Parts()
    parts.words = list(words)
    parts.writes = like.writes if like else []
    return parts


def _is_input(node: "Node") -> bool:
    """Return whether a redirect gives a program its input, other than from a terminal."""
    if node.type != "file_redirect":
        return True
    sign = next((child.type for child in node.children if child.type[:1] in "<>&"), "")
    return sign.startswith("<") and not _TYPED.search(_text(node))


def _text(node: "Node") -> str:
    return (node.text or b"").decode(errors="replace")


def _split(value: str) -> list[str]:
    """Split the value of an unquoted variable into words, unless it is only known when it is run."""
    return [value] if "$" in value or "`" in value else value.split()


def _closed(text: str) -> str:
    """Return a text with the ends of its here-documents, which a shell does not require at the end."""
    for found in islice(_HEREDOC.finditer(text), _MAX_VALUES):
        if not re.search(rf"^\t*{found[2]}$", text[found.end() :], re.MULTILINE):
            text = f"{text}\n{found[2]}\n"
    return text


def _spelled_out(word: str) -> list[str]:
    """Expand braces: ``{a,b}.txt``."""
    words = [word]
    while (braces := _BRACES.search(words[0])) and len(words) < _MAX_VALUES:
        parts, first = braces[1].split(","), words.pop(0)
        words += [f"{first[: braces.start()]}{part}{first[braces.end() :]}" for part in parts]
    return words
