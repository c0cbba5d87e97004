"""hot.py -- hot names across the ends of their TTLs: how long clients wait, and what it costs that they do not."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from . import hotnames, ours, peers
from .delay import FarServer
from .lab import Simulator, launch_simulator
from .processes import BenchError, die_with_parent
from .servers import Lab, Server, Spec, start

#: Queries a second that each server gets.
RATE = 300
#: Seconds before the measurement. The names come into use in four fifths of them, which is one TTL: so their ends are
#: spread over the time that is measured.
WARMING = hotnames.TTL * 5 / 4
#: Milliseconds from which on an answer has waited for upstream.
WAITED = hotnames.DELAY / 2


@dataclass
class HotAnswers:
  """What became of the queries to one server."""

  name: str
  note: str
  wrong: int = 0
  lost: int = 0
  milliseconds: list[float] = field(default_factory=list)  # of the right answers

  @property
  def queries(self) -> int:
    """Queries that were measured."""
    return len(self.milliseconds) + self.wrong + self.lost

  @property
  def is_right(self) -> bool:
    """Whether every query got the right answer."""
    return self.queries > 0 and self.wrong == self.lost == 0

  @property
  def waited(self) -> int:
    """Answers that waited for upstream."""
    return sum(time >= WAITED for time in self.milliseconds)

  def quantile(self, part: float) -> float:
    """The latency in milliseconds that this part of the right answers does not exceed."""
    ordered = sorted(self.milliseconds)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


@dataclass(frozen=True)
class Cost:
  """Requests to a provider, and the units that it would have charged, during a run of client queries."""

  answers: HotAnswers
  transfers: int
  units: int

  @property
  def transfers_per_thousand(self) -> float:
    """Transfers for 1,000 client queries."""
    return 1000 * self.transfers / self.answers.queries

  @property
  def units_per_thousand(self) -> float:
    """Billing units for 1,000 client queries."""
    return 1000 * self.units / self.answers.queries


def measure_latency(with_ours: bool, wanted: list[str], lab: Lab, seconds: float) -> list[HotAnswers]:
  """Asks the echo, httpdnsd and its peers at the same time; `wanted` are the names of those that take part."""
  with ExitStack() as stack:
    servers = [_start(peers.ECHO, lab, stack)]
    if with_ours:
      servers.append(_start_ours(ours.HOT, _far_simulator(lab, stack), lab, stack))
    chosen = [spec for spec in peers.HOT if spec.name in wanted]
    if chosen:
      authority = start(peers.HOT_NSD, lab)
      stack.callback(authority.process.stop)
      far = FarServer(authority.port, hotnames.DELAY / 1000)
      stack.callback(far.stop)
      for spec in chosen:
        servers.append(_start(spec, dataclasses.replace(lab, authority_port=far.port), stack))
    return _ask(servers, lab, seconds)


def measure_costs(lab: Lab, seconds: float) -> dict[str, Cost]:
  """Asks httpdnsd in each way of refreshing, all at the same time, each in front of a provider of its own."""
  with ExitStack() as stack:
    providers = [_far_simulator(lab, stack) for _ in ours.WAYS]
    servers = [_start_ours(spec, provider, lab, stack) for spec, provider in zip(ours.WAYS, providers)]
    counts: list[list[tuple[int, int]]] = []

    def count() -> None:
      counts.append([_count(provider) for provider in providers])

    answers = _ask(servers, lab, seconds, count)
    before, after = counts
    return {server.spec.name: Cost(given, end[0] - begin[0], end[1] - begin[1])
            for server, given, begin, end in zip(servers, answers, before, after)}


def _start(spec: Spec, lab: Lab, stack: ExitStack) -> Server:
  server = start(spec, lab)
  stack.callback(server.process.stop)
  return server


def _start_ours(spec: Spec, provider: Simulator, lab: Lab, stack: ExitStack) -> Server:
  return _start(spec, dataclasses.replace(lab, json_url=provider.url), stack)


def _far_simulator(lab: Lab, stack: ExitStack) -> Simulator:
  zone = lab.new_folder("zone") / "hot.zone"
  zone.write_text(hotnames.ZONE)
  simulator = launch_simulator(lab, "--zone", str(zone), "--fault", f"kind=delay&ms={hotnames.DELAY}")
  stack.callback(simulator.server.process.stop)
  return simulator


def _count(provider: Simulator) -> tuple[int, int]:
  """Transfers and billing units so far."""
  url = f"http://127.0.0.1:{provider.server.port}/_simulator/count"
  try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as response:
      counters = json.load(response)
  except (urllib.error.URLError, ValueError) as error:
    raise BenchError(f"the simulator does not tell what it was asked: {error}") from error
  return counters["transfers"], sum(counters["units"].values())


def _ask(servers: list[Server], lab: Lab, seconds: float,
         at_ends: Callable[[], None] | None = None) -> list[HotAnswers]:
  """Runs native/arrivals.c; `at_ends` is called where the time that is measured begins, and where it ends."""
  command = [str(lab.arrivals), str(hotnames.COUNT), str(hotnames.TTL), str(RATE), str(WARMING), str(seconds),
             *(str(server.port) for server in servers)]
  answers = [HotAnswers(server.spec.name, server.spec.note) for server in servers]
  with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent) as child:
    assert child.stdout is not None
    for line in child.stdout:
      words = line.split()
      if len(words) == 1:
        if at_ends is not None:
          at_ends()
        continue
      server = answers[int(words[0])]
      # The echo knows no answers; it shows what the machine and the asking program take.
      if words[1] == "right" or (words[1] == "wrong" and server.name == peers.ECHO.name):
        server.milliseconds.append(int(words[2]) / 1e6)
      elif words[1] == "wrong":
        server.wrong += 1
      else:
        server.lost += 1
  if child.returncode != 0:
    raise BenchError("the program that asks for hot names failed")
  return answers
