"""parts.py -- a test of several parts: each in a network and a mount namespace of its own, with the programs that it starts.

A part that fails does not keep the others from being tried.
"""

import ctypes
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import traceback

from machine import BINARIES, Failure

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x20000
# The longest that a part may take, in seconds.
LIMIT = 900


def question(name: str, number: int, is_recursive: bool = True) -> bytes:
  """A query for A. Without recursion the daemon answers it from its cache, or with REFUSED."""
  labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
  header = struct.pack(">HHHHHH", number, 0x0100 if is_recursive else 0, 1, 0, 0, 0)
  return header + labels + b"\0" + struct.pack(">HH", 1, 1)


def is_open(port: int, address: str = "127.0.0.1") -> bool:
  """Whether something listens."""
  with socket.socket() as probe:
    return probe.connect_ex((address, port)) == 0


def waits(process: int) -> int:
  """How often a process's threads went to sleep by themselves."""
  statuses = pathlib.Path(f"/proc/{process}/task").glob("*/status")
  return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.M).group(1))
             for status in statuses)


def counted(profile: str) -> int:
  """The instructions of a profile of callgrind's."""
  return int(re.search(r"^(?:summary|totals): (\d+)", profile, re.M).group(1))


def callgrind(result: pathlib.Path) -> list[str]:
  """The command that counts a program's instructions."""
  return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={result}", "--quiet"]


class Programs:
  """Programs that share a log, and end together."""

  def __init__(self, folder: pathlib.Path):
    self.folder = folder
    self.log = folder / "log"
    self.processes: list[subprocess.Popen] = []

  def run(self, *command) -> subprocess.Popen:
    """Starts a program."""
    with self.log.open("ab") as log:
      process = subprocess.Popen(command, stdout=log, stderr=log)
    self.processes.append(process)
    return process

  def end(self) -> None:
    """Ends the programs, the last one first."""
    for process in reversed(self.processes):
      process.terminate()
      process.wait(timeout=20)


def control(path: pathlib.Path, *arguments: str) -> str:
  """What a command prints that asks the daemon with this control socket."""
  done = subprocess.run([BINARIES / "httpdnsd", *arguments, "--socket", str(path)], check=False,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
  return done.stdout


def _too_long(*_) -> None:
  raise Failure(f"longer than {LIMIT} s")


def _isolated(test: str, name: str, part) -> bool:
  """Runs a part in namespaces of its own, in a process of its own; whether all was so."""
  process = os.fork()
  if process:
    return os.waitpid(process, 0)[1] == 0
  status = 1
  try:
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
      raise OSError(ctypes.get_errno(), "unshare")
    for command in ("mount --make-rprivate /", "mount -t tmpfs tmpfs /run", "ip link set lo up"):
      subprocess.run(command.split(), check=True)
    part()
    status = 0
  except (Failure, OSError, subprocess.SubprocessError) as error:
    print(f"{test}: {name}: {error}", file=sys.stderr)
  except Exception:
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    os._exit(status)


def run_parts(test: str, parts: dict, measurements: tuple[str, ...]) -> int:
  """Runs the parts that the command line names, or all that are no measurement; the exit status."""
  failed = []
  for name in sys.argv[1:] or [name for name in parts if name not in measurements]:
    print(f"{test}: {name}", flush=True)
    if not _isolated(test, name, parts[name]):
      failed.append(name)
  if failed:
    print(f"{test}: failed: {', '.join(failed)}", file=sys.stderr)
  return 1 if failed else 0
