"""dashboard_cpu.py -- CPU of a daemon while pages of its dashboard are open, and what they do to answers from the cache."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

from . import load as loads
from .encrypted_lab import DNSDIST, OURS
from .lab import wait_for_tcp
from .measure import PACED, warm
from .ours import with_dashboard
from .peers import dnsdist_with_page
from .processes import BenchError, free_port
from .servers import Lab, Server, Spec, start
from .viewers import INTERVAL, MOST, dnsdist_page, pages, scraper

#: Queries a second while a daemon is looked at, for names in the cache: new names cost each server what it asks with.
RATE = 500
BUSY, IDLE = f"{RATE} q/s", "no queries"
LOADS = (BUSY, IDLE)
#: Who looks.
UNWATCHED, SCRAPER, ONE, MANY = "no viewer", "a scraper", "1 page", f"{MOST} pages"
DNSDIST_UNWATCHED, DNSDIST_PAGE = "dnsdist, no viewer", "dnsdist, its page"
CONDITIONS = (UNWATCHED, SCRAPER, ONE, MANY, DNSDIST_UNWATCHED, DNSDIST_PAGE)
#: Runs of a condition in a round, by load, and their length: with several, a disturbance meets all alike.
_REPEATS, _SECONDS = {BUSY: 3, IDLE: 2}, {BUSY: 4, IDLE: 6}
#: Turns with pages and without in a round.
_TURNS = 4
_LISTENER = "listener"

#: A server, and what makes the viewers of a condition.
_Kind = tuple[Server, Callable[[], AbstractContextManager[None]]]


@dataclass
class Looks:
  """CPU of the whole process in milliseconds a second by load and condition, one for each round."""

  milliseconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
  failures: list[str] = field(default_factory=list)

  def ratios(self, load: str, condition: str, other: str) -> list[float]:
    """Against another condition in the same round."""
    pairs = zip(self.milliseconds.get((load, condition), []), self.milliseconds.get((load, other), []))
    return [own / beside for own, beside in pairs]

  def more(self, load: str, condition: str, other: str) -> float:
    """How much more than under another condition in the same round, in the median."""
    return statistics.median(own - beside for own, beside in zip(
      self.milliseconds[load, condition], self.milliseconds[load, other], strict=True))


@contextmanager
def _started(lab: Lab, spec: Callable[[int], Spec]) -> Iterator[tuple[Server, int]]:
  """Starts a server and fills its cache; returns it with the port of its page."""
  web = free_port()
  server = start(spec(web), lab)
  try:
    wait_for_tcp(server, web, 10)
    warm(server, lab)
    yield server, web
  finally:
    server.process.stop()


def measure_looks(lab: Lab, has_dnsdist: bool, rounds: int, say: Callable[[str], None]) -> Looks:
  """Reads the CPU under each condition, in random order in each round."""
  looks = Looks()
  with ExitStack() as stack:
    ours, web = stack.enter_context(_started(lab, lambda web: with_dashboard(OURS, web, True)))
    kinds: dict[str, _Kind] = {
      UNWATCHED: (ours, nullcontext), SCRAPER: (ours, lambda: scraper(web)), ONE: (ours, lambda: pages(web, 1)),
      MANY: (ours, lambda: pages(web, MOST))}
    if has_dnsdist:
      dnsdist, page = stack.enter_context(_started(lab, lambda web: dnsdist_with_page(DNSDIST, web)))
      kinds |= {DNSDIST_UNWATCHED: (dnsdist, nullcontext), DNSDIST_PAGE: (dnsdist, lambda: dnsdist_page(page))}
    for number in range(1, rounds + 1):
      # All or none: a round without one of them would spoil the ratios.
      try:
        spent = _look_round(lab, kinds)
      except BenchError as error:
        looks.failures.append(f"dashboard: round {number} of CPU failed: {str(error).splitlines()[0]}")
        say(looks.failures[-1])
        continue
      for place, value in spent.items():
        looks.milliseconds.setdefault(place, []).append(value)
      say(f"dashboard: round {number} of {rounds} of CPU is done")
  return looks


def _look_round(lab: Lab, kinds: Mapping[str, _Kind]) -> dict[tuple[str, str], float]:
  """All conditions at both loads, in random order."""
  runs = [(load, condition) for load in LOADS for condition in kinds for _ in range(_REPEATS[load])]
  means = dict.fromkeys(runs, 0.0)
  for load, condition in random.sample(runs, len(runs)):
    server, looking = kinds[condition]
    with looking():
      means[load, condition] += _spend(server, lab, load) / _REPEATS[load]
  return means


def _spend(server: Server, lab: Lab, load: str) -> float:
  """Milliseconds of CPU a second under a load. Threads that have ended count: dnsdist has one for each connection."""
  seconds = _SECONDS[load]
  before, begin = server.process.cpu_nanoseconds_with_ended(), time.monotonic()
  if load == IDLE:
    time.sleep(seconds)
  else:
    outcome = loads.run(server.port, lab.names, rate=RATE, seconds=seconds)
    if not outcome.is_complete or outcome.answered < 0.95 * RATE * seconds:
      raise BenchError(f"{server.spec.name} answered {outcome.noerror} of {outcome.sent} queries in {seconds:g} s")
  spent = server.process.cpu_nanoseconds_with_ended() - before
  return spent / 1e6 / (time.monotonic() - begin)


@dataclass
class Hits:
  """Ratios of answers from the cache with all pages open to those with none, one for each turn."""

  cpu: list[float] = field(default_factory=list)  # of the thread that answers, for each answer
  latency: list[float] = field(default_factory=list)  # its median


def measure_hits(lab: Lab, rounds: int, seconds: float, say: Callable[[str], None]) -> Hits:
  """Asks for names in the cache with pages open and without, in turns of random order."""
  hits = Hits()
  # Shorter ones would end before a sample is sent.
  seconds = max(INTERVAL, seconds)
  with _started(lab, lambda web: with_dashboard(OURS, web, True)) as (server, web):
    for number in range(1, rounds + 1):
      for _ in range(_TURNS):
        found = {}
        for is_watched in random.sample([True, False], 2):
          with pages(web, MOST) if is_watched else nullcontext():
            found[is_watched] = _answers(server, lab, seconds)
        hits.cpu.append(found[True][0] / found[False][0])
        hits.latency.append(found[True][1] / found[False][1])
      say(f"dashboard: round {number} of {rounds} of hits is done")
  return hits


def _answers(server: Server, lab: Lab, seconds: float) -> tuple[float, float]:
  """CPU of the listener's thread in nanoseconds an answer, and the median latency in seconds."""
  before = server.process.cpu_of_threads(_LISTENER)
  outcome = loads.run(server.port, lab.names, rate=PACED.rate, seconds=seconds)
  spent = server.process.cpu_of_threads(_LISTENER) - before
  if outcome.answered == 0:
    raise BenchError(f"{server.spec.name} answered nothing")
  # dnsperf prints each latency, which is work of its own: not while CPU is read.
  times = loads.latencies(server.port, lab.names, rate=PACED.rate or 0, seconds=seconds)
  return spent / outcome.answered, statistics.median(times)
