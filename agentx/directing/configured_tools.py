"""The tools that ``director.tools`` gives to executors: functions of a module, programs, MCP servers."""

import functools
import importlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from agentx.config import ToolSource
from agentx.directing.configured import program_environ
from agentx.directing.described_function import described
from agentx.directing.mcp_client import Annotations, McpServer, ServerFailed, ServerTool
from agentx.directing.piped_program import Program
from agentx.engine.engine import Engine
from agentx.storage.errors import UsageError
from agentx.storage.text import one_line, shorten
from agentx.tools.acts import act, declaration
from agentx.tools.functions import ToolFailed
from agentx.tools.toolset import CallCutOff

T = TypeVar("T")
Functions = dict[str, Callable[..., Any]]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")
_OUTPUT_BYTES = 1_000_000
_SAID_WORDS = 40


class ToolsUnusable(UsageError):
    """``director.tools`` names a tool that cannot be made."""


@contextmanager
def configured_tools(engine: Engine) -> Iterator[Functions]:
    """Make the tools that the workspace configures; their servers end with the context.

    Raises:
        Restricted: The configuration of an untrusted workspace names them.
        ToolsUnusable: One of them cannot be made, or two have the same name.
    """
    sources = engine.config.director.tools
    if sources:
        engine.trust.require("director.tools")
    made: Functions = {}
    with ExitStack() as stack:
        if any(source.module for source in sources):
            sys.path.append(str(engine.root))  # last, so that nothing there hides another module
            stack.callback(sys.path.remove, str(engine.root))
        for source in sources:
            for name, function in _functions(engine, source, stack).items():
                if name in made:
                    raise ToolsUnusable(f"director.tools: two tools have the name {name!r}.")
                if not _NAME.fullmatch(name):
                    raise ToolsUnusable(
                        f"director.tools: {one_line(name)[:80]!r} is not a name of a tool; leave it out with "
                        '`only = ["…"]`.'
                    )
                made[name] = function
        yield made


def _functions(engine: Engine, source: ToolSource, stack: ExitStack) -> Functions:
    if source.module:
        return _only(source, source.module, _of_module(engine, source.module))
    if source.command:
        return {source.name: _command(engine, source)}
    server = McpServer(source.mcp, program_environ(engine), engine.root, source.timeout_s)
    try:
        tools = stack.enter_context(server).tools()
    except ServerFailed as error:
        raise ToolsUnusable(f"director.tools: {error}") from error
    offered = _only(source, source.mcp[0], {tool.name: tool for tool in tools})
    try:
        return {name: _of_server(server, tool) for name, tool in offered.items()}
    except (AttributeError, TypeError, ValueError) as error:  # a server may send anything
        raise ToolsUnusable(
            f"director.tools: a tool of {source.mcp[0]} has an inputSchema that is not a JSON schema of an "
            f"object ({error}); leave it out with `only`."
        ) from error


def _only(source: ToolSource, where: str, found: Mapping[str, T]) -> dict[str, T]:
    """Return what a source offers of what it has.

    Raises:
        ToolsUnusable: It has none, or not one that is named.
    """
    lacking = [name for name in source.only if name not in found]
    if lacking or not found:
        has = f"it has {', '.join(found)}" if found else "it has no tools"
        raise ToolsUnusable(f"director.tools: {where} has no {lacking[0] if lacking else 'tools'}; {has}.")
    return {name: found[name] for name in source.only or found}


# --- a module -----------------------------------------------------------------------------------------------


def _of_module(engine: Engine, name: str) -> Functions:
    """Return the public functions that a module defines with type hints or as acts."""
    module = _load(engine, name)
    found: Functions = {}
    for each, function in vars(module).items():
        if each.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        if not (inspect.get_annotations(function) or declaration(function)):
            continue
        if inspect.iscoroutinefunction(function):
            raise ToolsUnusable(
                f"director.tools: {each} of {name} is asynchronous; a tool is a plain function."
            )
        found[each] = _aside(function)
    return found


def _load(engine: Engine, name: str) -> ModuleType:
    """Import a module: a file beside ``agentx.toml``, or a name that Python knows.

    Raises:
        ToolsUnusable: It is not there, lies where agents can write, or cannot be imported.
    """
    try:
        with redirect_stdout(sys.stderr):
            if not name.endswith(".py"):
                _refuse_artifact(engine, name, importlib.util.find_spec(name.partition(".")[0]))
                return importlib.import_module(name)
            path = Path(engine.root, Path(name).expanduser())
            spec = importlib.util.spec_from_file_location(f"agentx_tools_{path.stem}", path)
            _refuse_artifact(engine, name, spec)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[module.__name__] = module  # its annotations and dataclasses look it up there
            spec.loader.exec_module(module)
            return module
    except ToolsUnusable:
        raise
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {shorten(one_line(str(error)), _SAID_WORDS)}"
        raise ToolsUnusable(f"director.tools: {name} cannot be imported: {why}.") from error


def _refuse_artifact(engine: Engine, name: str, spec: ModuleSpec | None) -> None:
    """Refuse a module that an agent could have written: it would run as the user.

    Raises:
        ToolsUnusable: It lies in the artifacts.
    """
    origins = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    root, artifacts = engine.root.resolve(), engine.artifacts.root.resolve()
    for origin in filter(None, origins):
        path = Path(origin).resolve()
        ours = path.is_relative_to(root) and not artifacts.is_relative_to(root)
        if path.is_relative_to(artifacts) and not ours:
            raise ToolsUnusable(
                f"director.tools: {name} lies in the artifacts, which agents can write; put it beside "
                "agentx.toml."
            )


def _aside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its prints on stderr; stdout is for the result of the command."""

    @functools.wraps(function)
    def call(*args: Any, **arguments: Any) -> Any:
        with redirect_stdout(sys.stderr):
            return function(*args, **arguments)

    return call


# --- a program per call, and a server -----------------------------------------------------------------------


def _command(engine: Engine, source: ToolSource) -> Callable[..., Any]:
    """Return a function that runs a program: arguments as JSON on stdin, the result on stdout."""
    shapes = {
        name: {"type": shape} if isinstance(shape, str) else shape
        for name, shape in source.parameters.items()
    }
    schema = {
        "type": "object",
        "properties": shapes,
        "required": [name for name, shape in shapes.items() if "default" not in shape],
        "additionalProperties": False,
    }
    environ = program_environ(engine)

    def run(arguments: dict[str, Any]) -> str:
        given = json.dumps(arguments, ensure_ascii=False).encode(errors="replace")
        try:
            started = Program(source.command, environ, engine.root, source.timeout_s)
        except (OSError, ValueError) as error:
            raise ToolFailed(f"it cannot be run: {getattr(error, 'strerror', None) or error}") from error
        with started as program:
            output = program.rest(given, _OUTPUT_BYTES)
        status = program.exit_status or 0
        if program.late:
            raise CallCutOff(
                f"{source.name} took longer than {source.timeout_s:g} seconds and was ended; its outcome is "
                "unknown."
            )
        if status < 0:
            raise CallCutOff(f"{source.name} was ended by signal {-status}; its outcome is unknown.")
        if status:
            told = shorten(one_line(program.aside.text() or output), _SAID_WORDS)
            raise ToolFailed(f"exit status {status}{f': {told}' if told else ''}")
        return output.strip()

    return described(source.name, source.description, schema, run)


def _of_server(server: McpServer, tool: ServerTool) -> Callable[..., Any]:
    hints = tool.annotations or Annotations()

    def run(arguments: dict[str, Any]) -> str:
        return server.call(tool.name, arguments)

    about, schema = tool.description or "", tool.input_schema
    function = described(tool.name, about, schema, run, repeatable=hints.idempotent_hint)
    return act(function, window="never") if hints.read_only_hint else function
