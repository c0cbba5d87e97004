"""encrypted_handshakes.py -- CPU of a handshake, and what many handshakes do to hits and misses over UDP."""

from __future__ import annotations

import itertools
import random
import statistics
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from . import peers
from .encrypted_lab import DNSDIST, OURS, Listeners, Surroundings
from .lab import wait_for_tcp
from .load import latency_command, read_latencies
from .measure import warm
from .processes import BenchError, die_with_parent
from .servers import launch

FULL, RESUMED = "full", "resumed"
KINDS = (FULL, RESUMED)
#: What handshakes are compared with.
FLOOR = "openssl s_server"
#: Handshakes in a second of a run. They are made one after the other, so a run takes as long as it takes.
_COUNT_A_SECOND = 150
#: Of clients of their own, and what others ask meanwhile: each a second.
HANDSHAKES, HITS, MISSES = 200, 5_000, 200
#: The names of the threads that answer UDP; unbound has one thread for everything.
_UDP_THREADS = {OURS: "listener", DNSDIST: "dnsdist/udp"}
_numbers = itertools.count()


@dataclass
class Handshakes:
  """Microseconds of CPU for one, by server and kind, one for each round."""

  microseconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

  def ratios(self, program: str, kind: str) -> list[float]:
    """Against the floor in the same round."""
    pairs = zip(self.microseconds.get((program, kind), []), self.microseconds.get((FLOOR, kind), []))
    return [own / floor for own, floor in pairs]


def measure_handshakes(around: Surroundings, rounds: int, seconds: float, say: Callable[[str], None]) -> Handshakes:
  """Makes handshakes with all servers, in random order in each round."""
  found = Handshakes()
  count = max(50, int(_COUNT_A_SECOND * seconds))
  with around.started(around.programs) as servers:
    floor = launch(peers.openssl_server(), around.lab)
    try:
      wait_for_tcp(floor, floor.port, 10)
      everything = [(FLOOR, floor.process, floor.port), *((each.name, each.server.process, each.dot) for each in servers)]
      runs = [(*server, kind) for server in everything for kind in KINDS]
      for number in range(rounds + 1):
        for name, process, port, kind in random.sample(runs, len(runs)):
          before = process.cpu_nanoseconds()
          _run([str(around.client), kind, str(port), "dot", str(count)], f"{kind} handshakes with {name}")
          spent = process.cpu_nanoseconds() - before
          # The first round is there so that tables and caches exist.
          if number > 0:
            found.microseconds.setdefault((name, kind), []).append(spent / count / 1e3)
        say(f"encrypted: round {number} of {rounds} of handshakes is done")
    finally:
      floor.process.stop()
  return found


#: Whose handshakes are made beside the answers: the server's own, those of a server that has nothing to do with it, none.
WITH, ELSEWHERE, WITHOUT = "with", "elsewhere", "without"
_CONDITIONS = (WITH, ELSEWHERE, WITHOUT)


@dataclass(frozen=True)
class Sample:
  """Answers over UDP: CPU of the thread that gives them in nanoseconds for each, and median latencies in seconds."""

  cpu: float
  hit: float
  miss: float


@dataclass
class Storm:
  """What was measured with one server, one sample of each condition for each round."""

  samples: dict[str, list[Sample]] = field(default_factory=dict)
  made: int = 0
  failed: int = 0

  def of(self, figure: str, condition: str) -> list[float]:
    """One figure of the samples."""
    return [getattr(sample, figure) for sample in self.samples.get(condition, [])]

  def ratios(self, figure: str, condition: str = WITH) -> list[float]:
    """Against no handshakes in the same round."""
    return [busy / quiet for busy, quiet in zip(self.of(figure, condition), self.of(figure, WITHOUT), strict=True)]


def measure_storms(around: Surroundings, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Storm]:
  """Asks each server for cached and new names under each condition, in random order."""
  found: dict[str, Storm] = {}
  floor = launch(peers.openssl_server(), around.lab)
  try:
    wait_for_tcp(floor, floor.port, 10)
    with around.started(around.programs) as servers:
      for listeners in servers:
        warm(listeners.server, around.lab)
        found[listeners.name] = Storm()
      for number in range(1, rounds + 1):
        for listeners in random.sample(servers, len(servers)):
          storm = found[listeners.name]
          ports = {WITH: listeners.dot, ELSEWHERE: floor.port, WITHOUT: None}
          # All or none: a round without one of them would spoil the ratios.
          samples = {condition: _ask(around, listeners, seconds, storm if condition == WITH else None, ports[condition])
                     for condition in random.sample(_CONDITIONS, len(_CONDITIONS))}
          for condition, sample in samples.items():
            storm.samples.setdefault(condition, []).append(sample)
        say(f"encrypted: round {number} of {rounds} of handshakes beside answers is done")
  finally:
    floor.process.stop()
  return found


def _ask(around: Surroundings, listeners: Listeners, seconds: float, storm: Storm | None, port: int | None) -> Sample:
  """Hits and misses at once, and handshakes at a port, which begin before and end after. Those of a storm are counted."""
  process, lab = listeners.server.process, around.lab
  folder = lab.new_folder("storm")
  fresh = folder / "fresh"
  fresh.write_text("".join(f"m{next(_numbers)}.fresh.example A\n" for _ in range(int(MISSES * seconds) + 100)))
  with ExitStack() as stack:
    handshakes = None
    if port is not None:
      handshakes = _begin(stack, [str(around.client), "storm", str(port), "dot", str(HANDSHAKES), f"{seconds + 1:.3f}"],
                          folder / "handshakes")
    before = process.cpu_of_threads(_UDP_THREADS.get(listeners.name, ""))
    asking = {
      "hits": _begin(stack, latency_command(listeners.server.port, lab.names, rate=HITS, seconds=seconds), folder / "hits"),
      "misses": _begin(stack, latency_command(listeners.server.port, fresh, rate=MISSES, seconds=seconds), folder / "misses")}
    for child in asking.values():
      _await(child, seconds + 30)
    spent = process.cpu_of_threads(_UDP_THREADS.get(listeners.name, "")) - before
    hits, misses = (read_latencies((folder / name).read_text()) for name in asking)
    if len(hits) < 0.95 * HITS * seconds or len(misses) < 0.95 * MISSES * seconds:
      raise BenchError(f"{listeners.name} answered {len(hits):,} hits and {len(misses):,} misses in {seconds:g} s")
    if handshakes is not None:
      _await(handshakes, seconds + 30)
      made, failed = (int(number) for number in (folder / "handshakes").read_text().split())
      if made < 0.95 * HANDSHAKES * seconds:
        raise BenchError(f"only {made} handshakes succeeded beside {listeners.name}, {failed} failed")
      if storm is not None:
        storm.made += made
        storm.failed += failed
  return Sample(spent / (len(hits) + len(misses)), statistics.median(hits), statistics.median(misses))


def _begin(stack: ExitStack, command: list[str], output: Path) -> subprocess.Popen[bytes]:
  """Starts a program that is ended with the stack at the latest."""
  with open(output, "wb") as file:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                             preexec_fn=die_with_parent)

  def end() -> None:
    child.kill()
    child.wait()

  stack.callback(end)
  return child


def _await(child: subprocess.Popen[bytes], limit: float) -> None:
  try:
    status = child.wait(limit)
  except subprocess.TimeoutExpired as error:
    raise BenchError("a program that asks did not end in time") from error
  if status != 0:
    raise BenchError("a program that asks failed")


def _run(command: list[str], what: str) -> None:
  try:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=die_with_parent)
  except subprocess.TimeoutExpired as error:
    raise BenchError(f"{what} did not end in time") from error
  if finished.returncode != 0:
    raise BenchError(f"{what}: {finished.stderr.strip()}")
