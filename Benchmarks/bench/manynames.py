"""manynames.py -- what a cached answer costs among a million, and how much memory it takes."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import ours, peers
from .load import run as drive
from .processes import BenchError
from .servers import Lab, Server, start
from .table import Row, verdict

FEW, MANY = 10_000, 1_000_000
#: Names that are asked for in one go, so that no pass takes longer than a pass may.
_PART = 100_000
_CACHE = 'min_ttl = "24h"\nmax_ttl = "24h"\nmax_entries = 1100000\nmax_bytes = "512MiB"'
#: Seconds after which the daemon has returned the memory of its start.
_SETTLING = 5


@dataclass
class ManyNames:
  """What was measured."""

  ratio: float  # CPU of a hit among many, by that among few
  octets: float  # of memory for each name
  held: float  # the share of names that are answered from the cache


def measure(lab: Lab, rounds: int, seconds: float, say: Callable[[str], None]) -> ManyNames:
  """Fills two caches and asks them in turn, in an order without order."""
  if os.geteuid() != 0:
    raise BenchError("only root may listen at port 443, where the names come from")
  provider = start(peers.dnsdist_for_misses(), lab)
  url = f"https://{peers.DOH_ADDRESS}/dns-query"
  servers: dict[int, Server] = {}
  try:
    files: dict[int, Path] = {}
    grown = 0.0
    for count in (FEW, MANY):
      spec = ours.fresh_names(f"httpdnsd, {count:,} names", url, str(lab.certificate), is_json=False, cache=_CACHE)
      server = servers[count] = start(spec, lab)
      time.sleep(_SETTLING)
      before = server.process.resident_octets()
      names = random.sample(range(count), count)
      for first in range(0, count, _PART):
        part = _write(lab, f"part-{count}", names[first:first + _PART])
        if not drive(server.port, part).is_complete:
          raise BenchError("a name was not answered")
      grown = server.process.resident_octets() - before
      files[count] = _write(lab, f"names-{count}", random.sample(names, count))
      say(f"many names: {count:,} are cached")
    provider.process.stop()
    costs: dict[int, list[float]] = {FEW: [], MANY: []}
    asked = answered = 0
    for number in range(1, rounds + 1):
      for count in random.sample((FEW, MANY), 2):
        spent = servers[count].process.cpu_nanoseconds()
        outcome = drive(servers[count].port, files[count], seconds=seconds)
        costs[count].append((servers[count].process.cpu_nanoseconds() - spent) / max(1, outcome.answered))
        asked, answered = asked + outcome.sent, answered + outcome.noerror
      say(f"many names: round {number} of {rounds} is done")
    ratio = statistics.median(many / few for many, few in zip(costs[MANY], costs[FEW]))
    return ManyNames(ratio, grown / MANY, answered / max(1, asked))
  finally:
    for server in [*servers.values(), provider]:
      server.process.stop()


def _write(lab: Lab, name: str, numbers: list[int]) -> Path:
  path = lab.folder / name
  path.write_text("".join(f"n{number}.d{number % 1000}.example A\n" for number in numbers))
  return path


def many_row(many: ManyNames | None) -> Row:
  """The requirement."""
  figure = f"{MANY:,} cached names: CPU of a hit against {FEW:,} / memory of each"
  limit = "≤ 1.2 / ≤ 240 octets"
  if many is None:
    return Row(figure, limit)
  measured = f"{many.ratio:.2f} / {many.octets:.0f} octets"
  if many.held < 1:
    measured += f", with only {many.held:.1%} answered from the cache"
  # VmRSS differs by some pages from run to run: less than half an octet for each name.
  is_met = many.ratio <= 1.2 and round(many.octets) <= 240 and many.held == 1
  return Row(figure, limit, measured, verdict(is_met))
