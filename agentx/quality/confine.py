"""Confine this process and become the command: Landlock, a seccomp filter, no capabilities, no core dump.

Runs as a separate program, ``python -I -S confine.py SPEC PROGRAM ARGUMENT…``, so that no code runs between
fork and exec in a process with threads. It uses only the standard library and fails closed: if a step fails,
the command does not run. Neither the command nor its children can undo the restrictions.

Landlock (landlock(7)) denies all file access except what SPEC names, all access to processes outside
(ptrace(2), ``/proc/PID``, signals), TCP and abstract Unix sockets. It cannot deny UDP or Unix sockets that
have a path, so seccomp(2) denies the calls that create sockets. Calls that bypass Landlock are denied as
well: kernel keyrings, io_uring, System V and POSIX shared memory, setting limits and priorities of another
process, inotify by path.

Inside bubblewrap, whose namespaces cover most of this, only the filter is installed.
"""

import ctypes
import errno
import functools
import json
import math
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MIN_ABI = 3
"""The first Landlock ABI that controls truncate(2): Linux 6.2.

Below it a command could empty a file outside its copy.
"""
SIGNAL_ABI = 6
"""The first Landlock ABI that controls signals and abstract sockets: Linux 6.12."""
_NET_ABI, _IOCTL_ABI = 4, 5

FAILED = 125
"""Exit status if the process could not be confined. The command did not run."""
FAILURE = "agentx: cannot confine the command"
LEFT = "agentx: it left processes"
"""Last line on stderr, if it is asked for, where processes go on when the command has ended."""
LEFT_WRITING = f"{LEFT} that can write its output"
_LEFT_S = 0.5
"""Time that such processes have to end by themselves."""
_PROBE_TIMEOUT_S = 10.0
_HEARD = (signal.SIGCHLD, signal.SIGTERM)
_GRACE_S, _END_S = 1.5, 0.4
"""Together shorter than the time between SIGTERM and SIGKILL.

That time is :data:`agentx.quality.process.TERM_GRACE_S`.
"""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
MACHINE = (
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/sys"),
    *("/proc/uptime", "/proc/version"),
)
"""Readable parts of ``/proc``: facts about the machine, but no process, not even the command itself."""

# --- Landlock: linux/landlock.h -----------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ALL_NET, _ALL_SCOPES = 0b11, 0b11

# --- seccomp: linux/seccomp.h, linux/filter.h, linux/audit.h ------------------------------------------------

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _REFUSE, _ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x4000_0000
_NEWEST = 463
"""System calls from this number on (Linux 6.13) are unknown here and are answered as not implemented."""
_NEW_NAMESPACE = 0x7E02_0000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_TYPE, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5

_ARCHES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
"""The column of the tables below, and the constant that identifies the architecture to a filter."""


def _table(text: str) -> dict[str, tuple[int, int]]:
    """Parse entries ``name number number``: the calls, with their numbers in the columns of `_ARCHES`."""
    rows = (entry.split() for entry in text.replace("\n", ",").split(",") if entry.strip())
    return {name: (int(x86), int(arm)) for name, x86, arm in rows}


_MISSING = -1
"""In the tables: the architecture does not have this call."""

_DENIED = _table("""
    add_key 248 217, request_key 249 218, keyctl 250 219
    process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, pidfd_getfd 438 438
    process_madvise 440 440, migrate_pages 256 238, move_pages 279 239
    open_by_handle_at 304 265, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51
    open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432
    fspick 433 433, mount_setattr 442 442, fanotify_init 300 262
    unshare 272 97, setns 308 268
    bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, syslog 103 116, init_module 175 105
    finit_module 313 273, delete_module 176 106, kexec_load 246 104, kexec_file_load 320 294
    reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89, quotactl 179 60, iopl 172 -1, ioperm 173 -1
""")
"""Kernel keyrings, which a command would share with the login session; other processes; access to files other
than by path, and mounts; namespaces; the kernel itself.
"""

_ABSENT = _table("io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, clone3 435 435")
"""Answered with ENOSYS: programs then use read(2) and clone(2), whose arguments a filter can see."""

_DENIED_UNDER_LANDLOCK = _table("""
    shmget 29 194, shmat 30 196, shmctl 31 195, semget 64 190, semop 65 193, semctl 66 191, semtimedop 220 192
    msgget 68 186, msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181
    inotify_add_watch 254 27
""")
_UNSUPPORTED_UNDER_LANDLOCK = _table(
    "setxattr 188 5, lsetxattr 189 6, removexattr 197 14, lremovexattr 198 15"
)
"""Landlock does not control these. Answered as by a file system without attributes, which cp(1) and tar(1)
accept.
"""

_OF_ITSELF: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    # With a process ID, these could set limits and priorities of any process of the user. Allowed only with
    # these first arguments.
    "prlimit64": ((302, 261), (0,)),
    "sched_setparam": ((142, 118), (0,)),
    "sched_setscheduler": ((144, 119), (0,)),
    "sched_setaffinity": ((203, 122), (0,)),
    "sched_setattr": ((314, 274), (0,)),
    "setpriority": ((141, 140), (0, 0)),  # PRIO_PROCESS
    "ioprio_set": ((251, 30), (1, 0)),  # IOPRIO_WHO_PROCESS
}
_CLONE, _IOCTL, _SOCKET, _SOCKETPAIR = (56, 220), (16, 29), (41, 198), (53, 199)

_Filter = list[tuple[int, int, int, int]]


def filters_here() -> bool:
    """Return whether the seccomp filter knows this machine's system calls: 64-bit Linux on x86 or ARM."""
    return sys.platform == "linux" and platform.machine() in _ARCHES and sys.maxsize > 2**32


def landlock_abi() -> int:
    """Return the Landlock ABI version of the running kernel; 0 if Landlock is missing or switched off."""
    if not filters_here():
        return 0
    try:
        return _syscall(_CREATE_RULESET, 0, 0, _VERSION_FLAG)
    except OSError:
        return 0


@functools.cache
def why_unavailable() -> str | None:
    """Return why Landlock cannot isolate commands here, as a sentence, or None if it can.

    The result is cached.
    """
    abi = landlock_abi()
    if not abi:
        return "this system has no Landlock"
    if abi < MIN_ABI:
        return f"this kernel's Landlock (ABI {abi}) is too old: ABI {MIN_ABI} (Linux 6.2) or newer is needed"
    command = landlocked(["/bin/sh", "-c", "exit 0"], readable=[Path("/")], writable=None)
    try:
        done = subprocess.run(
            command,
            env={},
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Landlock cannot be used here: {error}"
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip() or f"exit status {done.returncode}"
        return f"Landlock cannot be used here: {said}"
    return None


def landlocked(
    argv: Sequence[str], *, readable: Sequence[Path], writable: Path | None, tells: bool = False
) -> list[str]:
    """Return the command line that runs ``argv`` under Landlock and the filter.

    The program is named by its full path. Files and directories in ``readable`` may be executed too; missing
    ones are skipped. ``tells`` asks for the line :data:`LEFT`.
    """
    spec = {
        "landlock": True,
        "readable": [str(path) for path in (*readable, *MACHINE)],
        "writable": [str(writable)] if writable else [],
        "devices": DEVICES,
        "tells": tells,
    }
    return _command(spec, argv)


def filtered(argv: Sequence[str], *, tells: bool = False) -> list[str]:
    """Return the command line that runs ``argv`` under the filter alone, inside bubblewrap.

    ``tells`` asks for the line :data:`LEFT`.
    """
    return _command({"landlock": False, "tells": tells}, argv)


def _command(spec: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, json.dumps(spec), *argv]


# --- the program --------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Confine this process and become the command. Return an exit status only on failure."""
    try:
        spec, argv = json.loads(arguments[0]), list(arguments[1:])
        if spec["landlock"] and (child := _fork()):
            return _outlive(child, tells=spec["tells"])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _drop_capabilities()
        _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
        if spec["landlock"]:
            _restrict(spec["readable"], spec["writable"], spec["devices"])
        program = _program(platform.machine(), under_landlock=spec["landlock"])
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
        held = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
        _prctl(22, 2, ctypes.addressof(held))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        # Without Landlock the command could trace this process, so the filter covers it too
        if spec["tells"] and not spec["landlock"] and (child := _fork()):
            return _outlive(child, tells=True)
    except Exception as error:  # noqa: BLE001 - on any error, the command must not run
        sys.stderr.write(f"{FAILURE}: {type(error).__name__}: {error}\n")
        return FAILED
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; programs do not expect that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(argv[0], argv)  # noqa: S606 - the command's own shell
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        return 127


def _fork() -> int:
    """Fork the process that becomes the command. Its orphans become children of this process."""
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    return child


def _outlive(child: int, *, tells: bool) -> int:
    """Wait for the command and kill what it started, also in other sessions.

    Returns the exit status as shells report it.
    """
    status, deadline = None, math.inf
    while status is None and (left_s := deadline - time.monotonic()) > 0:
        heard = signal.sigtimedwait(_HEARD, min(left_s, 60.0))
        if heard and heard.si_signo == signal.SIGTERM:  # the whole group received it
            deadline = time.monotonic() + _GRACE_S
        status, _ = _reap(child)
    if tells and status is not None:
        _tell_left()
    ended = False
    deadline = time.monotonic() + _END_S
    while not ended and time.monotonic() < deadline:
        with suppress(OSError):  # it has exited meanwhile
            for left in _children(os.getpid()):
                os.kill(left, signal.SIGKILL)
        _, ended = _reap(child)
        time.sleep(0.001)
    return 128 + signal.SIGKILL if status is None else status


def _tell_left() -> None:
    """Say on stderr that processes go on, unless they end soon."""
    end = time.monotonic() + _LEFT_S
    while (left := _below(os.getpid())) and time.monotonic() < end:
        _reap(0)
        time.sleep(0.01)
    if left:
        writing = any(_output(process) & _output(os.getpid()) for process in left)
        sys.stderr.write(f"\n{LEFT_WRITING if writing else LEFT}\n")
        sys.stderr.flush()


def _children(process: int) -> list[int]:
    """Return the children of a process; empty where it has ended, or the kernel does not list them."""
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _below(process: int) -> list[int]:
    """Return all processes below another, except dead ones."""
    found: list[int] = []
    for child in _children(process):
        with suppress(OSError):
            status = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            found += [child] if status != "Z" else []
        found += _below(child)
    return found


def _output(process: int) -> set[str]:
    """Return the pipes that a process has open, without stdin."""
    found: set[str] = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            if name != "0":
                with suppress(OSError):
                    found.add(os.readlink(f"/proc/{process}/fd/{name}"))
    return {target for target in found if target.startswith("pipe:")}


def _reap(child: int) -> tuple[int | None, bool]:
    """Reap exited children. Return the command's status, if it is among them, and whether none is left."""
    found = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    except ChildProcessError:
        return found, True
    return found, False


def _drop_capabilities() -> None:
    """Drop root's capabilities: the bounding set, the ambient set and this process's own."""
    for capability in range(64):
        try:
            _prctl(24, capability)  # PR_CAPBSET_DROP
        except OSError as error:
            if error.errno == errno.EINVAL:  # beyond the last one of this kernel
                break
            if error.errno != errno.EPERM:  # a process that may not drop any has none
                raise
    _prctl(47, 4)  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    none = ctypes.create_string_buffer(24)
    _syscall(
        {"x86_64": 126, "aarch64": 91}[platform.machine()], ctypes.addressof(header), ctypes.addressof(none)
    )


def _restrict(readable: Sequence[str], writable: Sequence[str], devices: Sequence[str]) -> None:
    """Deny all other file access, all network access Landlock controls, and signals to outside processes."""
    abi = _syscall(_CREATE_RULESET, 0, 0, _VERSION_FLAG)
    if abi < MIN_ABI:
        raise OSError(errno.ENOSYS, f"Landlock ABI {abi} is too old")
    files = (1 << (16 if abi >= _IOCTL_ABI else 15)) - 1
    attributes = struct.pack(
        "QQQ", files, _ALL_NET if abi >= _NET_ABI else 0, _ALL_SCOPES if abi >= SIGNAL_ABI else 0
    )
    # An older kernel rejects a structure longer than its own unless the rest is zero, as it is here.
    held = ctypes.create_string_buffer(attributes)
    ruleset = _syscall(_CREATE_RULESET, ctypes.addressof(held), len(attributes), 0)
    for path in readable:
        _allow(ruleset, path, _READ)
    for path in devices:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    for path in writable:
        if not _allow(ruleset, path, files & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)):
            raise FileNotFoundError(errno.ENOENT, "there is no such directory", path)
    _syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> bool:
    """Allow rights on a file or below a directory. Return False if the path does not exist."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not os.path.isdir(f"/proc/self/fd/{place}"):
            rights &= _OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
        _syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.addressof(rule), 0)
    finally:
        os.close(place)
    return True


def _program(machine: str, *, under_landlock: bool) -> _Filter:
    """Build the filter. Calls that are not listed are allowed."""
    column, arch = _ARCHES[machine]
    refuse, absent = _returns(_REFUSE | errno.EPERM), _returns(_REFUSE | errno.ENOSYS)
    allow, kill = _returns(_ALLOW), _returns(_KILL)
    steps: _Filter = [(_LOAD, 0, 0, _ARCH_AT), (_EQUAL, 1, 0, arch), *kill, (_LOAD, 0, 0, _NUMBER_AT)]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32), *kill]
    steps += [(_AT_LEAST, 0, 1, _NEWEST), *absent]
    denied = _DENIED | (_DENIED_UNDER_LANDLOCK if under_landlock else {})
    for numbers in denied.values():
        if numbers[column] != _MISSING:
            steps += _where(numbers[column], refuse)
    for both in _ABSENT.values():
        steps += _where(both[column], absent)
    steps += _where(_CLONE[column], [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACE), *refuse, *allow])
    steps += _where(_IOCTL[column], [_argument(1), *_unless((_TIOCSTI, _TIOCLINUX), allow, refuse)])
    if under_landlock:
        for both in _UNSUPPORTED_UNDER_LANDLOCK.values():
            steps += _where(both[column], _returns(_REFUSE | errno.EOPNOTSUPP))
        steps += _where(_SOCKET[column], refuse)
        # A datagram pair could still send to any socket that has a path.
        streams = _unless((_SOCK_STREAM, _SOCK_SEQPACKET), refuse, allow)
        pair = [_argument(1), (_MASK, 0, 0, _SOCK_TYPE), *streams]
        steps += _where(_SOCKETPAIR[column], [_argument(0), (_EQUAL, 1, 0, _AF_UNIX), *refuse, *pair])
        for numbers, own in _OF_ITSELF.values():
            checks: _Filter = []
            for place, value in enumerate(own):
                checks += [_argument(place), (_EQUAL, 1, 0, value), *refuse]
            steps += _where(numbers[column], [*checks, *allow])
    else:  # a network namespace does not isolate other families (virtual machine sockets, Bluetooth)
        families = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
        steps += _where(_SOCKET[column], [_argument(0), *_unless(families, refuse, allow)])
    return [*steps, *allow]


def _where(number: int, then: _Filter) -> _Filter:
    """Return the steps for one system call; they end in a verdict."""
    return [(_EQUAL, 0, len(then), number), *then]


def _unless(values: Sequence[int], other: _Filter, these: _Filter) -> _Filter:
    """Return one verdict if the loaded word is among the values, and another if it is not."""
    last = len(values) - 1
    checks = [(_EQUAL, last - place + 1, 0, value) for place, value in enumerate(values)]
    return [*checks, *other, *these]


def _argument(place: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place)  # the lower half: both architectures are little-endian


def _returns(verdict: int) -> _Filter:
    return [(_RETURN, 0, 0, verdict)]


def _prctl(option: int, *arguments: int) -> None:
    _call("prctl", option, *arguments, *(0,) * (4 - len(arguments)))


def _syscall(number: int, *arguments: int) -> int:
    return _call("syscall", number, *arguments)


def _call(name: str, *arguments: int) -> int:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_long
    result: int = function(*map(ctypes.c_long, arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments[:1]}: {os.strerror(number)}")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
