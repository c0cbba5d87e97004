"""figures.py -- what is measured beside the rounds: allocations, added latency, memory, start, idling."""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import load as loads
from . import ours
from .dns import ask, wait_until_answered
from .lab import launch_simulator
from .measure import PACED, warm
from .processes import BenchError, die_with_parent
from .servers import FIRST_NAME, Lab, Server, Spec, launch, start

#: Names of the large cache.
MANY_NAMES = 100_000


@dataclass(frozen=True)
class Allocations:
  """Calls that allocate, while this many answers were given."""

  calls: int
  answers: int


@contextmanager
def counted(spec: Spec, lab: Lab, without: str = "") -> Iterator[tuple[Server, Callable[[], int]]]:
  """Runs a server with the counter preloaded; the function says how often it has allocated.

  The calls of the libraries in `without`, with commas between their names, do not count.
  """
  counts = lab.new_folder("count") / "counter"
  counts.write_bytes(bytes(8))
  counts.chmod(0o666)  # a server that gives up its privileges opens it too

  def allocations() -> int:
    return int.from_bytes(counts.read_bytes(), sys.byteorder)

  server = start(spec, lab, {
    "LD_PRELOAD": str(lab.counter), "COUNT_MALLOC_FILE": str(counts), "COUNT_MALLOC_WITHOUT": without})
  try:
    if allocations() == 0:
      raise BenchError(f"{spec.name} did not load the allocation counter")
    yield server, allocations
  finally:
    server.process.stop()


def count_allocations(spec: Spec, lab: Lab, seconds: float) -> Allocations:
  """Warms a server's cache and counts at the paced load."""
  with counted(spec, lab) as (server, allocations):
    warm(server, lab)
    before = allocations()
    outcome = loads.run(server.port, lab.names, rate=PACED.rate, seconds=seconds)
    return Allocations(allocations() - before, outcome.answered)


@dataclass(frozen=True)
class Latency:
  """Medians of one round of question pairs, in milliseconds."""

  forwarded: float
  transfer: float
  service: float

  @property
  def added(self) -> float:
    """What the forwarder adds to the provider's own time. That time is taken as the shorter one: without what a client
    of the provider itself needs for preparing a transfer and reading its result."""
    return self.forwarded - self.service


def measure_latency(spec: Spec, lab: Lab, is_json: bool, url: str, rounds: int, pairs: int) -> list[Latency]:
  """Asks one name at a time through httpdnsd and of its provider; one result for each round."""
  server = start(spec, lab)
  try:
    command = [str(lab.pairs), "json" if is_json else "doh", str(server.port), url, str(lab.certificate),
               str(lab.names), str(pairs)]
    return [_one_round(command) for _ in range(rounds)]
  finally:
    server.process.stop()


def _one_round(command: list[str]) -> Latency:
  try:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=die_with_parent)
  except subprocess.TimeoutExpired as error:
    raise BenchError("the question pairs did not end in time") from error
  if finished.returncode != 0:
    raise BenchError(f"the question pairs failed: {finished.stderr.strip()}")
  rows = [[int(value) / 1e6 for value in line.split()] for line in finished.stdout.splitlines()]
  if not rows:
    raise BenchError("there are no question pairs")
  forwarded, transfer, service = (statistics.median(column) for column in zip(*rows))
  return Latency(forwarded, transfer, service)


def resident_after_https(lab: Lab) -> float:
  """Resident memory in MB (10^6 octets), 5 s after the first answer that came over HTTPS."""
  server = start(ours.FRESH_DOH, lab)
  try:
    answer = ask(server.port, FIRST_NAME, timeout=5)
    if answer is None or answer.rcode != 0 or answer.records == 0:
      raise BenchError("no answer over HTTPS")
    time.sleep(5)
    return server.process.resident_octets() / 1e6
  finally:
    server.process.stop()


@dataclass(frozen=True)
class FullCache:
  """Resident memory in MB with `names` names in the cache."""

  megabytes: float
  names: int


def resident_with_full_cache(lab: Lab) -> FullCache:
  """Fills a cache with 100,000 names, reads the memory, then ends the provider to see how many names are held."""
  simulator = launch_simulator(lab)
  names = loads.write_names(lab.new_folder("many") / "names", MANY_NAMES)
  server = start(ours.CACHED, dataclasses.replace(lab, json_url=simulator.url))
  try:
    for _ in range(3):
      if loads.run(server.port, names).is_complete:
        break
    megabytes = server.process.resident_octets() / 1e6
    simulator.server.process.stop()
    return FullCache(megabytes, loads.run(server.port, names).noerror)
  finally:
    server.process.stop()
    simulator.server.process.stop()


def time_starts(spec: Spec, lab: Lab, name: str, count: int) -> float:
  """The median time in milliseconds from before the fork to the first answer for `name`."""
  times = []
  for _ in range(count):
    begin = time.monotonic()
    server = launch(spec, lab)
    try:
      if not wait_until_answered(server.port, name, begin + 10, server.process.is_running):
        raise BenchError(f"{spec.name} does not answer for {name}\n{server.process.log_tail()}")
      times.append((time.monotonic() - begin) * 1000)
    finally:
      server.process.stop()
  return statistics.median(times)


def count_idle_switches(lab: Lab, seconds: float) -> float:
  """Voluntary context switches a minute of a daemon that has nothing to do and nothing in its cache."""
  server = start(ours.FRESH_DOH, lab)
  try:
    time.sleep(2)  # what belongs to the start is over
    before = server.process.voluntary_switches()
    time.sleep(seconds)
    return (server.process.voluntary_switches() - before) * 60 / seconds
  finally:
    server.process.stop()
