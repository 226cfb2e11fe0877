"""The rules of the house, held over the syntax tree of every source file, and by importing everything once.

A rule takes modules and returns what breaks it, each as ``file:line sentence``. Every rule is shown one piece of code
that breaks it as well, so that none can pass for being blind.
"""

import ast
import builtins
import graphlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("storage", "synthesis", "agentx")
"""Lowest first; a folder may import those before it."""

HOMES = {
    "agent_framework": "agentx/orchestrators/agent_framework.py",
    "agents": "agentx/orchestrators/openai_agents.py",
    "blinker": "agentx/core/event_bus.py",
    "cronsim": "synthesis/scheduling/schedule_times.py",
    "cryptography": "agentx/trust/",
    "dbos": "agentx/scheduling/",
    "jinja2": "synthesis/pipelines/templates.py",
    "jsonpath": "synthesis/directing/fields.py",
    "lancedb": "storage/index/lance",
    "langchain_core": "agentx/orchestrators/langgraph",
    "langgraph": "agentx/orchestrators/langgraph",
    "litellm": ("synthesis/model/litellm_client.py", "agentx/orchestrators/litellm_proxy.py"),
    "matplotlib": "agentx/cognition/pictures/",
    "mcp": "agentx/mcp/",
    "ast_grep_py": "synthesis/enforcement/",
    "pygments": "synthesis/compiling/reading/",
    "onnx": "synthesis/embedding/",
    "onnxruntime": "synthesis/embedding/",
    "ormsgpack": "agentx/orchestrators/langgraph",
    "opentelemetry": "agentx/telemetry.py",
    "proselint": "agentx/quality/",
    "pyarrow": "storage/index/lance",
    "pydantic_ai": "agentx/orchestrators/pydantic_ai.py",
    "pygit2": "storage/git/",
    "requests": "agentx/telemetry.py",
    "rich": "agentx/cli/",
    "sqlalchemy": "agentx/scheduling/shared_queue.py",
    "safetensors": "synthesis/embedding/",
    "starlette": "agentx/inspector/",
    "tiktoken": "synthesis/language/tokens.py",
    "tokenizers": "synthesis/embedding/",
    "tree_sitter": ("synthesis/chunking/", "synthesis/shell/"),
    "typer": "agentx/cli/",
    "uvicorn": "agentx/server/http.py",
    "watchdog": "agentx/recording/file_watcher.py",
    "yaml": "synthesis/pipelines/definition/yaml_lines.py",
}
"""The one place where each vendor may be imported: a file, a folder, or files that begin so."""

LAZY = {
    "agent_framework",
    "agents",
    "ast_grep_py",
    "cryptography",
    "dbos",
    "jinja2",
    "jsonpath",
    "lancedb",
    "litellm",
    "matplotlib",
    "mcp",
    "numpy",
    "onnx",
    "onnxruntime",
    "opentelemetry",
    "proselint",
    "pyarrow",
    "pydantic_ai",
    "requests",
    "safetensors",
    "snowballstemmer",
    "starlette",
    "sqlalchemy",
    "tiktoken",
    "tokenizers",
    "tree_sitter",
    "uvicorn",
    "yaml",
}
"""Heavy or optional: may be imported inside a function, and may not be loaded by importing any of our modules."""

EXTRAS = {
    "agent_framework",
    "agents",
    "dbos",
    "langchain_core",
    "langgraph",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "opentelemetry",
    "ormsgpack",
    "proselint",
    "pydantic_ai",
    "requests",
    "safetensors",
    "sqlalchemy",
    "tokenizers",
}
"""What an extra brings: imported inside ``with needs(EXTRA)``, which names the command that adds it."""

ADAPTERS = ("agentx/orchestrators/langgraph",)
"""Modules whose classes derive from those of the framework that they adapt: a program of that framework imports them,
and nothing of ours does."""

AFTER_NEEDS = {
    "agentx/cognition/pictures/": "every picture is drawn inside canvas.styled, which has it",
    "synthesis/embedding/bert_graph.py": "install.py has it",
}
"""Where such imports need none, because a function that runs before has it."""

ALSO_IN_FUNCTIONS = LAZY | {"markdown_it", "pygments", "readline"}

MAX_FUNCTION_LINES = 100
MAX_MODULE_LINES = 1_000
MAX_FOLDER_MODULES = 16

ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv", "expandvars"}
AT_IMPORT = ENVIRONMENT | {
    *(
        "basicConfig",
        "chdir",
        "connect",
        "filterwarnings",
        "getcwd",
        "makedirs",
        "mkdir",
        "open",
        "Popen",
        "print",
    ),
    *("read_bytes", "read_settings", "read_text", "run", "simplefilter", "touch", "urlopen", "write_bytes"),
    *("write_text",),
}
"""Calls that a module may not make while it is imported."""

FILES = {
    "os": {
        *(
            "link",
            "listdir",
            "makedirs",
            "mkdir",
            "open",
            "readlink",
            "remove",
            "rename",
            "replace",
            "rmdir",
            "scandir",
        ),
        *("symlink", "truncate", "unlink", "walk"),
    },
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"},
    "path": {
        *(
            "glob",
            "hardlink_to",
            "iterdir",
            "mkdir",
            "read_bytes",
            "read_text",
            "rglob",
            "rmdir",
            "symlink_to",
            "touch",
        ),
        *("unlink", "write_bytes", "write_text"),
    },
}
"""Calls that reach files by a path: functions of two modules, and methods of paths."""

OTHER_FILES = {
    "agentx/cli/": "files that a person names, and samples",
    "agentx/client/": "the runtime directory of the user",
    "agentx/hosts/": "the state directory of the user, files of hosts that a person names, and a cache of checks",
    "agentx/core/worktrees.py": "loads next to nothing, for hooks: each name is looked at and opened without following a link",
    "agentx/server/": "the runtime directory of the user",
    "storage/process_memory.py": "/proc",
    "agentx/cognition/pictures/report.py": "a template of ours",
    "agentx/directing/act_socket.py": "a temporary directory that was just made, private to the user",
    "agentx/scheduling/daemon.py": "the user's state directory, and a directory that a person names",
    "agentx/fleet/tenants.py:read_variables": "files that a person names",
    "agentx/transfer/fork.py:_sync": "a directory that was just made; no link is entered",
    "agentx/transfer/importing.py": "files that a person names",
    "agentx/pipelines/pointing/pointed_files.py:_below": "names alone, in source trees that a person names; reading goes by locate",
    "agentx/pipelines/pointing/inputs.py": "the folder of a pipeline that a person names",
    "agentx/integrity/purge/purge.py:_back_up": "a copy of the whole workspace, links as links",
    "agentx/quality/": "copies for a run, outside of any workspace",
    "agentx/settings.py": "/proc",
    "agentx/trust/": "the user's state directory, by descriptors of its own",
    "storage/git/exchange/git_program.py": "a temporary repository",
    "storage/git/exchange/remotes.py:_listing": "the objects of a backup, which are counted and not opened",
    "storage/git/recovery/git_repair.py:_git_at_work": "/proc",
    "storage/git/recovery/git_repair.py:_is_git_in": "/proc",
    "synthesis/": "installed models, texts of ours, and scripts that a person names",
}
"""Modules, folders and functions that reach other files than those below a workspace, and which."""

STARTS = {"Command", "embed_texts", "open_model", "run_in_copy"}
"""Calls by which something that a workspace names begins to run, is asked, or is read outside."""

GATES = {"require", "require_commands", "require_item", "sandbox_policy", "trusted"}
"""What a function that makes such a call asks first: whether a person trusts the workspace."""

UNGATED = {
    "agentx/cli/setup/doctor.py:_model": "the doctor looks at the model of a workspace that is trusted",
    "agentx/cli/work/play.py:_program": "a sample runs in a workspace that it has just made",
}
"""Functions that start something without asking themselves, and why."""

ENVIRONMENT_ONCE = {
    "agentx/client/place.py",
    "agentx/directing/report_act.py",
    "storage/index/lance_table.py",
    "synthesis/model/litellm_client.py",
}
"""The modules that touch the environment once, besides agentx/settings.py."""

PROGRAMS = {
    "agentx/client/client.py": "starts this program as the server of the user",
    "agentx/cli/setup/doctor.py": "asks git for its version",
    "agentx/directing/piped_program.py": "runs a Command, which is gated",
    "agentx/directing/report_act.py": "runs in a program of a run, and runs what that program could run itself",
    "agentx/quality/bubblewrap.py": "tries whether bubblewrap works",
    "agentx/quality/confine.py": "tries whether Landlock works, and becomes what run_in_copy is given",
    "agentx/quality/process.py": "runs what run_in_copy is given, which is gated",
    "agentx/quality/sandbox.py": "removes a copy",
    "agentx/quality/typos.py": "runs typos, which looks words up in standard input",
    "storage/git/packs/packing.py": "runs this program, isolated, to pack objects",
    "storage/matching/matcher.py": "runs this program, isolated, to match a pattern within a time",
    "storage/git/exchange/git_program.py": "runs git on the objects of a repository, without its configuration and hooks",
    "synthesis/embedding/install.py": "fetches the model that a person installs",
    "synthesis/state/parallel_fold.py": "runs this program, isolated, to fold a long log",
}
"""The modules that start a program, and which."""

SIGNALS = {
    "Here": "agentx/cli/forward.py",
    "NotBelieved": "synthesis/judgement/book.py",
    "RunStops": "agentx/agents/bounds.py",
}
"""Exceptions that are no errors: they steer, and what raises them is caught by what called it."""

VAGUE = {"helper", "helpers", "manager", "managers", "util", "utils"}
BUILTIN_ERRORS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


@dataclass(frozen=True)
class Module:
    """One source file: its path from the root, its import name, and its tree."""

    path: str
    source: str

    @property
    def layer(self) -> str:
        return self.path.split("/", 1)[0]

    @property
    def name(self) -> str:
        parts = self.path.removesuffix(".py").removesuffix("/__init__").split("/")
        return ".".join(parts if self.layer == "agentx" else ["agentx", *parts])

    @property
    def folder(self) -> str:
        """The package; a module directly below one of the three parts counts as a folder of its own."""
        package = self.name if self.path.endswith("/__init__.py") else self.name.rpartition(".")[0]
        return self.name if package in {"agentx", "agentx.storage", "agentx.synthesis"} else package

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree; it is walked once for all rules."""
        return list(ast.walk(self.tree))

    @cached_property
    def import_statements(self) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
        """Every import statement, and whether it stands in a function."""

        def visit(node: ast.AST, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Import | ast.ImportFrom):
                    yield child, inside
                elif not isinstance(child, ast.expr):  # no expression contains a statement
                    function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                    yield from visit(child, inside or function)

        return list(visit(self.tree, inside=False))

    def at(self, node: ast.AST, sentence: str) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)} {sentence}"


@dataclass(frozen=True)
class Import:
    """An import of ``target``; ``inside`` is true where it stands in a function."""

    node: ast.stmt
    target: str
    inside: bool


def house() -> list[Module]:
    found = []
    for layer in LAYERS:
        for folder, folders, files in os.walk(ROOT / layer):  # links are not followed: each file once
            folders[:] = [f for f in folders if f != "__pycache__"]
            paths = (Path(folder, f) for f in files if f.endswith(".py"))
            found += [Module(p.relative_to(ROOT).as_posix(), p.read_text("utf-8")) for p in paths]
    return sorted(found, key=lambda module: module.path)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return house()


def imports(module: Module, known: frozenset[str] = frozenset()) -> Iterator[Import]:
    """Every import, by full name: ``from agentx.x import y`` is ``agentx.x.y`` where that is a module."""

    for node, inside in module.import_statements:
        if isinstance(node, ast.Import):
            yield from (Import(node, alias.name, inside) for alias in node.names)
        else:
            base = _absolute(module, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(node, full if full in known else base, inside)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")
    if not module.path.endswith("/__init__.py"):
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def vendor_of(target: str) -> str:
    root = target.split(".", 1)[0]
    return "tree_sitter" if root.startswith("tree_sitter_") else root


def layer_of(target: str) -> str | None:
    """The layer that an imported name belongs to; ``None`` for what is not ours."""
    parts = target.split(".")
    if parts[0] != "agentx":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "agentx"


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in module.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def classes(module: Module) -> Iterator[ast.ClassDef]:
    return (n for n in module.nodes if isinstance(n, ast.ClassDef))


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# --- the rules -------------------------------------------------------------------------------------------------------


def upward_imports(modules: list[Module]) -> list[str]:
    """Imports run downwards only: agentx, then synthesis, then storage."""
    known = frozenset(m.name for m in modules)
    return [
        m.at(i.node, f"{m.layer}/ imports {i.target}, which stands above it")
        for m in modules
        for i in imports(m, known)
        if (layer := layer_of(i.target)) and LAYERS.index(layer) > LAYERS.index(m.layer)
    ]


def second_names(modules: list[Module]) -> list[str]:
    """The linked folders have one name each: agentx.storage and agentx.synthesis."""
    return [
        m.at(i.node, f"imports {i.target}; its one name is agentx.{i.target}")
        for m in modules
        for i in imports(m)
        if i.target.split(".")[0] in {"storage", "synthesis"}
    ]


def import_circles(modules: list[Module]) -> list[str]:
    """No module imports itself by way of others, not even for a type."""
    known = {m.name: m for m in modules}
    graph = {
        m.name: sorted({i.target for i in imports(m, frozenset(known)) if i.target in known}) for m in modules
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1][::-1]
        return [f"{known[circle[0]].path}:1 imports run in a circle: {' → '.join(circle)}"]
    return []


def folder_circles(modules: list[Module]) -> list[str]:
    """No folder imports itself by way of others: they have an order."""
    names = {m.name: m for m in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        graph.setdefault(module.folder, set()).update(folders_imported(module, names))
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1][::-1]
        first = next(module for module in modules if module.folder == min(circle))
        return [first.at(first.tree, f"folders import each other: {' → '.join(circle)}")]
    return []


def undeclared_imports(modules: list[Module]) -> list[str]:
    """The docstring of a folder says which others it imports, and says it truly; of a lower part, the part's name."""
    names = {m.name: m for m in modules}
    folders: dict[str, set[str]] = {}
    for module in modules:
        folders.setdefault(module.folder, set()).update(folders_imported(module, names))
    found = []
    for module in modules:
        if not module.path.endswith("/__init__.py") or module.name == "agentx":
            continue
        told = _MAY_IMPORT.search(ast.get_docstring(module.tree) or "")
        declared = set(" ".join(told[1].split()).split(", ")) - {"nothing of ours"} if told else set()
        used = {_short(folder, module.layer) for folder in folders.get(module.folder, ())}
        if not told or declared != used:
            line = f"May import: {', '.join(sorted(used)) or 'nothing of ours'}."
            found.append(module.at(module.tree, f'does not say "{line}"'))
    return found


_MAY_IMPORT = re.compile(r"^May import: (.*?)\.$", re.MULTILINE | re.DOTALL)


def folders_imported(module: Module, names: dict[str, Module]) -> set[str]:
    targets = {i.target for i in imports(module, frozenset(names)) if i.target in names}
    return {names[target].folder for target in targets} - {module.folder}


def _short(folder: str, layer: str) -> str:
    """Return the name of a folder as a docstring gives it: below agentx, and of another layer only the layer."""
    name = folder.removeprefix("agentx.")
    top = name.split(".")[0]
    return top if top in LAYERS and top != layer else name


def crowded_folders(modules: list[Module]) -> list[str]:
    """A folder has no more modules than one can keep in mind."""
    sizes: dict[str, int] = {}
    for module in modules:
        folder = module.path.rpartition("/")[0]
        sizes[folder] = sizes.get(folder, 0) + 1
    return [
        f"{folder}/__init__.py:1 {size} modules in one folder; at most {MAX_FOLDER_MODULES}"
        for folder, size in sizes.items()
        if size > MAX_FOLDER_MODULES
    ]


def imports_in_functions(modules: list[Module]) -> list[str]:
    """Only a heavy or optional dependency is imported inside a function."""
    return [
        m.at(i.node, f"imports {i.target} inside a function; only heavy dependencies load there")
        for m in modules
        for i in imports(m)
        if i.inside and vendor_of(i.target) not in ALSO_IN_FUNCTIONS
    ]


def vendors_abroad(modules: list[Module]) -> list[str]:
    """A vendor is imported in its one home."""
    return [
        m.at(i.node, f"imports {i.target}, whose one home is {HOMES[vendor_of(i.target)]}")
        for m in modules
        for i in imports(m)
        if not m.path.startswith(HOMES.get(vendor_of(i.target), m.path))
    ]


def extras_without_needs(modules: list[Module]) -> list[str]:
    """What an extra brings is imported where a missing extra is reported."""
    broken = []
    for m in (one for one in modules if not one.path.startswith(tuple(AFTER_NEEDS))):
        guards = (n for n in m.nodes if isinstance(n, ast.With) and "needs" in map(_called, n.items))
        guarded = {id(inner) for guard in guards for inner in ast.walk(guard)}
        broken += [
            m.at(i.node, f"imports {i.target} outside of `with needs(...)`; see storage/extras.py")
            for i in imports(m)
            if i.inside and vendor_of(i.target) in EXTRAS and id(i.node) not in guarded
        ]
    return broken


def _called(item: ast.withitem) -> str:
    return last_name(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else ""


def work_at_import(modules: list[Module]) -> list[str]:
    """A module that is imported reads nothing, makes nothing and prints nothing."""

    def visit(node: ast.AST) -> Iterator[ast.expr]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                outside = [*child.args.defaults, *(d for d in child.args.kw_defaults if d)]
                outside += getattr(child, "decorator_list", [])
                for part in outside:
                    yield from (n for n in ast.walk(part) if isinstance(n, ast.expr))
            else:
                if isinstance(child, ast.expr):
                    yield child
                yield from visit(child)

    def works(node: ast.expr) -> bool:
        called = isinstance(node, ast.Call) and last_name(node.func) in AT_IMPORT
        stored = isinstance(getattr(node, "ctx", None), ast.Store)  # a field may bear the name
        return called or (last_name(node) in {"environ", "environb"} and not stored)

    return [
        m.at(node, f"{ast.unparse(node)[:60]} happens at import")
        for m in modules
        for node in visit(m.tree)
        if works(node)
    ]


def environment_reads(modules: list[Module]) -> list[str]:
    """The environment is read in agentx/settings.py.

    litellm's client and LanceDB's table make one write each; the report of an act passes its own on, and a client of
    the server reads where that is.
    """
    broken = []
    for m in modules:
        used = [n for n in m.nodes if isinstance(n, ast.Attribute) and n.attr in ENVIRONMENT]
        used = [
            n
            for n in used
            if (isinstance(n.value, ast.Name) and n.value.id == "os") or n.attr == "expandvars"
        ]
        named = [
            n
            for n in m.nodes
            if isinstance(n, ast.ImportFrom) and n.module == "os" and {a.name for a in n.names} & ENVIRONMENT
        ]
        allowed = m.path == "agentx/settings.py"
        if m.path in ENVIRONMENT_ONCE:
            allowed = not named and len(used) == 1
        if not allowed:
            broken += [
                m.at(n, "touches the environment; only agentx/settings.py does") for n in [*used, *named]
            ]
    return broken


def long_functions(modules: list[Module]) -> list[str]:
    """A function stays under 100 lines."""
    return [
        m.at(f, f"{f.name} has {size} lines")
        for m in modules
        for f in functions(m)
        if (size := (f.end_lineno or 0) - f.lineno + 1) > MAX_FUNCTION_LINES
    ]


def long_modules(modules: list[Module]) -> list[str]:
    """A module stays under 1,000 lines."""
    return [
        f"{m.path}:1 has {size} lines"
        for m in modules
        if (size := len(m.source.splitlines())) > MAX_MODULE_LINES
    ]


def prints(modules: list[Module]) -> list[str]:
    """Only the command line prints."""
    return [
        m.at(n, "prints; only agentx/cli/ does")
        for m in modules
        if not m.path.startswith("agentx/cli/")
        for n in m.nodes
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "print"
    ]


def undocumented(modules: list[Module]) -> list[str]:
    """Every module and every public class, function and method has a docstring."""

    def public(
        node: ast.Module | ast.ClassDef,
    ) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
        for child in node.body:
            if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if child.name.startswith("_") or "overload" in map(last_name, child.decorator_list):
                continue
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)

    missing = [f"{m.path}:1 the module has no docstring" for m in modules if not ast.get_docstring(m.tree)]
    for m in modules:
        accessors = {"setter", "deleter"}
        missing += [
            m.at(node, f"{node.name} has no docstring")
            for node in public(m.tree)
            if not ast.get_docstring(node) and not accessors & set(map(last_name, node.decorator_list))
        ]
    return missing


def vague_names(modules: list[Module]) -> list[str]:
    """Nothing is named for being useful: no utils, manager or helper."""

    def words(name: str) -> set[str]:
        return set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", name).lower()))

    named = [(m, m.tree, m.name) for m in modules]
    named += [(m, node, node.name) for m in modules for node in [*functions(m), *classes(m)]]
    return [
        m.at(node, f"{name} says nothing of what it is") for m, node, name in named if words(name) & VAGUE
    ]


def errors_abroad(modules: list[Module]) -> list[str]:
    """A public error derives from AgentXError."""

    def strays(module: Module, node: ast.ClassDef) -> bool:
        if node.name.startswith("_") or node.name == "AgentXError" or SIGNALS.get(node.name) == module.path:
            return False
        bases = set(map(last_name, node.bases))
        return bool(bases) and bases <= BUILTIN_ERRORS

    return [
        m.at(node, f"{node.name} does not derive from AgentXError")
        for m in modules
        for node in classes(m)
        if strays(m, node)
    ]


def files_by_path(modules: list[Module]) -> list[str]:
    """Files below a workspace are reached through storage/files/nofollow.py alone."""
    broken = []
    for m in modules:
        if m.path == "storage/files/nofollow.py" or any(m.path.startswith(place) for place in OTHER_FILES):
            continue
        exempt = {id(n) for f in functions(m) if f"{m.path}:{f.name}" in OTHER_FILES for n in ast.walk(f)}
        for n in (n for n in m.nodes if isinstance(n, ast.Call) and id(n) not in exempt):
            owner = n.func.value if isinstance(n.func, ast.Attribute) else None
            name = owner.id if isinstance(owner, ast.Name) else ""
            if name == "self":
                continue
            kind = name if name in FILES else "path" if owner is not None and name != "nofollow" else ""
            by_descriptor = any(k.arg and k.arg.endswith("dir_fd") for k in n.keywords)
            reads = kind and last_name(n.func) in FILES[kind] and not by_descriptor
            if reads or (isinstance(n.func, ast.Name) and n.func.id == "open" and not _of_descriptor(n)):
                broken.append(
                    m.at(n, f"{ast.unparse(n.func)} may follow a link; see storage/files/nofollow.py")
                )
    return broken


def _of_descriptor(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id in {"fd", "descriptor"}


def starts_without_a_gate(modules: list[Module]) -> list[str]:
    """What a workspace names is started only where it was asked whether a person trusts the workspace."""
    broken = []
    for m in modules:
        inner = {id(one) for f in functions(m) for one in functions_in(f)}
        for f in (one for one in functions(m) if id(one) not in inner):
            starts = [n for n in ast.walk(f) if isinstance(n, ast.Call) and last_name(n.func) in STARTS]
            asks = {last_name(n) for n in ast.walk(f) if isinstance(n, ast.Attribute | ast.Name)} & GATES
            if starts and not asks and f"{m.path}:{f.name}" not in UNGATED:
                broken.append(m.at(starts[0], f"{f.name} starts something and does not ask for trust"))
    return broken


def functions_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    nested = ast.FunctionDef | ast.AsyncFunctionDef
    return (n for n in ast.walk(function) if isinstance(n, nested) and n is not function)


def programs_abroad(modules: list[Module]) -> list[str]:
    """A program is started in few modules, each of which is known."""
    return [
        m.at(n, f"{ast.unparse(n)} starts a program; name the module in PROGRAMS, with what is gated")
        for m in modules
        if m.path not in PROGRAMS
        for n in m.nodes
        if isinstance(n, ast.Attribute)
        and isinstance(n.value, ast.Name)
        and (
            (n.value.id == "subprocess" and n.attr in {"run", "Popen", "call", "check_call", "check_output"})
            or (n.value.id == "os" and n.attr.startswith(("exec", "spawn", "posix_spawn", "system", "popen")))
        )
    ]


Rule = Callable[[list[Module]], list[str]]

SHOWN: dict[Rule, list[tuple[str, str]]] = {
    files_by_path: [
        ("storage/a.py", "def f(path):\n    return path.read_bytes()"),
        ("agentx/a.py", "import os\n\n\ndef f(path):\n    os.replace(path, path)"),
        ("agentx/a.py", "def f(path):\n    return open(path)"),
    ],
    upward_imports: [
        ("storage/a.py", "from agentx.synthesis import items"),
        ("synthesis/a.py", "from agentx import Workspace"),
        ("storage/git/a.py", "from ...synthesis.items import Kind"),
    ],
    second_names: [("agentx/a.py", "import storage.events"), ("synthesis/a.py", "from storage import blobs")],
    folder_circles: [("agentx/a/b.py", "from agentx.c import d")],
    crowded_folders: [("agentx/a/__init__.py", "")],
    undeclared_imports: [
        ("agentx/a/__init__.py", '"""All of a."""'),
        ("agentx/a/__init__.py", '"""All of a.\n\nMay import: storage.\n"""'),
    ],
    import_circles: [("storage/a.py", "import agentx.storage.a"), ("storage/a.py", "from . import a")],
    imports_in_functions: [("agentx/a.py", "def f():\n    if f:\n        import json")],
    vendors_abroad: [
        ("agentx/a.py", "import pygit2"),
        ("storage/a.py", "def f():\n    from tree_sitter_c import language"),
    ],
    extras_without_needs: [
        ("agentx/a.py", "def f():\n    import matplotlib"),
        ("agentx/a.py", "def f():\n    with needs(REPORT):\n        pass\n    from onnx import helper"),
    ],
    work_at_import: [
        ("agentx/a.py", "import os\nHOME = os.environ['HOME']"),
        ("agentx/a.py", "class A:\n    print('made')"),
        ("agentx/a.py", "def f(text=open('x').read()): ..."),
    ],
    environment_reads: [
        ("agentx/a.py", "import os\ndef f():\n    return os.getenv('HOME')"),
        ("agentx/a.py", "from os import environ"),
        ("synthesis/model/litellm_client.py", "import os\nos.environ['A'] = os.environ['B']"),
    ],
    long_functions: [("agentx/a.py", "def f():\n" + "    f()\n" * MAX_FUNCTION_LINES)],
    long_modules: [("agentx/a.py", "A = 1\n" * (MAX_MODULE_LINES + 1))],
    prints: [("agentx/a.py", "def f():\n    print('here')")],
    undocumented: [
        ("agentx/a.py", "A = 1"),
        ("agentx/a.py", '"""Module."""\nclass A:\n    """A."""\n    async def f(self): ...'),
    ],
    vague_names: [
        ("agentx/git_utils.py", ""),
        ("agentx/a.py", "class RunManager: ..."),
        ("agentx/helper/a.py", ""),
    ],
    errors_abroad: [("agentx/a.py", "class Lost(ValueError): ...")],
    starts_without_a_gate: [
        ("agentx/a.py", "def f():\n    run_in_copy(x, policy=None)"),
        (
            "agentx/a.py",
            "class A:\n    def f(self):\n        def g():\n            return open_model(x)\n        return g",
        ),
    ],
    programs_abroad: [
        ("agentx/a.py", "import subprocess\ndef f():\n    subprocess.run(['x'])"),
        ("storage/a.py", "import os\ndef f():\n    os.execvp('x', ['x'])"),
    ],
}


BESIDE: dict[Rule, list[Module]] = {
    folder_circles: [Module("agentx/c/d.py", "from agentx.a import e"), Module("agentx/a/e.py", "")],
    crowded_folders: [Module(f"agentx/a/m{number}.py", "") for number in range(MAX_FOLDER_MODULES)],
}
"""Further modules that an example needs."""


@pytest.mark.parametrize("rule", SHOWN, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule, modules):
    broken = rule(modules)
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [(rule, *example) for rule, examples in SHOWN.items() for example in examples],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_rule_sees_code_that_breaks_it(rule, path, source):
    assert [line for line in rule([Module(path, source), *BESIDE.get(rule, [])]) if line.startswith(path)]


# --- what only an import shows ---------------------------------------------------------------------------------------

IMPORT_ALL = """
import json, os, sys
names, before, seen = json.load(sys.stdin), set(sys.modules), []
WORK = {"os.mkdir", "os.remove", "os.rename", "os.symlink", "socket.connect", "subprocess.Popen", "os.putenv"}
STDLIB = os.path.dirname(os.__file__)
def ours():
    frame = sys._getframe(2)
    while frame and (frame.f_code.co_filename.startswith("<frozen") or os.path.dirname(frame.f_code.co_filename) == STDLIB):
        frame = frame.f_back
    return frame and frame.f_globals.get("__name__", "").split(".")[0] == "agentx"
def watch(event, args):
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if (event in WORK or writes) and ours():
        seen.append(f"{event} {args[0]!r}")
sys.addaudithook(watch)
for name in names:
    __import__(name)
loaded = {name: module for name, module in sys.modules.items() if name not in before}
files = {name: os.path.realpath(m.__file__) for name, m in loaded.items() if getattr(m, "__file__", None)}
print(json.dumps({"loaded": sorted(loaded), "files": files, "seen": seen}))
"""


def import_in_a_fresh_process(names: list[str], root: Path = ROOT) -> dict:
    """Import modules by name in a process of their own, where a warning is an error.

    What they print comes before the line of the result.
    """
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", IMPORT_ALL],
        input=json.dumps(names),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *said, result = done.stdout.splitlines()
    return {"said": [*said, *done.stderr.splitlines()], **json.loads(result)}


@pytest.fixture(scope="module")
def everything(modules) -> dict:
    names = [m.name for m in modules if not m.name.endswith("__main__") and not m.path.startswith(ADAPTERS)]
    return import_in_a_fresh_process(names)


def test_importing_agentx_loads_nothing_of_anybody_else():
    loaded = import_in_a_fresh_process(["agentx"])["loaded"]
    vendors = {vendor_of(name) for name in loaded} - set(sys.stdlib_module_names)
    assert vendors == {"agentx"}


def test_importing_every_module_loads_no_heavy_dependency(everything):
    assert not LAZY & set(everything["loaded"])


def test_nothing_of_ours_imports_an_adapter_that_loads_its_framework(modules):
    adapters = {m.name for m in modules if m.path.startswith(ADAPTERS)}
    using = [m.path for m in modules for i in imports(m) if i.target in adapters]
    assert [path for path in using if not path.startswith(ADAPTERS)] == []


def test_work_at_import_is_seen(tmp_path):
    (tmp_path / "agentx").mkdir()
    (tmp_path / "agentx" / "__init__.py").write_text(
        f"open({str(tmp_path / 'made')!r}, 'w').close(); print('hello')"
    )
    result = import_in_a_fresh_process(["agentx"], tmp_path)
    assert (len(result["seen"]), result["said"]) == (1, ["hello"])


def test_importing_every_module_makes_nothing_and_says_nothing(everything):
    assert everything["said"] == []
    assert everything["seen"] == []


def test_no_module_is_imported_under_two_names(everything):
    names: dict[str, list[str]] = {}
    for name, file in everything["files"].items():
        if file.startswith(f"{ROOT}{os.sep}") and ".venv" not in file:
            names.setdefault(file, []).append(name)
    assert len(names) > 20
    assert {file: found for file, found in names.items() if len(found) > 1} == {}


def test_the_page_on_architecture_is_what_the_code_says(modules):
    from tests import draw_house

    told = "Run `python -m tests.draw_house`."
    assert draw_house.PICTURE.read_text("utf-8") == draw_house.picture(modules), told
    text = draw_house.PAGE.read_text("utf-8")
    assert text == draw_house.page(text, modules), told


def test_the_tests_themselves_use_the_one_name():
    files = [p for p in (ROOT / "tests").rglob("*.py") if "__pycache__" not in p.parts]
    own = [Module(p.relative_to(ROOT).as_posix(), p.read_text("utf-8")) for p in files]
    assert second_names(own) == []
