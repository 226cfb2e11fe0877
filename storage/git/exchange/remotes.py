"""Remotes: fetch the branch from another repository and push it there, with the git program; never forced.

Git checks on either side that what arrives is complete before a ref moves. It assumes that existing refs are
complete, so for a backup in a directory we remember its state when it was last known to be complete.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag

from agentx.storage.errors import AgentXError, UsageError
from agentx.storage.files import nofollow
from agentx.storage.files.durable import sync_directory, write_file
from agentx.storage.git import local
from agentx.storage.git.branch import BRANCH, Branch
from agentx.storage.git.checked_reader import ObjectReader
from agentx.storage.git.checking import release_lock
from agentx.storage.git.exchange import git_program, transfer
from agentx.storage.git.exchange.git_program import GitFailed, Objects, objects_of
from agentx.storage.progress import Progress
from agentx.storage.text import without_passwords

_DEFAULT = "origin"
_THEIRS = "refs/remotes/other/main"
_BACKUPS = "agentx-backups"
_REFUSED = re.compile(r"^!\t[^\t]*\t\[(?:remote )?rejected\] \((.*)\)$", re.MULTILINE)
_ASKED = (
    "could not read Username",
    "could not read Password",
    "Authentication failed",
    "Permission denied (",
)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
_HINTS = ("hint: ", "Please make sure", "and the repository exists", "To ", "From ")
_BROKEN = re.compile(
    r"missing \w+|bad object|not our ref|corrupt|unable to read|index-pack failed|did not send all|"
    r"bad pack header|early EOF|broken link|not a valid object|fsck error|invalid index-pack|upload-pack: ",
    re.IGNORECASE,
)


class RemoteFailed(AgentXError):
    """A remote could not be reached, is damaged, or denied access."""


class PushRefused(RemoteFailed):
    """The remote rejected a push; its branch is unchanged."""


class NoRemote(UsageError):
    """No remote of that name is set, or it has another URL."""


class _Complete(msgspec.Struct, frozen=True):
    """A backup's state when everything reachable from ``commit`` was known to be there."""

    commit: str
    files: str


class Remote:
    """A repository to fetch the branch from and push it to. Use :meth:`find`.

    Attributes:
        name: Its name here.
        url: Its URL or path; may contain a password, see :meth:`shown`.
    """

    def __init__(self, root: Path, name: str, url: str, environ: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._environ = environ
        self._git_dir = root / ".git"
        self._path = _local(root, url)
        self.name = name
        self.url = url

    @classmethod
    def find(
        cls, root: Path, name: str = "", url: str = "", environ: Mapping[str, str] | None = None
    ) -> "Remote":
        """Return the remote of a name, or a new one at a URL; :meth:`fetch` saves it once it was reached.

        Args:
            root: The working directory that holds ``.git``.
            name: Its name; by default the only remote, or ``origin``.
            url: A directory, or a URL that Git accepts.
            environ: The environment of git when it talks to a server; by default this process's own, which
                holds no keys.

        Raises:
            NoRemote: There is none of that name, it has another URL, or its URL is refused.
        """
        known = local.remotes(root / ".git")
        name = name or (next(iter(known)) if len(known) == 1 and not url else _DEFAULT)
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            raise NoRemote(f"{name!r} cannot be the name of a remote; use letters, digits and dashes.")
        if name not in known and not url:
            others = f" Known: {', '.join(known)}." if known else ""
            raise NoRemote(f"Unknown remote {name!r}.{others} Add one with `agentx push {name} --url URL`.")
        _check_url(name, url or known[name])
        here = _local(root, url) if url else None
        url = str(here) if here else url
        if url and known.get(name, url) != url:
            raise NoRemote(
                f"The remote {name!r} already has the URL {without_passwords(known[name])}. "
                "Choose another name for the new one: `agentx push NAME --url URL`."
            )
        return cls(root, name, url or known[name], environ)

    @classmethod
    def clone(cls, url: str, root: Path, environ: Mapping[str, str] | None = None) -> str:
        """Clone the branch of a repository; the new directory appears once it is complete.

        Args:
            url: A directory, or a URL that Git accepts.
            root: The new directory; its parent exists.
            environ: As for :meth:`find`.

        Returns:
            The commit that its branch names.

        Raises:
            RemoteFailed: It cannot be reached, is damaged, or has no branch ``main``.
            NoRemote: Its URL is refused.
            GitMissing: The git program is not installed.
        """
        _check_url(_DEFAULT, url)
        made = root.with_name(f"{root.name}.clone")
        if nofollow.is_directory(made):
            nofollow.remove_tree(made)
        remote = cls(root, _DEFAULT, url, environ)
        with remote._translated():
            here = remote._path is not None
            place = str(remote._opened_there().path) if here else url
            command = git_program.clone_command(place, made, BRANCH, here=here)
            git_program.run(command, environ=None if here else environ)
            nofollow.replace(made, root)
            sync_directory(root.parent)
            return Branch(root / ".git").read()

    @staticmethod
    def create(url: str) -> bool:
        """Create an empty bare repository if a URL means a directory that does not exist; return whether.

        Raises:
            RemoteFailed: The directory cannot be made.
        """
        path = _local(Path("/"), url)
        if path is None or path.exists():
            return False
        try:
            nofollow.make_directory(path.parent, parents=True)
            pygit2.init_repository(str(path), bare=True, initial_head="main").free()
        except (pygit2.GitError, OSError) as error:
            raise RemoteFailed(f"The repository {path} cannot be created: {error}.") from error
        return True

    @property
    def shown(self) -> str:
        """Its URL without a password."""
        return without_passwords(self.url)

    def fetch(self, progress: Progress | None = None, *, silent_s: float = git_program.SILENT_S) -> str:
        """Fetch the objects of its branch, and check that they are complete and well-formed.

        Args:
            progress: Called with the progress.
            silent_s: How long it may be silent.

        Returns:
            The commit that its branch ``main`` names; empty if it has none.

        Raises:
            RemoteFailed: It cannot be reached, is not a readable repository, or its branch is incomplete.
            GitMissing: The git program is not installed.
        """
        with self._translated():
            tip = ""
            if self._path:
                references = self._opened_there().references
                tip = str(references[BRANCH].target) if BRANCH in references else ""  # even if it is missing
            head, reader = Branch(self._git_dir).read(), ObjectReader(self._git_dir)
            ours = tip and head and reader.exists(tip) and (head == tip or reader.descends(head, tip))
            commit = tip if ours else self._fetch(progress, silent_s)
            if tip and not commit:
                raise RemoteFailed(
                    f"{self.shown} is damaged: its branch names {tip}, which is missing there."
                )
            self._keep(commit)
        return commit

    def _fetch(self, progress: Progress | None, silent_s: float) -> str:
        with self._ours() as ours:
            self._fetch_into(ours, BRANCH, progress, silent_s=silent_s)
            sync_directory(self._git_dir / "objects" / "pack")
            return ours.ref(_THEIRS)

    def _fetch_into(
        self,
        ours: Objects,
        ref: str,
        progress: Progress | None,
        *,
        most_bytes: int = 0,
        silent_s: float = git_program.SILENT_S,
    ) -> bool:
        """Fetch a ref; return whether it exists."""
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
        try:
            self._run(
                ours,
                "fetch",
                "upload-pack",
                *options,
                refspec=f"+{ref}:{_THEIRS}",
                progress=progress,
                shown=ref,
                most_bytes=most_bytes,
                silent_s=silent_s,
            )
        except GitFailed as error:
            if any("couldn't find remote ref" in line for line in error.said):
                return False
            raise
        return True

    def complete(self, commit: str, progress: Progress | None = None) -> int:
        """Ensure that a backup in a directory holds everything reachable from its branch.

        Skipped if its object files are still those that the last push from here left. Otherwise they are
        checked, and missing objects are sent. Servers are trusted: their objects cannot be inspected from
        outside.

        Args:
            commit: The commit that its branch names.
            progress: Called with the progress.

        Returns:
            The number of missing objects.

        Raises:
            RemoteFailed: Something in it is damaged, or it cannot be written.
            ObjectDamaged: An object that it lacks is missing here too, or damaged.
        """
        if not self._path or not commit:
            return 0
        with self._translated():
            backup = self._backup()
            if self._backups().get(str(self._path)) == _Complete(commit, _listing(backup)):
                return 0
            sent = transfer.complete(self._git_dir, backup, commit, progress)
            self.note_complete(commit)
        return sent

    def note_complete(self, commit: str) -> None:
        """Remember that a backup in a directory holds everything reachable from its branch, as it is now.

        Raises:
            RemoteFailed: It cannot be read.
        """
        if not self._path:
            return
        with self._translated():
            known = self._backups() | {str(self._path): _Complete(commit, _listing(self._backup()))}
            write_file(self._git_dir / _BACKUPS, msgspec.json.encode(known))

    def push(self, commit: str, expected: str, progress: Progress | None = None) -> None:
        """Fast-forward its branch ``main`` to our commit.

        Args:
            commit: The commit.
            expected: The commit that its branch named before, an ancestor of ``commit``; empty for none.
            progress: Called with the progress.

        Raises:
            PushRefused: Its branch was moved in the meantime, or it rejects pushes.
            RemoteFailed: It cannot be reached.
            ObjectDamaged: An object to be pushed is missing here, or damaged.
            GitMissing: The git program is not installed.
        """
        with self._translated(), self._ours() as ours:
            backup = self._backup() if self._path else None
            self._send(
                ours, f"{commit}:{BRANCH}", f"--force-with-lease={BRANCH}:{expected}", progress=progress
            )
            if backup:
                transfer.sync(backup, BRANCH, new=not expected)
            self._keep(commit)

    def put_aside(self, commit: str, ref: str) -> None:
        """Create a ref outside the branches that names our commit; nothing if it names that commit already.

        Args:
            commit: The commit.
            ref: Full name of the ref, such as ``refs/agentx/stranded/NAME``.

        Raises:
            PushRefused: The ref names another commit, or the remote rejects it.
            RemoteFailed: It cannot be reached.
            GitMissing: The git program is not installed.
        """
        with self._translated(), self._ours() as ours:
            backup = self._backup() if self._path else None
            self._send(ours, f"{commit}:{ref}", f"--force-with-lease={ref}:", shown=ref)
            if backup:
                transfer.sync(backup, ref, new=True)

    # --- files beside the branch ----------------------------------------------------------------------------

    def put_files(self, ref: str, files: Mapping[str, bytes]) -> None:
        """Make a ref outside the branches lead to some files; what it led to before is given up.

        Args:
            ref: Full name of the ref, such as ``refs/agentx/cache``.
            files: Contents by name, without directories.

        Raises:
            PushRefused: The remote rejects it.
            RemoteFailed: It cannot be reached.
            GitMissing: The git program is not installed.
        """
        with self._translated(), _scratch() as scratch:
            repo = pygit2.init_repository(str(scratch), bare=True)
            tree = repo.TreeBuilder()
            for name, content in files.items():
                tree.insert(name, repo.create_blob(content), FileMode.BLOB)
            who = pygit2.Signature("engine:cache", "cache@engine.agentx.invalid")
            commit = repo.create_commit(None, who, who, "Caches of this workspace\n", tree.write(), [])
            repo.free()
            with objects_of(scratch) as ours:
                if self._path:
                    self._backup()
                self._send(ours, f"+{commit}:{ref}", shown=ref)

    def files(self, ref: str, most_bytes: int) -> dict[str, bytes]:
        """Return the files that a ref outside the branches leads to; none if there is no such ref.

        Nothing of it stays in this repository. Its content is not trusted.

        Args:
            ref: Full name of the ref.
            most_bytes: Size in bytes from which nothing is returned: of the transfer, and of all files.

        Raises:
            RemoteFailed: It cannot be reached, is damaged, or sends too much.
            GitMissing: The git program is not installed.
        """
        with self._translated(), _scratch() as scratch:
            if self._path and ref not in self._opened_there().references:
                return {}
            with objects_of(scratch) as ours:
                if not self._fetch_into(ours, ref, None, most_bytes=most_bytes):
                    return {}
                commit = ours.ref(_THEIRS)
            reader = ObjectReader(scratch)
            found, left = {}, most_bytes
            for name, entry in reader.entries(reader.commit(commit).tree).items():
                found[name] = reader.read(entry.oid)[1]
                left -= len(found[name])
                if left < 0:
                    raise RemoteFailed(f"{self.shown} has more than {most_bytes:,} bytes at {ref}.")
            return found

    def _send(
        self,
        ours: Objects,
        refspec: str,
        *options: str,
        shown: str = BRANCH,
        progress: Progress | None = None,
    ) -> None:
        """Run ``git push`` with the remote.

        Raises:
            PushRefused: The remote rejects it.
            ObjectDamaged: Damage here explains the failure.
            GitFailed: It failed otherwise.
        """
        always = ("--porcelain", "--no-verify")
        try:
            self._run(
                ours,
                "push",
                "receive-pack",
                *always,
                *options,
                refspec=refspec,
                progress=progress,
                shown=shown,
            )
        except GitFailed as error:
            transfer.raise_damaged(self._git_dir, error)
            if refused := _REFUSED.search(error.printed):
                raise PushRefused(self._refusal(refused[1], error)) from error
            raise

    def _run(
        self,
        ours: Objects,
        what: str,
        service: str,
        *options: str,
        refspec: str,
        progress: Progress | None,
        shown: str = BRANCH,
        most_bytes: int = 0,
        silent_s: float = git_program.SILENT_S,
    ) -> None:
        """Run ``git fetch`` or ``git push`` with the remote; ``most_bytes`` limits each file it writes."""
        where = self.url
        if self._path:
            where = str(self._opened_there().path)
            options = (*options, f"--{service}={git_program.service(service, *{BRANCH: 0, shown: 0})}")
        command = ours.command(what, "--progress", *options, "--", where, refspec, person=not self._path)
        if most_bytes:
            command = git_program.limited(command, most_bytes)
        environ = None if self._path else self._environ
        git_program.run(command, progress=progress, silent_s=silent_s, environ=environ)

    def _refusal(self, reason: str, error: GitFailed) -> str:
        """Return why a push was rejected."""
        if reason in ("stale info", "fetch first", "non-fast-forward"):
            return f"{self.shown} has newer commits from another push ({reason})."
        why = (line.removeprefix("remote: ") for line in error.said if line.startswith("remote: "))
        said = without_passwords("; ".join(line for line in why if line.startswith(("fatal: ", "error: "))))
        return f"{self.shown} rejected the push: {reason}{f' ({said})' * bool(said)}."

    # --- a directory ----------------------------------------------------------------------------------------

    def _opened_there(self) -> pygit2.Repository:
        """Open the repository; libgit2 refuses another user's unless ``safe.directory`` allows it."""
        repo = pygit2.Repository(str(self._path), RepositoryOpenFlag.NO_SEARCH)
        repo.free()
        names = (str(entry.name).lower() for entry in repo.config)
        if any(name.endswith(".promisor") or name == "extensions.partialclone" for name in names):
            raise RemoteFailed(f"{self.shown} is a partial clone, so it may lack objects; use a full one.")
        return repo

    def _backup(self) -> Path:
        """Return the Git directory of a bare repository, ready for a push."""
        repo = self._opened_there()
        if not repo.is_bare:
            raise PushRefused(
                f"{self._path} has working files, which a push would leave behind. Pull there instead, "
                "or push to a bare repository (`git init --bare -b main DIR`)."
            )
        git_dir = Path(repo.path)
        for name in ("HEAD", "packed-refs", BRANCH):
            release_lock(git_dir / f"{name}.lock")
        if repo.head_is_unborn:
            repo.set_head(BRANCH)  # so that a clone of it checks the branch out
        return git_dir

    def _backups(self) -> dict[str, _Complete]:
        try:
            content = nofollow.read(self._git_dir / _BACKUPS)
            return msgspec.json.decode(content, type=dict[str, _Complete])
        except (OSError, msgspec.MsgspecError):
            return {}

    # --- here -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _ours(self) -> Iterator[Objects]:
        """Yield our objects, with the branch."""
        head = Branch(self._git_dir).read()
        with objects_of(self._git_dir, {BRANCH: head} if head else {}) as ours:
            yield ours

    def _keep(self, commit: str) -> None:
        """Save the remote and its branch's commit, as git does."""
        for name in ("config", f"refs/remotes/{self.name}/main", "packed-refs"):
            release_lock(self._git_dir / f"{name}.lock")  # of an earlier push or pull that was killed
        repo = pygit2.Repository(str(self._git_dir))
        try:
            if self.name not in repo.remotes.names():
                repo.remotes.create(self.name, self.url)
            if commit:
                repo.references.create(f"refs/remotes/{self.name}/main", pygit2.Oid(hex=commit), force=True)
        finally:
            repo.free()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GitFailed as error:
            raise RemoteFailed(self._failure(error)) from error
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            raise RemoteFailed(self._unreached(str(error))) from error

    def _failure(self, error: GitFailed) -> str:
        """Explain git's failure in a sentence."""
        said = [line for line in error.said if not line.startswith(_HINTS)] or [str(error)]
        why = without_passwords(
            "; ".join(line.removeprefix("remote: ").removeprefix("fatal: ") for line in said)
        )
        if any(asked in why for asked in _ASKED):
            return (
                f"{self.shown} asks for credentials that neither the ssh agent nor Git's credential helpers "
                f"have ({why}). Set up a helper (`git config --global credential.helper …`), "
                f"or use plain Git: `git push {self.name} main`."
            )
        if "No space left on device" in why:
            return f"The disk was full while objects were copied from or to {self.shown}: {why}."
        if "attempting to allocate" in why:
            return f"{self.shown} has an object that is too large to be read within 1 GB of memory: {why}."
        if _BROKEN.search(why):
            return f"{self.shown} is damaged, or does not provide all objects of its branch: {why}."
        return self._unreached(why)

    def _unreached(self, why: str) -> str:
        if "not owned by current user" in why or "dubious ownership" in why:
            return (
                f"{self.shown} belongs to another user, so Git refuses it. Run as that user, or allow it "
                f"with `git config --global --add safe.directory {self._path}`."
            )
        told = f"{self.shown} could not be reached: {without_passwords(why).rstrip('.')}."
        if isinstance(self._path, Path) and not self._path.exists():
            return (
                f"{told} Create a repository for backups there first: `git init --bare -b main {self._path}`."
            )
        if "not allowed" in why:  # plain Git might run what such an address names
            return f"{told} Only directories and ssh, https, http and git addresses are used."
        return (
            f"{told} If plain Git can, use that: `git -C {self._root} push {self.name} main`, or `git fetch`."
        )


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a temporary Git directory for objects that are not to stay here."""
    with tempfile.TemporaryDirectory(prefix="agentx-git-", ignore_cleanup_errors=True) as folder:
        made = nofollow.canonical(folder)  # the directory for temporary files may be behind a link
        nofollow.make_directory(made / "objects" / "pack", parents=True)
        yield made


def _check_url(name: str, url: str) -> None:
    """Check that a URL cannot make a credential helper return the password of another host.

    The protocol of credential helpers has one value per line, and treats a missing host as any host
    (CVE-2020-5260, CVE-2020-11008, CVE-2024-52006). Not every Git version in use refuses such URLs itself.

    Raises:
        NoRemote: It holds a control character, or names no host.
    """
    is_url = "://" in url
    for text in (url, unquote(url)) if is_url else (url,):
        if _CONTROL.search(text):
            raise NoRemote(
                f"The URL of the remote {name!r} has a control character ({without_passwords(ascii(url))}), "
                f"so it is not used. Set another: `git remote set-url {name} URL`."
            )
    try:
        parts = urlsplit(url)
        wrong = is_url and parts.scheme != "file" and not unquote(parts.hostname or "").strip("-")
    except ValueError:
        wrong = True
    if wrong:
        raise NoRemote(
            f"The URL of the remote {name!r} has no host ({without_passwords(ascii(url))}). Set another: "
            f"`git remote set-url {name} URL`."
        )


def _listing(git_dir: Path) -> str:
    """Return a digest of the names, sizes and modification times of all object files."""
    objects = git_dir / "objects"
    found = [f"{nofollow.status(objects).st_ino}"]
    for folder, _, names in nofollow.walk(objects):
        for name in names:
            info = nofollow.status(os.path.join(folder, name))
            found.append(f"{folder}/{name} {info.st_size} {info.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode("utf-8", "surrogateescape")).hexdigest()


def _local(root: Path, url: str) -> Path | None:
    """Return the directory that a URL means; ``None`` if it is not on this machine."""
    if url.startswith("file://"):
        return Path(unquote(urlsplit(url).path))
    if "://" in url or re.match(r"[^/]+:", url):
        return None
    return (root / url).resolve()
