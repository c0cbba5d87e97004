"""watch.py -- how long the daemon's loop lets a client wait, in CPU time of the loop's thread; a process of its own.

  watch.py PORT PROCESS

It asks over TCP, which the loop itself serves, again and again. What the thread has used of a processor between a question
and its answer is what was left of the turn in progress, and the turn after it: the most of it is the figure. The process has the
machine's attention where it may ask for it (SCHED_FIFO): what the loop does while the answer waits to be looked at would be
counted too.

It ends with its input, and prints the most milliseconds and how often it has asked. It prints nothing where the daemon does not
answer once more after that.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.processes import BenchError

_PAUSE = 0.0003
#: Seconds for which an answer is waited for.
_PATIENCE = 5.0
#: perf_event_open(2), by machine; PERF_TYPE_SOFTWARE and PERF_COUNT_SW_TASK_CLOCK; PERF_FLAG_FD_CLOEXEC.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}
_SOFTWARE, _TASK_CLOCK, _CLOSE_ON_EXEC = 1, 1, 8


class Watch:
  """Watches a process whose loop serves a port, while the block runs."""

  def __init__(self, port: int, process: int) -> None:
    self.longest, self.asked = 0.0, 0
    self._arguments = [sys.executable, "-B", "-m", "hostile.watch", str(port), str(process)]

  def __enter__(self) -> Watch:
    self._child = subprocess.Popen(self._arguments, cwd=Path(__file__).parent.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
    assert self._child.stdout is not None
    if not select.select([self._child.stdout], [], [], _PATIENCE)[0] or not self._child.stdout.readline():
      self._child.kill()
      self._child.communicate()
      raise BenchError("the daemon takes no connection")
    return self

  def __exit__(self, *_: object) -> None:
    words = self._child.communicate(timeout=30)[0].split()
    if len(words) == 2:
      self.longest, self.asked = float(words[0]), int(words[1])


def _clock(process: int) -> Callable[[], int]:
  """The nanoseconds of CPU that the first thread of a process has had.

  The kernel's counter is exact at any moment, and takes root; schedstat says what it was at the last tick.
  """
  call = _SYSTEM_CALLS.get(platform.machine())
  attributes = struct.pack("=IIQ", _SOFTWARE, 128, _TASK_CLOCK).ljust(128, b"\0")
  counter = ctypes.CDLL(None).syscall(call, attributes, process, -1, -1, _CLOSE_ON_EXEC) if call else -1
  if counter >= 0:
    return lambda: int.from_bytes(os.read(counter, 8), sys.byteorder)
  path = Path(f"/proc/{process}/schedstat")
  return lambda: int(path.read_text().split()[0])


def _watch(port: int, process: int) -> None:
  # "localhost" A, which the daemon answers itself.
  query = b"\0\x1b\0\7\1\0\0\1\0\0\0\0\0\0\x09localhost\0\0\1\0\1"
  clock = _clock(process)
  ends = threading.Event()
  threading.Thread(target=lambda: (sys.stdin.read(), ends.set()), daemon=True).start()
  try:
    client = socket.create_connection(("127.0.0.1", port), _PATIENCE)
  except OSError:
    return
  print("watching", flush=True)
  longest, asked, last = 0, 0, float("inf")
  while True:
    if is_last := ends.is_set():
      last = min(last, time.monotonic() + _PATIENCE)
    try:
      if client is None:
        client = socket.create_connection(("127.0.0.1", port), _PATIENCE)
      before = clock()
      client.sendall(query)
      is_answered = len(client.recv(4096)) > 0
      # Also where the daemon has closed the connection instead, which it may.
      longest = max(longest, clock() - before)
      if not is_answered:
        raise OSError
      asked += 1
      if is_last:
        break
    except OSError:
      client = None
      if time.monotonic() > last:
        return
    time.sleep(_PAUSE)
  print(f"{longest / 1e6:.2f} {asked}", flush=True)


if __name__ == "__main__":
  try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
  except PermissionError:
    pass
  _watch(int(sys.argv[1]), int(sys.argv[2]))
