"""hits.py -- instructions for a cached answer, by valgrind's callgrind: the same on every machine and every day."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from bench.dns import ask, compose_query
from bench.processes import BenchError, find_program

from .lab import Child, OpenLab, Programs

#: Queries of the two runs, whose difference leaves out starting, connecting and stopping.
_FEW, _MANY = 2_000, 10_000
_NAMES = [f"hit{number}.good{number}.example" for number in range(50)]


def _count(programs: Programs, queries: int) -> int:
  """Instructions of a whole run with so many cached answers, asked one at a time."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator()
    result = lab.folder / "callgrind.out"
    prefix = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={result}", "--quiet")
    port = lab.daemon("json", simulator.port, None, prefix=prefix)
    for name in _NAMES:
      if ask(port, name, 20) is None:
        raise BenchError("no answer under callgrind")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
      client.connect(("127.0.0.1", port))
      client.settimeout(20)
      for number in range(queries):
        client.send(compose_query(_NAMES[number % len(_NAMES)], number))
        client.recv(4096)
    daemon = next(child for child in lab.children if child.log.name == "httpdnsd.log")
    daemon.stop()
    return _instructions(result, daemon)


def _instructions(result: Path, daemon: Child) -> int:
  for _ in range(100):
    if result.exists() and (found := re.search(r"^(?:summary|totals): (\d+)", result.read_text(), re.MULTILINE)):
      return int(found.group(1))
    time.sleep(0.1)
  raise BenchError(f"callgrind wrote nothing:\n{daemon.log.read_text(errors='replace')[-500:]}")


def instructions_per_hit(programs: Programs) -> float | None:
  """Instructions in the program for a cached answer over UDP; None without valgrind."""
  if find_program("valgrind") is None:
    return None
  return (_count(programs, _MANY) - _count(programs, _FEW)) / (_MANY - _FEW)
