"""engine.py -- runs the programs of an unpacked image as a container engine would: namespaces, mounts, user, rights.

A `Container` has its own mount and PID namespace, and the network namespace that it is given. Run as a program, this
file is what becomes the container's process.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

# What Docker and containerd leave to a container by default.
USUAL_CAPABILITIES = [
  "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
  "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
]
# Their numbers, by linux/capability.h.
NUMBERS = {
  "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
  "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "SYS_CHROOT": 18, "MKNOD": 27, "AUDIT_WRITE": 29,
  "SETFCAP": 31,
}
PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 23, 24, 38, 47, 4
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000


@dataclass
class Security:
  """What the container's process may do."""
  uid: int = 65532
  gid: int = 65532
  capabilities: list[str] = field(default_factory=lambda: list(USUAL_CAPABILITIES))
  no_new_privileges: bool = False
  is_read_only: bool = True


@dataclass
class Specification:
  """A container, but for its network."""
  root: str
  command: list[str]
  environment: dict[str, str]
  security: Security = field(default_factory=Security)
  # Path in the container → folder or file here, mounted read-only.
  mounts: dict[str, str] = field(default_factory=dict)
  # Paths that are a tmpfs of the container's user.
  tmpfs: list[str] = field(default_factory=list)


class Container:
  """A running container."""

  def __init__(self, specification: Specification, network: str, log: Path):
    self.specification = specification
    self.log = log
    for path in ["/proc", *specification.tmpfs, *specification.mounts]:
      target = Path(specification.root + path)
      if Path(specification.mounts.get(path, "/")).is_dir():
        target.mkdir(parents=True, exist_ok=True)
      else:
        target.touch()
    with log.open("wb") as file:
      # unshare is ours; its child is the container's first process, which dies with it.
      self.process = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{network}", "unshare", "--mount", "--pid", "--fork", "--kill-child",
         sys.executable, __file__, "start", json.dumps(asdict(specification))],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file)

  @property
  def pid(self) -> int:
    """The container's first process as this machine numbers it."""
    children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
    return int(children[0])

  def output(self) -> str:
    """Everything that it has written to stderr."""
    return self.log.read_text(errors="replace")

  def status(self, name: str) -> str:
    """A line of its /proc/PID/status."""
    lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:"))

  def execute(self, command: list[str], timeout: float = 10) -> subprocess.CompletedProcess:
    """Runs a program inside, with the same rights: what `docker exec` and an exec probe do."""
    joined = asdict(self.specification) | {"command": command, "pid": self.pid}
    return subprocess.run(
      [sys.executable, __file__, "execute", json.dumps(joined)], stdin=subprocess.DEVNULL, capture_output=True,
      text=True, timeout=timeout, check=False)

  def stop(self, number: int = signal.SIGTERM) -> None:
    """Sends a signal to the first process."""
    os.kill(self.pid, number)

  def wait(self, timeout: float) -> int:
    """Its exit code, as the engine would tell it."""
    return self.process.wait(timeout)

  def end(self) -> None:
    """Ends it, however it is."""
    if self.process.poll() is None:
      try:
        os.kill(self.pid, signal.SIGKILL)
      except (IndexError, ProcessLookupError, FileNotFoundError):
        pass
      try:
        self.process.wait(5)
      except subprocess.TimeoutExpired:
        self.process.kill()
        self.process.wait()


libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
  """Ends the process where a call has failed."""
  if result < 0:
    sys.exit(f"engine: {what}: {os.strerror(ctypes.get_errno())}")


def mount(*arguments: str) -> None:
  """mount(8), without writing to /etc/mtab."""
  subprocess.run(["mount", "-n", *arguments], check=True, timeout=10)


def become(specification: dict) -> None:
  """Gives up what the container may not do, and becomes its program."""
  security = specification["security"]
  allowed = {NUMBERS[name] for name in security["capabilities"]}
  number = 0
  while libc.prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0:
    if number not in allowed:
      check(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "bounding set")
    number += 1
  check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient set")
  os.chroot(specification["root"] if "pid" not in specification else ".")
  os.chdir("/")
  os.setgroups([])
  os.setresgid(security["gid"], security["gid"], security["gid"])
  os.setresuid(security["uid"], security["uid"], security["uid"])
  if security["no_new_privileges"]:
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
  command = specification["command"]
  try:
    os.execve(command[0], command, specification["environment"])
  except OSError as error:
    sys.exit(f"engine: exec {command[0]}: {error.strerror}")


def start(specification: dict) -> None:
  """In new namespaces: makes the container's mounts, and becomes its program."""
  root, security = specification["root"], specification["security"]
  mount("--make-rprivate", "/")
  mount("--bind", root, root)
  for path, source in specification["mounts"].items():
    mount("--bind", source, root + path)
    mount("-o", "remount,bind,ro", root + path)
  for path in specification["tmpfs"]:
    mount("-t", "tmpfs", "-o", f"uid={security['uid']},gid={security['gid']},mode=0755", "tmpfs", root + path)
  mount("-t", "proc", "-o", "nosuid,nodev,noexec", "proc", f"{root}/proc")
  if security["is_read_only"]:
    mount("-o", "remount,bind,ro", root)
  become(specification)


def execute(specification: dict) -> None:
  """Goes into the namespaces of a container's process, and becomes another program there."""
  process = specification["pid"]
  # Before the namespaces change: /proc would be another one then.
  root = os.open(f"/proc/{process}/root", os.O_PATH | os.O_DIRECTORY)
  descriptor = libc.syscall(434, process, 0)  # pidfd_open
  check(descriptor, "pidfd_open")
  check(libc.setns(descriptor, CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS), "setns")
  os.fchdir(root)
  # Only a child is in the PID namespace.
  child = os.fork()
  if child == 0:
    become(specification)
  _, status = os.waitpid(child, 0)
  sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
  # Before everything else: without unshare nothing works.
  if shutil.which("unshare") is None:
    sys.exit("engine: there is no unshare")
  {"start": start, "execute": execute}[sys.argv[1]](json.loads(sys.argv[2]))
