"""misses.py -- what an answer costs that a provider has to give, beside https_dns_proxy, with cache and refreshing on."""

from __future__ import annotations

import itertools
import os
import random
import socket
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import ours, peers
from .dns import compose_query
from .figures import counted
from .lab import launch_http2, launch_simulator
from .load import run as drive
from .processes import BenchError
from .servers import Lab, Server, Spec, start
from .table import NOT_MEASURED, Row, table, verdict

#: The number of domains that the names belong to.
_DOMAINS = 1_000
#: Names for a second of load, more than any server asks for.
_NAMES_A_SECOND = 60_000
#: Misses a second that every provider here reaches.
_PACE = 5_000
#: Questions one after the other in each round.
_ALONE = 200
#: Misses before allocations are counted, and while they are.
_WARM_UP, _COUNTED = 2_000, 3_000
#: Limits that count each question and stop none.
_HIGH_LIMIT = 1_000_000
#: Half of the calls for a miss when libcurl carried HTTP/2.
_MOST_CALLS = 65
_numbers = itertools.count(10_000)

DOH, JSON, LIMITED, PEER = "httpdnsd, DoH", "httpdnsd, JSON", "httpdnsd, DoH, limits counted", "https_dns_proxy"
#: Second processes of the two that differ by the limits only: two equal ones differ by more than the limits cost.
AGAIN = {name: f"{name}, second process" for name in (DOH, LIMITED)}
UNBOUND = "unbound, upstream over UDP"
#: A cached name that is asked for beside the misses, and the pause after each answer in seconds.
_HIT_NAME, _HIT_PAUSE = "hit.d0.example", 0.001


@dataclass
class Misses:
  """The figures of each round, by server."""

  cpu: dict[str, list[float]] = field(default_factory=dict)  # microseconds of CPU for a miss
  rate: dict[str, list[float]] = field(default_factory=dict)  # misses a second at saturation
  alone: dict[str, list[float]] = field(default_factory=dict)  # median milliseconds, one question at a time
  paced: dict[str, list[float]] = field(default_factory=dict)  # microseconds of CPU for a miss at the same rate
  hits: dict[str, list[float]] = field(default_factory=dict)  # 99th percentile of a hit beside them, milliseconds
  allocations: float | None = None  # of httpdnsd, for a miss
  lost: dict[str, int] = field(default_factory=dict)  # questions without a NOERROR answer


def measure(lab: Lab, rounds: int, seconds: float, say: Callable[[str], None]) -> Misses:
  """Drives all servers with names that none has seen, one at a time, in random order in each round."""
  if os.geteuid() != 0:
    raise BenchError("only root may listen at port 443, which https_dns_proxy needs")
  doh = start(peers.dnsdist_for_misses(), lab)
  simulator = launch_simulator(lab)
  proxy, json_url = launch_http2(lab, simulator)
  url = f"https://{peers.DOH_ADDRESS}/dns-query"
  specs = [
    ours.fresh_names(DOH, url, str(lab.certificate), is_json=False),
    ours.fresh_names(JSON, json_url, str(lab.certificate), is_json=True),
    ours.fresh_names(LIMITED, url, str(lab.certificate), is_json=False, limit=_HIGH_LIMIT),
    ours.fresh_names(AGAIN[DOH], url, str(lab.certificate), is_json=False),
    ours.fresh_names(AGAIN[LIMITED], url, str(lab.certificate), is_json=False, limit=_HIGH_LIMIT),
  ]
  specs.append(peers.unbound_for_misses(doh.port))
  path = os.environ.get("HTTPS_DNS_PROXY", "")
  if path:
    specs.append(peers.https_dns_proxy(path, doh.port))
  else:
    say("misses: HTTPS_DNS_PROXY names no program, so there is no comparison")
  misses = Misses(allocations=_count_allocations(specs[0], lab))
  servers = [start(spec, lab) for spec in specs]
  try:
    for number in range(1, rounds + 1):
      for server in random.sample(servers, len(servers)):
        _saturate(misses, server, lab, seconds)
        if server.spec.name in (DOH, JSON):
          _pace(misses, server, lab, seconds)
        if server.spec.name in (DOH, UNBOUND):
          _hit_beside(misses, server, lab, seconds)
      _ask_alone(misses, servers)
      say(f"misses: round {number} of {rounds} is done")
    return misses
  finally:
    for server in [*servers, proxy, simulator.server, doh]:
      server.process.stop()


def _names(count: int, is_json: bool) -> list[str]:
  """Names that no client has asked for. The simulator computes those of one domain."""
  numbers = list(itertools.islice(_numbers, count))
  return [f"n{number}.bench.example" if is_json else f"n{number}.d{number % _DOMAINS}.example" for number in numbers]


def _write_names(lab: Lab, count: int, is_json: bool) -> Path:
  path = lab.folder / "fresh-names"
  path.write_text("".join(f"{fresh} A\n" for fresh in _names(count, is_json)))
  return path


def _count_allocations(spec: Spec, lab: Lab) -> float:
  """Calls for each miss, with as many questions in flight as at saturation."""
  with counted(spec, lab) as (server, allocations):
    drive(server.port, _write_names(lab, _WARM_UP, is_json=False))
    before = allocations()
    outcome = drive(server.port, _write_names(lab, _COUNTED, is_json=False))
    return (allocations() - before) / max(1, outcome.answered)


def _saturate(misses: Misses, server: Server, lab: Lab, seconds: float) -> None:
  name = server.spec.name
  names = _write_names(lab, int(seconds * _NAMES_A_SECOND), name == JSON)
  before = server.process.cpu_nanoseconds()
  outcome = drive(server.port, names, seconds=seconds)
  spent = server.process.cpu_nanoseconds() - before
  misses.cpu.setdefault(name, []).append(spent / max(1, outcome.answered) / 1e3)
  misses.rate.setdefault(name, []).append(outcome.rate)
  misses.lost[name] = misses.lost.get(name, 0) + outcome.sent - outcome.noerror


def _pace(misses: Misses, server: Server, lab: Lab, seconds: float) -> None:
  """The providers' own speeds differ: at a rate that both reach, as many answers come at once."""
  name = server.spec.name
  names = _write_names(lab, int(seconds * _PACE) + 1, name == JSON)
  before = server.process.cpu_nanoseconds()
  outcome = drive(server.port, names, seconds=seconds, rate=_PACE)
  spent = server.process.cpu_nanoseconds() - before
  misses.paced.setdefault(name, []).append(spent / max(1, outcome.answered) / 1e3)


def _hit_beside(misses: Misses, server: Server, lab: Lab, seconds: float) -> None:
  """Asks for a cached name while the server is saturated with others."""
  names = _write_names(lab, int(seconds * _NAMES_A_SECOND), is_json=False)
  hits = _Hits(server.port)
  drive(server.port, names, seconds=seconds)
  misses.hits.setdefault(server.spec.name, []).append(hits.end())


class _Hits:
  """Asks for a cached name, one question after the other, until `end`."""

  def __init__(self, port: int) -> None:
    self._port = port
    self._times: list[float] = []
    self._is_ending = threading.Event()
    self._thread = threading.Thread(target=self._ask)
    self._thread.start()

  def _ask(self) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
      client.settimeout(5)
      client.connect(("127.0.0.1", self._port))
      for number in itertools.count():
        begin = time.perf_counter()
        client.send(compose_query(_HIT_NAME, number % 65_536))
        client.recv(4096)
        self._times.append(time.perf_counter() - begin)
        if self._is_ending.wait(_HIT_PAUSE):
          return

  def end(self) -> float:
    """The 99th percentile in milliseconds; the first question may have been a miss and does not count."""
    self._is_ending.set()
    self._thread.join()
    return 1e3 * statistics.quantiles(self._times[1:], n=100)[98]


def _ask_alone(misses: Misses, servers: list[Server]) -> None:
  """One question at a time, of the servers in turn."""
  names = {server.spec.name: _names(_ALONE, server.spec.name == JSON) for server in servers}
  times: dict[str, list[float]] = {server.spec.name: [] for server in servers}
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(5)
    for number in range(_ALONE):
      for server in random.sample(servers, len(servers)):
        query = compose_query(names[server.spec.name][number], number)
        begin = time.perf_counter()
        client.sendto(query, ("127.0.0.1", server.port))
        client.recv(4096)
        times[server.spec.name].append(time.perf_counter() - begin)
  for name, values in times.items():
    misses.alone.setdefault(name, []).append(1e3 * statistics.median(values))


def _ratio(figures: dict[str, list[float]], name: str, other: str) -> float | None:
  """The median over the rounds of the ratio of two servers."""
  if name not in figures or other not in figures:
    return None
  return statistics.median(mine / theirs for mine, theirs in zip(figures[name], figures[other]))


def miss_rows(misses: Misses | None) -> list[Row]:
  """The requirements."""
  misses = misses or Misses()
  both = {name: [one + two for one, two in zip(misses.cpu.get(name, []), misses.cpu.get(again, []))]
          for name, again in AGAIN.items() if again in misses.cpu}
  requirements = [
    ("CPU of a DoH miss, cache and refreshing on, ratio to https_dns_proxy's", misses.cpu, DOH, PEER, 1.0, False),
    ("misses a second at saturation, ratio to https_dns_proxy's", misses.rate, DOH, PEER, 1.0, True),
    ("median latency of a miss that is alone, ratio to https_dns_proxy's", misses.alone, DOH, PEER, 1.0, False),
    ("CPU of a JSON miss over HTTPS (HTTP/2), ratio to our DoH miss at the same rate", misses.paced, JSON, DOH, 1.1, False),
    ("CPU of a DoH miss with limits counted, ratio to one without", both, LIMITED, DOH, 1.02, False),
    ("p99 of hits beside saturated misses, ratio to unbound's", misses.hits, DOH, UNBOUND, 1.0, False),
  ]
  calls = misses.allocations
  rows = [Row("`malloc` calls for a DoH miss, the libraries' included", f"≤ {_MOST_CALLS}",
              *([] if calls is None else [f"{calls:.1f}", verdict(calls <= _MOST_CALLS)]))]
  for figure, values, name, other, bound, is_least in requirements:
    limit = f"{'≥' if is_least else '≤'} {bound:g}"
    ratio = _ratio(values, name, other)
    if ratio is None:
      rows.append(Row(figure, limit))
      continue
    is_met = (ratio >= bound if is_least else ratio <= bound) and misses.lost.get(name, 0) == 0
    rows.append(Row(figure, limit, f"{ratio:.2f}", verdict(is_met)))
  return rows


def miss_part(misses: Misses | None) -> list[str]:
  """The table behind them, with its title."""
  if misses is None:
    return []

  def median(values: dict[str, list[float]], name: str, form: str) -> str:
    return format(statistics.median(values[name]), form) if name in values else NOT_MEASURED

  rows = [[name, median(misses.cpu, name, ".1f"), median(misses.rate, name, ",.0f"), median(misses.alone, name, ".3f"),
           median(misses.paced, name, ".1f"), median(misses.hits, name, ".3f"), str(misses.lost[name])] for name in misses.cpu]
  return ["## Misses of new names, cache and refreshing on",
          table(["server", "µs of CPU", "misses/s", "ms, one at a time", "µs of CPU at 5,000/s", "ms, p99 of hits beside", "lost"], rows)]
