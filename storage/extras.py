"""The extras of the package: optional libraries, what each is for, and the command that adds them.

A library of an extra is imported inside :func:`needs`, in its one home. ``pyproject.toml`` lists the same
packages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import msgspec

from agentx.storage.errors import AgentXError

PACKAGE = "agentx-workspace"
"""Name of this package on the registry."""


class ExtraMissing(AgentXError):
    """A feature needs libraries of an extra that is not installed."""


class Extra(msgspec.Struct, frozen=True):
    """An extra of the package.

    Attributes:
        name: Its name, as in ``agentx-workspace[name]``.
        packages: The packages that it adds, by their names on the registry.
        feature: What it is for; begins a sentence, in the plural.
        without: What happens without it; a clause.
    """

    name: str
    packages: tuple[str, ...]
    feature: str
    without: str

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install '{PACKAGE}[{self.name}]'"

    def missing(self) -> tuple[str, ...]:
        """Return the packages that are not installed; nothing is imported."""
        return tuple(name for name in self.packages if not _is_installed(name))

    def why_missing(self, reason: str = "") -> str:
        """Return the command that installs it, and what happens without.

        Args:
            reason: Why a library cannot be imported.

        >>> EMBEDDING.why_missing()
        "Embeddings by MiniLM need pip install 'agentx-workspace[embedding]'. Without it, search is lexical."
        """
        more = f" ({reason})" if reason else ""
        return f"{self.feature} need {self.command}{more}. Without it, {self.without}."


EMBEDDING = Extra(
    "embedding",
    ("onnx", "onnxruntime", "safetensors", "tokenizers"),
    "Embeddings by MiniLM",
    "search is lexical",
)
LANGUAGES = Extra(
    "languages",
    (
        "tree-sitter-c",
        "tree-sitter-cpp",
        "tree-sitter-go",
        "tree-sitter-java",
        "tree-sitter-javascript",
        "tree-sitter-rust",
        "tree-sitter-typescript",
    ),
    "Definitions in C, C++, Go, Java, JavaScript, Rust and TypeScript",
    "files in these languages are searched by windows of lines and have no outline",
)
QUALITY = Extra(
    "quality",
    ("proselint", "typos"),
    "Spelling and usage in `check_document`",
    "links, headings, code fences and to-do markers are checked",
)
REPORT = Extra(
    "report",
    ("matplotlib",),
    "The pictures of `agentx agent cognition report`",
    "the logs of a session have its figures",
)
DAEMON = Extra(
    "daemon",
    ("dbos",),
    "Schedules run by `agentx schedule daemon`",
    "cron and `agentx schedule run-due` do the same for one workspace",
)
TELEMETRY = Extra(
    "telemetry",
    ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
    "OpenTelemetry's spans and metrics",
    "logs of cognitive agents, `agentx fleet status` and the inspector have the same figures",
)
LANGGRAPH = Extra(
    "langgraph",
    ("langgraph",),
    "Checkpoints and the store of LangGraph",
    "LangGraph keeps them elsewhere",
)
OPENAI_AGENTS = Extra(
    "openai-agents",
    ("openai-agents",),
    "Guardrails of the OpenAI Agents SDK",
    "its session works, because it follows a protocol",
)
PYDANTIC_AI = Extra(
    "pydantic-ai",
    ("pydantic-ai-slim",),
    "Tools and history for Pydantic AI",
    "`KeptConversation` keeps the messages of any program",
)
AGENT_FRAMEWORK = Extra(
    "agent-framework",
    ("agent-framework-core",),
    "History, context and middleware for Microsoft's Agent Framework",
    "`KeptConversation` keeps the messages of any program",
)

ADAPTERS = (LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI, AGENT_FRAMEWORK)
"""Extras of adapters for other frameworks: who uses one has it, so ``all`` leaves them out."""

EXTRAS = (EMBEDDING, LANGUAGES, QUALITY, REPORT, DAEMON, TELEMETRY, *ADAPTERS)
"""All extras."""


@contextmanager
def needs(extra: Extra, error: type[AgentXError] = ExtraMissing) -> Iterator[None]:
    """Import libraries of an extra in the body; if that fails, name the command that installs them.

    Args:
        extra: The extra that has them.
        error: The error to raise.

    Raises:
        error: A library is not installed or cannot be imported.
    """
    try:
        yield
    except ImportError as failure:
        raise error(extra.why_missing(str(failure))) from failure


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
