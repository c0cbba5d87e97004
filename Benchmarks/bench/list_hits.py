"""list_hits.py -- what a cached answer costs with a list and with classes of clients, against the same server without."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ours
from .figures import Allocations, count_allocations
from .listed import BEFORE, CLASSED, CLASSES, DNSMASQ, LISTED, OURS, SMARTDNS, Surroundings
from .measure import SATURATED, Results, measure, warm
from .servers import Server, Spec, start

#: Runs in a round: what the verdicts rest on is spread over the round, in short runs.
_REPEATS, _PEER_REPEATS = 6, 2


@dataclass
class ListHits:
  """What was measured at saturation."""

  results: Results = field(default_factory=Results)
  allocations: dict[str, Allocations] = field(default_factory=dict)

  def ratios(self, program: str, other: str) -> list[float]:
    """CPU of a hit against that of another server in the same round."""
    return self.results.ratios(program, other, SATURATED)

  def ratio(self, program: str, other: str) -> float:
    """Its median."""
    return statistics.median(self.ratios(program, other))


def measure_hits(around: Surroundings, rounds: int, seconds: float, say: Callable[[str], None]) -> ListHits:
  """Drives all servers with the names in use, in random order in each round."""
  specs: list[Spec] = [around.spec(program, names)
                       for program in (OURS, SMARTDNS, DNSMASQ) for names in (None, around.many)]
  specs.append(ours.with_rules(CLASSED.format(OURS), ours.client_rules(CLASSES)))
  if around.before is not None:
    specs.append(around.spec(BEFORE))
  hits, servers = ListHits(), list[Server]()
  try:
    for spec in specs:
      servers.append(start(spec, around.lab_of(spec)))
      warm(servers[-1], around.lab)
    for number in range(1, rounds + 1):
      runs = [server for server in servers for _ in range(_REPEATS if server.spec.name.startswith(OURS) else _PEER_REPEATS)]
      for server in random.sample(runs, len(runs)):
        hits.results.add(measure(server, SATURATED, around.lab, number, seconds))
      say(f"lists: round {number} of {rounds} of hits is done")
  finally:
    for server in servers:
      server.process.stop()
  for spec in specs:
    if spec.name in (LISTED.format(OURS), CLASSED.format(OURS)):
      # Housekeeping that falls into one count does not fall into another.
      counts = [count_allocations(spec, around.lab, 4 * seconds) for _ in range(2)]
      hits.allocations[spec.name] = min(counts, key=lambda count: count.calls)
  return hits
