"""What an agent's command might try against the user who runs it: run inside a copy, it prints what worked.

A program of its own, ``python attacks.py TARGETS``, where TARGETS is a JSON object with the places and
processes to attack. For each attack it prints whether it succeeded and what it got. It uses the standard
library and system calls.
"""

import ctypes
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTACKS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {}
"""By name: the column of the table in docs/safety.md that it belongs to, and what it does; it raises where it fails."""

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
ARM = platform.machine() == "aarch64"


def descriptors():
    """The descriptors that are open beside the standard streams."""
    found = []
    for number in range(3, 4096):
        try:
            fcntl.fcntl(number, fcntl.F_GETFD)
        except OSError:
            continue
        found.append(number)
    return found


INHERITED = descriptors()


def attack(column):
    """Mark a function as an attack."""

    def take(function):
        ATTACKS[function.__name__] = (column, function)
        return function

    return take


def call(number, on_arm, *arguments):
    """A system call; raises where it fails."""
    result = LIBC.syscall(ctypes.c_long(on_arm if ARM else number), *map(ctypes.c_long, arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def address(content):
    """A buffer that stays alive, by its address."""
    buffer = ctypes.create_string_buffer(content) if isinstance(content, bytes) else content
    _ALIVE.append(buffer)
    return ctypes.addressof(buffer)


_ALIVE: list[object] = []


def in_child(function):
    """Do something in a process of its own; raises where it fails there."""
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise PermissionError("refused")
    return "done"


def refuse_empty(found):
    """What was found, unless that is nothing."""
    if not found:
        raise LookupError("nothing there")
    return found


# --- acts as the user, while the log is whole ---------------------------------------------------------------


def _agentx(at, *words):
    environ = {**os.environ, "PYTHONPATH": at["python_path"], "AGENTX_STATE_DIR": at["state"]}
    environ.pop("AGENTX_RUN", None)
    environ["AGENTX_NO_SERVER"] = (
        "1"  # a server knows the processes of a run, whatever their environment says
    )
    done = subprocess.run(
        [sys.executable, "-m", "agentx", "-C", at["workspace"], *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise OSError(done.stderr[-300:])
    return done.stdout[:200]


@attack("acts as you through `agentx`")
def say(at):
    return _agentx(at, "say", "Never use tabs.")


@attack("acts as you through `agentx`")
def set_isolation(at):
    return _agentx(at, "config", "set", "tools.isolation", "none")


@attack("acts as you through `agentx`")
def retire_rule(at):
    return _agentx(at, "memory", "retire", at["rule"])


# --- reads home ---------------------------------------------------------------------------------------------


@attack("reads your home or the workspace")
def read_home(at):
    return Path(at["home"], "token").read_text()


@attack("reads your home or the workspace")
def read_through_own_root(at):
    return Path("/proc/self/root", at["home"][1:], "token").read_text()


@attack("reads your home or the workspace")
def list_home(at):
    return refuse_empty(os.listdir(at["home"]))


@attack("reads your home or the workspace")
def read_log(at):
    return Path(at["workspace"], "history.jsonl").read_text()


@attack("reads your home or the workspace")
def read_by_link_in_tree(at):
    os.symlink(at["home"], "to-home")
    return Path("to-home/token").read_text()


@attack("sees whether a file exists, its size and times")
def stat_home(at):
    return os.stat(Path(at["home"], "token")).st_size


@attack("reads your home or the workspace")
def watch_home(at):
    made = LIBC.inotify_init1(0)
    if LIBC.inotify_add_watch(made, os.fsencode(at["home"]), 0x100) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    return made


@attack("reads your home or the workspace")
def open_by_handle(at):
    handle, mount = address(struct.pack("Ii", 128, 0) + bytes(128)), address(bytes(4))
    call(303, 264, -100, address(os.fsencode(at["home"]) + b"/token"), handle, mount, 0)
    return os.read(call(304, 265, os.open(at["home"], os.O_RDONLY), handle, 0), 99)


# --- reads keys ---------------------------------------------------------------------------------------------


@attack("reads keys")
def read_own_environment(at):
    found = [value for value in os.environ.values() if at["key"] in value]
    return refuse_empty(found)


@attack("reads keys")
def read_parents_environment(at):
    return Path(f"/proc/{at['parent']}/environ").read_bytes()


@attack("reads keys")
def kernel_keyring(at):
    return call(
        250, 219, 0, -3, 1
    )  # KEYCTL_GET_KEYRING_ID of the session's keyring, made where there is none


@attack("reads keys")
def add_kernel_key(at):
    return call(248, 217, address(b"user\0"), address(b"agentx-test\0"), address(b"x"), 1, -2)


# --- reads other processes ----------------------------------------------------------------------------------


@attack("reads your other processes")
def read_environment(at):
    found = Path(f"/proc/{at['victim']}/environ").read_bytes()
    if at["marker"].encode() not in found:
        raise LookupError("another process of that number")
    return "the environment"


@attack("reads your other processes")
def read_memory(at):
    with Path(f"/proc/{at['victim']}/mem").open("rb"):
        return "open"


@attack("reads your other processes")
def read_memory_by_call(at):
    here, there = address(bytes(8)), address(bytes(8))
    local, remote = address(struct.pack("PL", here, 8)), address(struct.pack("PL", there, 8))
    try:
        return call(310, 270, at["victim"], local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno == 14:  # EFAULT: it was allowed to look, and there is nothing at that address
            return "allowed"
        raise


@attack("reads your other processes")
def trace(at):
    return call(101, 117, 0x4206, at["victim"], 0, 0)  # PTRACE_SEIZE


@attack("reads your other processes")
def read_command_lines(at):
    wanted = f"input()\0{at['marker']}".encode()
    return refuse_empty([one for one in Path("/proc").glob("[0-9]*/cmdline") if wanted in one.read_bytes()])


@attack("reads your other processes")
def enter_root_of_process(at):
    return os.listdir(f"/proc/{at['victim']}/root{at['workspace']}")


@attack("reads your other processes")
def take_descriptor(at):
    return call(438, 438, call(434, 434, at["victim"], 0), 0, 0)


@attack("reads your other processes")
def inherited_descriptors(at):
    return refuse_empty(INHERITED)


@attack("reads your other processes")
def attach_shared_memory(at):
    return call(30, 196, call(29, 194, at["shared"], 0, 0o600), 0, 0o10000)


# --- writes log ---------------------------------------------------------------------------------------------


def _log(at):
    return f"{at['workspace']}/history.jsonl"


@attack("writes the log, `.git` or `agentx.toml`")
def append(at):
    with open(_log(at), "a") as log:
        return log.write("forged\n")


@attack("writes the log, `.git` or `agentx.toml`")
def empty_by_name(at):
    return os.truncate(_log(at), os.stat(_log(at)).st_size)


@attack("writes the log, `.git` or `agentx.toml`")
def append_through_hard_link(at):
    os.link(_log(at), "linked")
    with open("linked", "a") as log:
        return log.write("forged\n")


@attack("writes the log, `.git` or `agentx.toml`")
def append_through_link_made_before(at):
    with open("made-before", "a") as log:
        return log.write("forged\n")


@attack("writes the log, `.git` or `agentx.toml`")
def replace(at):
    Path("replacement").write_text("forged\n")
    return os.replace("replacement", _log(at))


@attack("writes the log, `.git` or `agentx.toml`")
def write_by_anonymous_program(at):
    number = os.memfd_create("program", 0)
    os.write(number, f"#!/bin/sh\necho forged >> {_log(at)}\n".encode())
    done = subprocess.run([f"/proc/self/fd/{number}"], pass_fds=[number], capture_output=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.decode())
    return done.returncode


@attack("writes the log, `.git` or `agentx.toml`")
def write_git(at):
    return Path(at["workspace"], ".git", "config").write_text("[core]\n\tfsmonitor = evil\n")


@attack("writes the log, `.git` or `agentx.toml`")
def write_settings(at):
    with Path(at["workspace"], "agentx.toml").open("a") as settings:
        return settings.write('\n[tools]\nisolation = "none"\n')


@attack("writes the log, `.git` or `agentx.toml`")
def rename_workspace(at):
    os.rename(at["workspace"], f"{at['workspace']}-moved")
    os.rename(f"{at['workspace']}-moved", at["workspace"])
    return "moved"


# --- writes outside the copy --------------------------------------------------------------------------------


@attack("writes elsewhere outside its copy")
def write_home(at):
    return Path(at["home"], ".profile").write_text("evil\n")


@attack("writes elsewhere outside its copy")
def write_attribute(at):
    return os.setxattr(Path(at["home"], "token"), "user.agentx", b"kept here")


@attack("writes elsewhere outside its copy")
def write_temporary(at):
    return Path(at["temporary"], "agentx-was-here").write_text("evil\n")


@attack("writes elsewhere outside its copy")
def write_running_python(at):
    made = Path(sys.prefix, "agentx-was-here")
    made.write_text("evil\n")
    made.unlink()
    return str(made)


@attack("writes elsewhere outside its copy")
def delete_file(at):
    return os.unlink(Path(at["home"], "spare"))


@attack("writes elsewhere outside its copy")
def mount_over(at):
    place = address(os.fsencode(at["home"]) + b"\0")

    def mount():
        call(272, 97, 0x10020000)  # a user namespace and a mount namespace of its own
        call(165, 40, address(b"none\0"), place, address(b"tmpfs\0"), 0, 0)

    return in_child(mount)


@attack("writes elsewhere outside its copy")
def make_device(at):
    os.mknod("disk", 0o060600, os.makedev(254, 0))
    return os.open("disk", os.O_RDONLY)


@attack("writes elsewhere outside its copy")
def write_kernel_setting(at):
    held = Path("/proc/sys/kernel/core_pattern").read_text()
    return Path("/proc/sys/kernel/core_pattern").write_text(held)


@attack("writes elsewhere outside its copy")
def queue_for_the_kernel(at):
    return call(425, 425, 4, address(bytes(120)))  # io_uring opens and sends without a system call for each


@attack("signals or limits your processes")
def limit_process(at):
    _same(at)
    return call(302, 261, at["victim"], 4, address(struct.pack("QQ", 0, 0)), 0)  # RLIMIT_CORE


@attack("changes modes and times of your files")
def change_mode(at):
    return os.chmod(Path(at["home"], "token"), 0o640)


@attack("changes modes and times of your files")
def change_times(at):
    return os.utime(Path(at["home"], "token"), (0, 0))


# --- network and sockets ------------------------------------------------------------------------------------


@attack("uses the network")
def connect_loopback(at):
    return socket.create_connection(("127.0.0.1", at["port"]), timeout=2)


@attack("uses the network")
def send_datagram(at):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect(("127.0.0.1", at["datagram_port"]))
        made.send(b"secret")
        made.settimeout(1)
        return made.recv(9)


@attack("uses the network")
def virtual_machine_socket(at):
    return socket.socket(40, socket.SOCK_STREAM).fileno()  # AF_VSOCK knows no network namespace


@attack("uses the network")
def virtual_machine_socket_by_a_32_bit_call(at):
    if ARM:
        raise OSError("there is no such call")
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 359 (socket); mov ebx, 40; mov ecx, 1; xor edx, edx; int 0x80; pop rbx; ret
    code.write(bytes.fromhex("53 b867010000 bb28000000 b901000000 31d2 cd80 5b c3"))
    made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def connect():
        if made() < 0:
            raise OSError("refused")

    return in_child(connect)


@attack("uses the network")
def virtual_machine_socket_by_an_x32_call(at):
    if ARM:
        raise OSError("there is no such call")
    return in_child(lambda: call(0x40000000 | 41, 0, 40, 1, 0))


@attack("reaches sockets of your programs")
def connect_in_home(at):
    return _unix(f"{at['home']}/agent")


@attack("reaches sockets of your programs")
def connect_in_workspace(at):
    return _unix(f"{at['workspace']}/agent")


@attack("reaches sockets of your programs")
def connect_abstract(at):
    return _unix("\0" + at["abstract"])


@attack("reaches sockets of your programs")
def send_from_pair(at):
    with socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0] as made:
        return made.sendto(b"hello", f"{at['home']}/datagram")


@attack("reaches sockets of your programs")
def reconnect_pair(at):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    other.close()
    return one.connect(f"{at['home']}/agent")


@attack("reaches sockets of your programs")
def send_from_packet_pair(at):
    with socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0] as made:
        return made.sendmsg([b"hello"], [], 0, f"{at['home']}/datagram")


def _unix(name):
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(2)
        made.connect(name)
        return "connected"


# --- signals ------------------------------------------------------------------------------------------------


@attack("signals or limits your processes")
def signal_process(at):
    _same(at)
    return os.kill(at["victim"], signal.SIGCONT)


@attack("signals or limits your processes")
def signal_parent(at):
    _same(at)
    return os.kill(at["parent"], signal.SIGCONT)


@attack("signals or limits your processes")
def signal_group(at):
    _same(at)
    return os.killpg(at["victim"], signal.SIGCONT)


@attack("signals or limits your processes")
def signal_by_descriptor(at):
    _same(at)
    return call(424, 424, call(434, 434, at["victim"], 0), signal.SIGCONT, 0, 0)


def _same(at):
    """Inside a namespace a number means another process, or none."""
    if at["own_processes"] and not Path(f"/proc/{at['victim']}").exists():
        raise ProcessLookupError("there is no such process in here")


@attack("signals or limits your processes")
def slow_process(at):
    _same(at)
    return os.setpriority(os.PRIO_PROCESS, at["victim"], 1)


@attack("signals or limits your processes")
def slow_all_processes(at):
    if at["own_processes"]:
        raise LookupError("the user's processes are not in here")
    return os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))


@attack("signals or limits your processes")
def schedule_process(at):
    _same(at)
    os.sched_setaffinity(at["victim"], os.sched_getaffinity(at["victim"]))
    return os.sched_setscheduler(at["victim"], os.SCHED_BATCH, os.sched_param(0))


@attack("signals or limits your processes")
def slow_disk_of_process(at):
    _same(at)
    return call(251, 30, 1, at["victim"], 3 << 13)  # IOPRIO_CLASS_IDLE


@attack("signals or limits your processes")
def type_into_terminal(at):
    for name in [
        "/dev/tty",
        "/dev/console",
        *map(str, Path("/dev/pts").glob("[0-9]*")),
        "/dev/stdin",
        "/dev/stdout",
    ]:
        try:
            fcntl.ioctl(os.open(name, os.O_RDWR | os.O_NOCTTY), 0x5412, b"x")  # TIOCSTI
        except OSError:
            continue
        return name
    raise OSError("no terminal")


# --- more rights --------------------------------------------------------------------------------------------


@attack("gains rights, or new ways into the kernel")
def gain_by_setuid(at):
    if LIBC.prctl(39, 0, 0, 0, 0) == 1:  # PR_GET_NO_NEW_PRIVS
        raise PermissionError("no new privileges")
    return "may gain"


@attack("gains rights, or new ways into the kernel")
def hold_capabilities(at):
    header, data = address(struct.pack("Ii", 0x20080522, 0)), ctypes.create_string_buffer(24)
    call(125, 90, header, address(data))
    return refuse_empty(any(data.raw) and data.raw.hex())


@attack("gains rights, or new ways into the kernel")
def own_user_namespace(at):
    return in_child(lambda: call(272, 97, 0x10000000))


@attack("gains rights, or new ways into the kernel")
def user_namespace_by_clone(at):
    made = call(56, 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if made == 0:
        os._exit(0)
    return os.waitpid(made, 0)


@attack("gains rights, or new ways into the kernel")
def load_program_into_kernel(at):
    return call(321, 280, 0, address(struct.pack("IIII", 2, 4, 4, 1) + bytes(112)), 128)


@attack("gains rights, or new ways into the kernel")
def dump_core(at):
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        raise PermissionError("no core dumps")
    return "may dump"


def main():
    """Try everything and print what came of it."""
    at = json.loads(sys.argv[1])
    at["own_processes"] = os.getppid() < 10  # a namespace: the shell's number is small
    os.chdir(tempfile.mkdtemp(dir="."))
    if at["made_before"]:
        os.symlink(at["made_before"], "made-before")
    found = {}
    for name, (column, function) in ATTACKS.items():
        try:
            got = repr(function(at))
        except Exception as error:
            found[name] = {"column": column, "worked": False, "said": f"{type(error).__name__}: {error}"}
        else:
            found[name] = {"column": column, "worked": True, "said": got[:200]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
