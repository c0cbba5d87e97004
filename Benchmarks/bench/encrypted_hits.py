"""encrypted_hits.py -- CPU of a cached answer over TLS, HTTPS and TCP, and over UDP with a limit on queries."""

from __future__ import annotations

import statistics
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from . import h2load, ours
from . import load as loads
from .encrypted_lab import BEFORE, OURS, Listeners, Surroundings
from .figures import Allocations, count_allocations, counted
from .load import Load, Outcome, Transport
from .measure import SATURATED, Results, measure, warm
from .processes import BenchError
from .servers import Server, start

#: Queries a second that every server answers over TLS.
PACED = Load("paced", 10_000)
LOADS = (PACED, SATURATED)
#: httpdnsd with a limit that no client reaches.
LIMITED = "httpdnsd, rate_limit"
_HIGH_LIMIT = 1_000_000
#: Runs in a round on port 53, which are short, so that a disturbance meets all alike. Over TLS each run begins with
#: handshakes, which must stay a small part of it.
_PLAIN_REPEATS = 3

Drive = Callable[..., Outcome]
#: How each protocol is asked.
DRIVES: dict[str, Drive] = {"dot": partial(loads.run, transport=Transport("dot")), "doh": h2load.run}
_TCP = partial(loads.run, transport=Transport("tcp"))


@dataclass
class EncryptedHits:
  """What was measured."""

  results: dict[str, Results] = field(default_factory=dict)  # by protocol: "dot", "doh", "tcp", "udp"
  allocations: dict[str, Allocations] = field(default_factory=dict)  # of ours, by protocol
  failures: list[str] = field(default_factory=list)

  def ratios(self, protocol: str, program: str, other: str, load: Load) -> list[float]:
    """CPU of a hit against that of another server in the same round."""
    return self.results[protocol].ratios(program, other, load) if protocol in self.results else []

  def ratio(self, protocol: str, program: str, other: str, load: Load) -> float | None:
    """Its median."""
    ratios = self.ratios(protocol, program, other, load)
    return statistics.median(ratios) if ratios else None


@dataclass(frozen=True)
class _Run:
  protocol: str
  server: Server
  load: Load
  drive: Drive


def measure_encrypted(hits: EncryptedHits, around: Surroundings, rounds: int, seconds: float,
                      say: Callable[[str], None]) -> None:
  """DNS over TLS and HTTPS, all servers in random order in each round."""
  with around.started(around.programs) as servers:
    for listeners in servers:
      warm(listeners.server, around.lab)
    runs = [_Run(protocol, listeners.at(listeners.port(protocol)), load, drive)
            for listeners in servers for protocol, drive in DRIVES.items() for load in LOADS]
    _run_rounds(hits, runs, around, rounds, seconds, say)
  if around.has_ours:
    for protocol in DRIVES:
      # Housekeeping that falls into one count does not fall into another.
      counts = [_count_allocations(around, protocol, seconds) for _ in range(2)]
      hits.allocations[protocol] = min(counts, key=lambda count: count.calls)


def measure_plain(hits: EncryptedHits, around: Surroundings, rounds: int, seconds: float,
                  say: Callable[[str], None]) -> None:
  """Port 53 without encrypted listeners: TCP beside the program of before, UDP with a limit beside without."""
  servers: list[Server] = []
  limited = ours.with_rate_limit(LIMITED, _HIGH_LIMIT)
  try:
    for spec in (ours.with_rate_limit(OURS, 0), limited, *([] if around.before is None else [ours.with_rate_limit(BEFORE, 0)])):
      servers.append(start(spec, around.lab_of(spec.name)))
      warm(servers[-1], around.lab)
    runs = [_Run("udp", server, load, loads.run) for server in servers if server.spec.name != BEFORE for load in LOADS]
    if around.before is not None:
      runs += [_Run("tcp", server, load, _TCP) for server in servers if server.spec.name != LIMITED for load in LOADS]
    _run_rounds(hits, runs * _PLAIN_REPEATS, around, rounds, seconds / _PLAIN_REPEATS, say)
  finally:
    for server in servers:
      server.process.stop()
  counts = [count_allocations(limited, around.lab, seconds) for _ in range(2)]
  hits.allocations["udp"] = min(counts, key=lambda count: count.calls)


def _run_rounds(hits: EncryptedHits, runs: list[_Run], around: Surroundings, rounds: int, seconds: float,
                say: Callable[[str], None]) -> None:
  """All runs in random order in each round; a server that fails over a protocol takes no further part over that."""
  for number in range(1, rounds + 1):
    for run in random.sample(runs, len(runs)):
      results = hits.results.setdefault(run.protocol, Results())
      name = run.server.spec.name
      if name in results.failures:
        continue
      try:
        results.add(measure(run.server, run.load, around.lab, number, seconds, run.drive))
      except BenchError as error:
        results.failures[name] = str(error).splitlines()[0]
        hits.failures.append(f"encrypted: {name} failed over {run.protocol}: {results.failures[name]}")
        say(f"encrypted: {name} failed over {run.protocol}: {error}")
    say(f"encrypted: round {number} of {rounds} of hits over {', '.join(dict.fromkeys(run.protocol for run in runs))} is done")


def _count_allocations(around: Surroundings, protocol: str, seconds: float) -> Allocations:
  """Counts while connections that were made before are in use."""
  spec, dot, doh = around.spec(OURS)
  with counted(spec, around.lab, without="libssl,libcrypto,libnghttp2") as (server, allocations):
    warm(server, around.lab)
    port = Listeners(server, dot, doh).port(protocol)
    outcomes: list[Outcome] = []

    def drive() -> None:
      outcomes.append(DRIVES[protocol](port, around.lab.names, rate=PACED.rate, seconds=seconds + 2))

    driver = threading.Thread(target=drive)
    driver.start()
    time.sleep(1)
    before = allocations()
    time.sleep(seconds)
    calls = allocations() - before
    driver.join()
  if not outcomes or outcomes[0].answered == 0:
    raise BenchError(f"no answers over {protocol} while allocations were counted")
  return Allocations(calls, int(outcomes[0].rate * seconds))
