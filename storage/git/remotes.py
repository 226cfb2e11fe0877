"""Remotes: the branch brought from another repository and to one, by libgit2. The branch is never forced.

A remote in a directory is read and written as the repository that it is: libgit2 would push to it without a compare-and-swap.
"""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pygit2
from pygit2.enums import CredentialType

from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.git import transfer
from agentx.storage.git.branch import BRANCH
from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.transfer import Progress

_CONNECT_MS = 30_000
_SILENT_MS = 120_000
_HELPER_S = 30.0
_DEFAULT = "origin"


class RemoteFailed(AgentXError):
    """A remote could not be reached, or does not let us in."""


class PushRefused(RemoteFailed):
    """The remote did not take what was pushed; its branch is as it was."""


class NoRemote(UsageError):
    """No remote of that name is set, or it is another one."""


class Remote:
    """Another repository that the branch comes from and goes to. Use :meth:`find`.

    Attributes:
        name: What it is called here.
        url: Where it is; see :meth:`shown` for what a person may be shown.
    """

    def __init__(self, root: Path, name: str, url: str) -> None:
        self._root = root
        self._git_dir = root / ".git"
        self._path = _local(root, url)
        self.name = name
        self.url = url

    @classmethod
    def find(cls, root: Path, name: str = "", url: str = "") -> "Remote":
        """The remote of a name, or a new one at a URL, which :meth:`fetch` keeps once it was reached.

        Args:
            root: The working directory that holds ``.git``.
            name: What it is called; by default the only one that there is, or ``origin``.
            url: Where it is: a directory, or what Git takes as a URL.

        Raises:
            NoRemote: There is none of that name, or it is somewhere else.
        """
        repo = pygit2.Repository(str(root / ".git"))
        known = {str(remote.name): str(remote.url) for remote in repo.remotes}
        repo.free()
        name = name or (next(iter(known)) if len(known) == 1 and not url else _DEFAULT)
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            raise NoRemote(f"{name!r} cannot be the name of a remote; use letters, digits and dashes.")
        if name not in known and not url:
            others = f" There is {', '.join(known)}." if known else ""
            raise NoRemote(
                f"There is no remote {name!r}.{others} Name one with `agentx push {name} --url URL`."
            )
        here = _local(root, url) if url else None
        url = str(here) if here else url
        if url and known.get(name, url) != url:
            raise NoRemote(
                f"The remote {name!r} is {_shown(known[name])}. Give the other one a name of its own: `agentx push NAME --url URL`."
            )
        return cls(root, name, url or known[name])

    @property
    def shown(self) -> str:
        """Its URL without a password."""
        return _shown(self.url)

    def fetch(self, progress: Progress | None = None) -> str:
        """Bring the objects of its branch here.

        Returns:
            The commit that its branch ``main`` names; empty where it has none.

        Raises:
            RemoteFailed: It cannot be reached, or holds no repository that can be read.
        """
        with self._translated():
            commit = self._fetch_directory(progress) if self._path else self._fetch_url(progress)
            self._keep(commit)
        return commit

    def push(self, commit: str, expected: str, progress: Progress | None = None) -> None:
        """Move its branch ``main`` forward to the commit that ours names.

        Args:
            commit: The commit.
            expected: What its branch named when it was looked at, an ancestor of ``commit``; empty for none.
            progress: Told how far it is.

        Raises:
            PushRefused: Its branch was moved meanwhile, or it takes nothing.
            RemoteFailed: It cannot be reached.
            ObjectDamaged: What is to be pushed is missing here, or damaged.
        """
        with self._translated():
            if self._path:
                self._push_directory(self._path, commit, expected, progress)
            else:
                self._push_url(commit, expected, progress)
            self._keep(commit)

    # --- a directory -------------------------------------------------------------------------------------------------

    def _fetch_directory(self, progress: Progress | None) -> str:
        other = pygit2.Repository(str(self._path))
        try:
            if BRANCH not in other.references:
                return ""
            commit = str(other.references[BRANCH].target)
            self._bring(other, commit, progress)
            return commit
        finally:
            other.free()

    def _bring(self, other: pygit2.Repository, commit: str, progress: Progress | None) -> None:
        with self._opened() as repo:
            if commit in repo:
                return
            head = str(repo.references[BRANCH].target) if BRANCH in repo.references else ""
        git_dir = Path(other.path)
        try:
            objects = transfer.reachable(git_dir, commit, head if head and head in other else "", progress)
            transfer.copy(git_dir, self._git_dir, objects, progress)
        except ObjectDamaged as error:
            raise RemoteFailed(f"{self.shown} is damaged: {error}") from error

    def _push_directory(self, path: Path, commit: str, expected: str, progress: Progress | None) -> None:
        other = pygit2.Repository(str(path))
        try:
            if not other.is_bare:
                raise PushRefused(
                    f"{path} has working files, which a push would leave behind. Pull there instead, or push to a bare "
                    "repository (`git init --bare -b main DIR`)."
                )
            objects = transfer.reachable(self._git_dir, commit, expected, progress)
            transfer.copy(self._git_dir, Path(other.path), objects, progress)
            self._move(other, commit, expected)
        finally:
            other.free()

    def _move(self, other: pygit2.Repository, commit: str, expected: str) -> None:
        new = pygit2.Oid(hex=commit)
        try:
            if not expected:
                other.create_reference_direct(BRANCH, new, False)
                if other.head_is_unborn:
                    other.set_head(BRANCH)  # so that a clone of it checks the branch out
                return
            branch = other.references[BRANCH]
            if str(branch.target) != expected:
                raise PushRefused(f"{self.shown} was pushed to meanwhile.")
            branch.set_target(new)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise PushRefused(f"{self.shown} was pushed to meanwhile ({error}).") from error

    # --- a URL -------------------------------------------------------------------------------------------------------

    def _fetch_url(self, progress: Progress | None) -> str:
        with self._opened() as repo:
            remote = repo.remotes.create_anonymous(self.url)
            calls = _Callbacks(self, progress)
            remote.connect(callbacks=calls, proxy=True)
            heads = {head.name: str(head.oid) for head in remote.list_heads(connect=False)}
            commit = heads.get(BRANCH, "")
            if commit and commit not in repo:
                remote.fetch([f"+{BRANCH}:{self._tracking}"], callbacks=calls, proxy=True)
            return commit

    def _push_url(self, commit: str, expected: str, progress: Progress | None) -> None:
        objects = transfer.reachable(self._git_dir, commit, expected, progress)
        transfer.check(self._git_dir, objects, progress)  # libgit2 hangs on a damaged one
        with self._opened() as repo:
            calls = _Callbacks(self, progress)
            repo.remotes.create_anonymous(self.url).push([f"{BRANCH}:{BRANCH}"], callbacks=calls, proxy=True)
        if calls.refused:
            raise PushRefused(f"{self.shown} did not take it: {calls.refused}.")

    # --- both --------------------------------------------------------------------------------------------------------

    @property
    def _tracking(self) -> str:
        return f"refs/remotes/{self.name}/main"

    def _keep(self, commit: str) -> None:
        """Remember the remote, and what its branch names, as git does."""
        with self._opened() as repo:
            if self.name not in repo.remotes.names():
                repo.remotes.create(self.name, self.url)
            if commit:
                repo.references.create(self._tracking, pygit2.Oid(hex=commit), force=True)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[pygit2.Repository]:
        repo = pygit2.Repository(str(self._git_dir))
        try:
            yield repo
        finally:
            repo.free()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        pygit2.settings.server_connect_timeout, pygit2.settings.server_timeout = _CONNECT_MS, _SILENT_MS
        try:
            yield
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            raise RemoteFailed(
                f"{self.shown} could not be reached: {_shown(str(error)).rstrip('.')}. If plain Git can, use that: "
                f"`git -C {self._root} push {self.name} main`, or `git fetch`."
            ) from error


class _Callbacks(pygit2.RemoteCallbacks):
    """What libgit2 asks and tells: credentials, progress, whether the branch was taken."""

    def __init__(self, remote: Remote, progress: Progress | None) -> None:
        super().__init__()
        self._remote = remote
        self._progress = progress
        self._tried = CredentialType(0)
        self.refused = ""

    def credentials(self, url: str, username_from_url: str | None, allowed_types: CredentialType) -> Any:
        """Credentials that were not tried yet: the keys of the ssh agent, or what git's credential helpers know."""
        left = allowed_types & ~self._tried
        if left & CredentialType.USERNAME:
            self._tried |= CredentialType.USERNAME
            return pygit2.Username(username_from_url or "git")
        if left & CredentialType.SSH_KEY:
            self._tried |= CredentialType.SSH_KEY
            return pygit2.KeypairFromAgent(username_from_url or "git")
        if left & CredentialType.USERPASS_PLAINTEXT:
            self._tried |= CredentialType.USERPASS_PLAINTEXT
            if found := _stored_credentials(url):
                return pygit2.UserPass(*found)
        raise RemoteFailed(
            f"{self._remote.shown} asks for credentials that neither the ssh agent nor Git's credential helpers have. "
            f"Use plain Git: `git push {self._remote.name} main`, or `git fetch`."
        )

    def transfer_progress(self, stats: Any) -> None:
        """How far a fetch is."""
        if self._progress:
            self._progress("Receiving", stats.received_objects, stats.total_objects)

    def push_transfer_progress(self, objects_pushed: int, total_objects: int, bytes_pushed: int) -> None:
        """How far a push is."""
        del bytes_pushed
        if self._progress:
            self._progress("Sending", objects_pushed, total_objects)

    def push_update_reference(self, refname: str, message: str | None) -> None:
        """What the remote says of the branch: nothing where it took it."""
        del refname
        self.refused = message or self.refused


def _stored_credentials(url: str) -> tuple[str, str] | None:
    """Name and password that git's credential helpers know, where git is installed; nobody is asked."""
    command = ["env", "GIT_TERMINAL_PROMPT=0", "git", "-c", "core.askPass=", "credential", "fill"]
    try:
        done = subprocess.run(
            command,
            input=f"url={url}\n\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=_HELPER_S,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return (found["username"], found["password"]) if {"username", "password"} <= found.keys() else None


def _local(root: Path, url: str) -> Path | None:
    """The directory that a URL means; ``None`` where it is elsewhere."""
    if url.startswith("file://"):
        return Path(unquote(urlsplit(url).path))
    if "://" in url or re.match(r"[^/]+:", url):
        return None
    return (root / url).resolve()


def _shown(text: str) -> str:
    """A text without the passwords of URLs in it.

    >>> _shown("https://me:secret@example.org/x.git")
    'https://me:…@example.org/x.git'
    """
    return re.sub(r"(://[^/@:\s]*):[^/@\s]*@", r"\1:…@", text)
