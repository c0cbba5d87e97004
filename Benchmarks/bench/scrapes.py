"""scrapes.py -- what `/metrics` costs: CPU of a scrape, and what a scrape a second does to the answers from the cache."""

from __future__ import annotations

import http.client
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ours
from .load import Load, latencies
from .load import run as drive
from .measure import LOADS, PACED, warm
from .processes import BenchError, free_port
from .servers import Lab, Server, start
from .table import Row, table, verdict

#: Seconds from one scrape to the next while queries are answered.
INTERVAL = 1.0
#: Scrapes whose CPU is measured while nothing else goes on.
COUNT = 200


@dataclass
class ScrapeCost:
  """What scrapes cost; the figures of each round, with scrapes against without."""

  milliseconds: float = 0  # CPU of one
  octets: int = 0  # of its page
  cpu: dict[str, list[float]] = field(default_factory=dict)  # ratio of CPU per answer, by load
  p99: list[float] = field(default_factory=list)  # ratio of the 99th percentile of the latency, at the paced load

  @property
  def is_right(self) -> bool:
    """Whether all figures are as they must be."""
    ratios = [*self.cpu.values(), self.p99]
    return self.milliseconds <= 2 and all(statistics.median(values) <= 1.03 for values in ratios)


def measure(lab: Lab, rounds: int, seconds: float, say: Callable[[str], None]) -> ScrapeCost:
  """Measures scrapes alone, then answers with a scrape a second and without, each of both in every round."""
  web = free_port()
  server = start(ours.with_metrics(web), lab)
  try:
    warm(server, lab)
    cost = ScrapeCost(cpu={load.name: [] for load in LOADS})
    cost.octets = _scrape(web)
    before = server.process.cpu_nanoseconds()
    for _ in range(COUNT):
      _scrape(web)
    cost.milliseconds = (server.process.cpu_nanoseconds() - before) / COUNT / 1e6
    for number in range(1, rounds + 1):
      for load in LOADS:
        spent = _both(web, lambda load=load: _cpu(server, load, lab, seconds))
        cost.cpu[load.name].append(spent[True] / spent[False])
      latency = _both(web, lambda: _p99(server, lab, seconds))
      cost.p99.append(latency[True] / latency[False])
      say(f"scrapes: round {number} of {rounds} is done")
    return cost
  finally:
    server.process.stop()


def _both(web: int, measured: Callable[[], float]) -> dict[bool, float]:
  """A figure with scrapes (True) and without, in random order."""
  figures = {}
  for is_scraped in random.sample([True, False], 2):
    if not is_scraped:
      figures[is_scraped] = measured()
      continue
    end = threading.Event()
    scraper = threading.Thread(target=_scrape_until, args=(web, end))
    scraper.start()
    try:
      figures[is_scraped] = measured()
    finally:
      end.set()
      scraper.join()
  return figures


def _scrape_until(web: int, end: threading.Event) -> None:
  due = time.monotonic()
  while not end.is_set():
    _scrape(web)
    due += INTERVAL
    end.wait(max(0, due - time.monotonic()))


def _scrape(web: int) -> int:
  connection = http.client.HTTPConnection("127.0.0.1", web, timeout=10)
  try:
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    page = response.read()
  except OSError as error:
    raise BenchError(f"no answer at /metrics: {error}") from error
  finally:
    connection.close()
  if response.status != 200 or b"httpdnsd_queries_total" not in page:
    raise BenchError(f"/metrics answers {response.status}")
  return len(page)


def _cpu(server: Server, load: Load, lab: Lab, seconds: float) -> float:
  before = server.process.cpu_nanoseconds()
  outcome = drive(server.port, lab.names, rate=load.rate, seconds=seconds)
  return (server.process.cpu_nanoseconds() - before) / max(1, outcome.answered)


def _p99(server: Server, lab: Lab, seconds: float) -> float:
  """The 99th percentile of the latency in seconds."""
  times = latencies(server.port, lab.names, rate=PACED.rate or 0, seconds=seconds)
  return times[int(len(times) * 0.99)]


def scrape_row(cost: ScrapeCost | None) -> Row:
  """The requirement."""
  figure = "a `/metrics` scrape every second at full load: CPU of a scrape; p99 and CPU of cached answers against none"
  limit = "≤ 2 ms; within 3 %"
  if cost is None:
    return Row(figure, limit)
  cpu = ", ".join(f"{statistics.median(values):.2f} {name}" for name, values in cost.cpu.items())
  text = f"{cost.milliseconds:.2f} ms; p99 {statistics.median(cost.p99):.2f}, CPU {cpu}"
  return Row(figure, limit, text, verdict(cost.is_right))


def scrape_part(cost: ScrapeCost | None) -> list[str]:
  """The table behind it, with its title."""
  if cost is None:
    return []
  rows = [[f"CPU per answer, {name}", *_spread(values)] for name, values in cost.cpu.items()]
  rows.append([f"p99 of the latency, {PACED.name}", *_spread(cost.p99)])
  return [f"## A scrape of {cost.octets:,} octets every {INTERVAL:g} s, ratio to none in the same round",
          table(["figure", "median", "lowest", "highest"], rows)]


def _spread(values: list[float]) -> list[str]:
  return [f"{value:.3f}" for value in (statistics.median(values), min(values), max(values))]
