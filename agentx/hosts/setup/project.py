"""The memory of a project: a workspace beside it, which Git ignores; or one that several work trees share."""

import os
from collections.abc import Mapping
from pathlib import Path

from agentx.client import place
from agentx.core import beside, layout
from agentx.core.beside import BESIDE, FOLDER
from agentx.hosts.place import HOOKS, link_file, workspace_of
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.workspace import Workspace


def project_root(start: Path) -> Path:
    """Return the project at or above a directory: where its ``.git`` is, or the directory itself."""
    start = Path(os.path.realpath(start))
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def known_workspace(project: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the workspace that hooks in a project use; ``None`` if it has none."""
    found, _ = workspace_of(str(project), environ)
    return Path(found) if found else None


def make_beside(project: Path, settings: Settings, title: str = "") -> Path:
    """Create a workspace beside a project, in a directory that ignores itself; return its directory.

    The project's own repository is not written: its files become artifacts by name and content.

    Raises:
        NotEmpty: There is one already.
    """
    root = project / BESIDE
    (project / FOLDER).mkdir(exist_ok=True)
    (project / FOLDER / ".gitignore").write_text("*\n", "utf-8")
    title = title or project.name
    Workspace.create(root, title=title, artifacts=beside.ARTIFACTS, settings=settings).close()
    return root


def share(project: Path, workspace: Path, environ: Mapping[str, str]) -> Path:
    """Let a project use the memory of another, such as a second work tree; return the workspace.

    Raises:
        UsageError: The project has a memory of its own, or the workspace does not exist.
    """
    found = layout.find_root(workspace)
    own = known_workspace(project, environ)
    if own is not None and own != found and own == project / BESIDE:
        raise UsageError(f"{project} has a memory of its own in {own}; move it away to share {found}.")
    if own == found:
        return found
    if not place.state_dir(environ):
        raise UsageError("You have no state directory to note it in: set AGENTX_STATE_DIR.")
    link = Path(link_file(str(project), environ))
    link.parent.mkdir(0o700, parents=True, exist_ok=True)
    link.write_text(f"{found}\n", "utf-8")
    return found


def unshare(project: Path, environ: Mapping[str, str]) -> None:
    """Forget that a project uses the memory of another."""
    link = Path(link_file(str(project), environ))
    link.unlink(missing_ok=True)
    for folder in (link.parent, Path(place.state_dir(environ)) / HOOKS):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
