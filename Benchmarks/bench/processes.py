"""processes.py -- starts and ends child processes, and reads from /proc what they consumed."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_ports_given: set[int] = set()
_FIRST_PORT = 10_000


class BenchError(Exception):
  """Something that stops a measurement; its text is for the person who runs the benchmark."""


def find_program(name: str) -> str | None:
  """The path of a program, looked for also where servers are installed and users have no PATH entry."""
  return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


def free_port() -> int:
  """A port of 127.0.0.1 that is free for UDP and TCP now, and that was not handed out before.

  It is outside the range from which the kernel gives ports to clients: one of them could take it while a server is down.
  """
  first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
  for _ in range(1000):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
      port = random.randrange(_FIRST_PORT, first_of_clients) if first_of_clients > _FIRST_PORT else 0
      try:
        udp.bind(("127.0.0.1", port))
        port = udp.getsockname()[1]
        tcp.bind(("127.0.0.1", port))
      except OSError:
        continue
    if port not in _ports_given:
      _ports_given.add(port)
      return port
  raise BenchError("no free port on 127.0.0.1")


def die_with_parent() -> None:
  """Runs in the child: the kernel ends it when the benchmark is killed and cannot do so itself."""
  _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
  """One child process, in a session of its own so that Ctrl-C reaches only the benchmark, which then ends it."""

  def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    self._log = folder / "log"
    with open(self._log, "wb") as log:
      self._child = subprocess.Popen(
        arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        env={**os.environ, **(environment or {})}, preexec_fn=die_with_parent)
    self._members = [self._child.pid]

  def is_running(self) -> bool:
    """Whether the process has not ended yet."""
    return self._child.poll() is None

  def find_children(self) -> None:
    """Notes the processes that this one has forked: they count as part of it."""
    self._members = _family(self._child.pid)

  def log_tail(self) -> str:
    """The last lines that it wrote, for a message about its failure."""
    return "\n".join(self._log.read_text(errors="replace").splitlines()[-8:])

  def cpu_nanoseconds(self) -> int:
    """Time on a CPU so far: the first field of every task's schedstat."""
    return sum(int(text.split()[0]) for text in self._task_files("schedstat"))

  def cpu_of_threads(self, name: str) -> int:
    """The same of the threads whose name begins so."""
    spent = 0
    found = False
    for member in self._members:
      for task in Path(f"/proc/{member}/task").glob("*"):
        try:
          if (task / "comm").read_text().startswith(name):
            spent += int((task / "schedstat").read_text().split()[0])
            found = True
        except (FileNotFoundError, ProcessLookupError):
          continue
    if not found:
      raise BenchError(f"a server has no thread {name!r}")
    return spent

  def cpu_nanoseconds_with_ended(self) -> int:
    """The same with that of threads that have ended."""
    # The kernel's number for the CPU clock of a process: the complement of its own, and 2 for time on a CPU.
    return sum(time.clock_gettime_ns(~member << 3 | 2) for member in self._members)

  def threads(self) -> int:
    """How many threads it has."""
    return len(self._task_files("schedstat"))

  def voluntary_switches(self) -> int:
    """How often its tasks gave up the CPU of their own accord, so far."""
    return sum(_status_number(text, "voluntary_ctxt_switches") for text in self._task_files("status"))

  def resident_octets(self) -> int:
    """VmRSS of the process and of those that it forked."""
    return self._status_octets("VmRSS")

  def own_octets(self) -> int:
    """The same without pages of files, of which the kernel keeps more or fewer: RssAnon."""
    return self._status_octets("RssAnon")

  def proportional_octets(self) -> int:
    """Pss_Anon of smaps_rollup: the share of the process in its memory, without pages of files, of which the kernel keeps
    more or fewer."""
    texts = [Path(f"/proc/{member}/smaps_rollup").read_text() for member in self._members]
    return 1024 * sum(_status_number(text, "Pss_Anon") for text in texts)

  def sockets(self) -> int:
    """How many sockets it has open."""
    links = [os.readlink(entry) for member in self._members for entry in Path(f"/proc/{member}/fd").iterdir()]
    return sum(link.startswith("socket:") for link in links)

  def stop(self) -> None:
    """Ends the process and what it forked: politely, then after three seconds by force."""
    if self.is_running():
      self.find_children()
      self._child.terminate()
      try:
        self._child.wait(3)
      except subprocess.TimeoutExpired:
        self._child.kill()
        self._child.wait()
    for member in self._members[1:]:
      try:
        # Its number may belong to another process by now; the session tells.
        if os.getsid(member) == self._child.pid:
          os.kill(member, signal.SIGKILL)
      except ProcessLookupError:
        continue

  def _status_octets(self, key: str) -> int:
    texts = [Path(f"/proc/{member}/status").read_text() for member in self._members]
    return 1024 * sum(_status_number(text, key) for text in texts)

  def _task_files(self, name: str) -> list[str]:
    texts = []
    for member in self._members:
      for task in Path(f"/proc/{member}/task").glob("*"):
        try:
          texts.append((task / name).read_text())
        except (FileNotFoundError, ProcessLookupError):
          continue  # the task has ended since the folder was read
    if not texts:
      raise BenchError(f"a server has ended by itself:\n{self.log_tail()}")
    return texts


def _status_number(status: str, key: str) -> int:
  for line in status.splitlines():
    if line.startswith(key + ":"):
      return int(line.split()[1])
  return 0


def _family(root: int) -> list[int]:
  """`root` and all processes below it."""
  children: dict[int, list[int]] = {}
  for stat in Path("/proc").glob("[0-9]*/stat"):
    try:
      text = stat.read_text()
    except (FileNotFoundError, ProcessLookupError):
      continue
    # The name in parentheses may hold anything; the parent is the second field after it.
    children.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
  family = [root]
  for member in family:
    family.extend(children.get(member, []))
  return family
