"""hits.py -- what a cached answer costs by valgrind's callgrind: the same on every machine and every day."""

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


#: What gives memory.
_ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"}


def _count(programs: Programs, queries: int) -> tuple[int, int]:
  """Instructions and memory allocations of a whole run with `queries` cached answers, asked one at a time."""
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
    return _counted(result, daemon)


def _counted(result: Path, daemon: Child) -> tuple[int, int]:
  for _ in range(100):
    if result.exists() and (found := re.search(r"^(?:summary|totals): (\d+)", text := result.read_text(), re.MULTILINE)):
      return int(found.group(1)), calls(text)
    time.sleep(0.1)
  raise BenchError(f"callgrind wrote nothing:\n{daemon.log.read_text(errors='replace')[-500:]}")


def calls(profile: str) -> int:
  """How often a profile of callgrind's says that memory was asked for."""
  # A name stands beside its number the first time only.
  numbers: set[str] = set()
  total, is_allocator = 0, False
  for line in profile.splitlines():
    if (found := re.match(r"c?fn=(\(\d+\))(?: (.*))?", line)) is not None:
      number, name = found.groups()
      if name is not None and re.split(r"['@]", name)[0] in _ALLOCATORS:
        numbers.add(number)
      is_allocator = line.startswith("cfn=") and number in numbers
    elif is_allocator and line.startswith("calls="):
      total += int(line.removeprefix("calls=").split()[0])
  return total


def cost_of_a_hit(programs: Programs) -> dict[str, float]:
  """Instructions and calls for memory, in the program and its libraries, for a cached answer over UDP."""
  if find_program("valgrind") is None:
    raise BenchError("valgrind is not installed")
  few, many = _count(programs, _FEW), _count(programs, _MANY)
  if few[1] == 0:
    raise BenchError("callgrind saw no call for memory at all, not even of the start")
  instructions, allocations = ((more - less) / (_MANY - _FEW) for less, more in zip(few, many, strict=True))
  return {"instructions": instructions, "allocations": allocations}
