"""main.py -- the command line of the benchmark, and the order in which things are measured."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from . import dashboard, encrypted, figures, flushing, hot, lists, manynames, misses, ours, peers, programs, scrapes
from .encrypted_lab import DNSDIST, OURS, UNBOUND
from .lab import open_lab, start_doh, start_simulator
from .measure import run_rounds, warm
from .processes import BenchError
from .report import Findings, compose
from .servers import FIRST_NAME, LOCAL_NAME, Lab, Role, Server, Spec, start

_ROOT = Path(__file__).resolve().parent.parent.parent
_EVERYTHING = [*peers.ALL[:2], *ours.ALL, *peers.ALL[2:]]
_NAMES = [spec.name for spec in _EVERYTHING]
#: What can be measured without the rest: CPU and allocations per answer; httpdnsd's own latency, memory, start and
#: idling; misses beside https_dns_proxy; a million names; hot names; the programs that measure parts of it; flushes;
#: scrapes of its metrics; lists of names, sets and clients; DNS over TLS and HTTPS; its dashboard.
_PARTS = ["rounds", "alone", "misses", "many", "hot", "programs", "flush", "metrics", "lists", "encrypted", "dashboard"]


def _say(text: str) -> None:
  print(text, file=sys.stderr, flush=True)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
  """The command line."""
  parser = argparse.ArgumentParser(prog="Benchmarks/run", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--refresh-bench", type=Path, default=_ROOT / ".build/release/refresh-bench")
  parser.add_argument("--cache-bench", type=Path, default=_ROOT / ".build/release/cache-bench")
  parser.add_argument("--before", type=Path, metavar="PROGRAM",
                      help="another httpdnsd, of before a change: the parts lists, encrypted and dashboard compare with it what is "
                      "not configured")
  parser.add_argument("--only", default="", metavar="NAMES",
                      help="servers to measure, separated by commas; 'httpdnsd' is all of its set-ups. Known: "
                      + "; ".join(_NAMES))
  parser.add_argument("--parts", default=",".join(_PARTS), help="what to measure, separated by commas; default all: "
                      + ", ".join(_PARTS))
  parser.add_argument("--rounds", type=int, default=None, help="default 7, with --quick 3")
  parser.add_argument("--seconds", type=float, default=None, help="of each run; default 2, with --quick 1")
  parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter waits; the report says so")
  parser.add_argument("--output", type=Path, default=_ROOT / "Benchmarks/results/latest.md",
                      help="the report; every sample goes to a JSON file beside it")
  return parser.parse_args(arguments)


def split_names(text: str, known: list[str]) -> list[str]:
  """The names in a list that is separated by commas, where a name may hold commas itself.

  The longest name that is known comes first. What is not known ends at the next comma, and is returned too.
  """
  pieces = [piece.strip() for piece in text.split(",")]
  names = []
  while pieces:
    lengths = (length for length in range(len(pieces), 0, -1) if ", ".join(pieces[:length]) in known)
    length = next(lengths, 1)
    names.append(", ".join(pieces[:length]))
    pieces = pieces[length:]
  return [name for name in names if name]


def _wanted(option: str, text: str, known: list[str]) -> list[str]:
  wanted = split_names(text, known)
  unknown = [name for name in wanted if name not in known]
  if unknown:
    raise BenchError(f"{option}: {'; '.join(unknown)} is not known; known are {'; '.join(known)}")
  return wanted


def _chosen(notes: list[str], options: argparse.Namespace) -> list[Spec]:
  """The servers to measure: those asked for whose program is there, and the floor in any case."""
  wanted = _wanted("--only", options.only, _NAMES)
  specs = [spec for spec in _EVERYTHING
           if spec is peers.ECHO or not wanted or spec.name in wanted
           or (spec.name.startswith("httpdnsd") and "httpdnsd" in wanted)]
  missing = [path.name for path in (options.httpdnsd, options.simulator) if not path.exists()]
  if missing and any(spec.role in (Role.OURS, Role.MISS) for spec in specs):
    notes.append(f"{' and '.join(missing)} not built: httpdnsd is not measured.")
    specs = [spec for spec in specs if spec.role not in (Role.OURS, Role.MISS)]
  return specs


def _attempt(findings: Findings, what: str, action: Callable[[], None]) -> None:
  """Runs one part; its failure becomes a note and the other parts go on."""
  _say(what)
  try:
    action()
  except BenchError as error:
    _say(f"{what} failed: {error}")
    findings.notes.append(f"{what} failed: {str(error).splitlines()[0]}")


def _start_all(specs: list[Spec], lab: Lab, findings: Findings) -> list[Server]:
  servers: list[Server] = []

  def start_one(spec: Spec) -> None:
    server = start(spec, lab)
    if spec.backend:
      warm(server, lab)
    servers.append(server)

  for spec in specs:
    _attempt(findings, f"starting {spec.name}", lambda spec=spec: start_one(spec))
  if not any(server.spec is peers.ECHO for server in servers):
    raise BenchError("without the echo there is nothing to compare with")
  return servers


def _measure_ours(lab: Lab, findings: Findings, options: argparse.Namespace) -> None:
  """The figures that concern httpdnsd alone."""
  rounds, pairs = (3, 200) if options.quick else (7, 1000)

  def latency(name: str, spec: Spec, is_json: bool, url: str) -> Callable[[], None]:
    def action() -> None:
      findings.latency[name] = figures.measure_latency(spec, lab, is_json, url, rounds, pairs)
    return action

  def starts(name: str) -> Callable[[], None]:
    def action() -> None:
      findings.starts[name] = figures.time_starts(ours.CACHED, lab, name, findings.start_count)
    return action

  def after_https() -> None:
    findings.after_https = figures.resident_after_https(lab)

  def full_cache() -> None:
    findings.full_cache = figures.resident_with_full_cache(lab)

  def idle() -> None:
    findings.idle_switches = figures.count_idle_switches(lab, findings.idle_seconds)

  _attempt(findings, "latency over RFC 8484", latency("over RFC 8484", ours.MISS_DOH, False, lab.doh_url))
  _attempt(findings, "latency over JSON", latency("over JSON", ours.MISS_JSON, True, lab.json_url))
  _attempt(findings, "time to the first answer, local name", starts(LOCAL_NAME))
  _attempt(findings, "time to the first answer, provider's name", starts(FIRST_NAME))
  _attempt(findings, f"memory with {figures.MANY_NAMES:,} names", full_cache)
  _attempt(findings, "memory 5 s after the first HTTPS answer", after_https)
  _attempt(findings, f"idling for {findings.idle_seconds:.0f} s", idle)


def _measure_rounds(lab: Lab, findings: Findings) -> None:
  """CPU and allocations per answer."""
  servers = _start_all(findings.specs, lab, findings)
  findings.results = run_rounds(servers, lab, findings.rounds, findings.seconds, _say)
  findings.notes += [f"{name} failed in a round: {reason}" for name, reason in findings.results.failures.items()]
  for server in servers:
    server.process.stop()

  def count(spec: Spec) -> None:
    findings.allocations[spec.name] = figures.count_allocations(spec, lab, findings.seconds)

  for spec in findings.specs:
    if spec.role is Role.PEER or spec is ours.CACHED:
      _attempt(findings, f"counting allocations of {spec.name}", lambda spec=spec: count(spec))


def _measure_hot(lab: Lab, findings: Findings, has_ours: bool) -> None:
  """Hot names across the ends of their TTLs, and what refreshing costs."""

  def latency() -> None:
    names = [spec.name for spec in findings.specs]
    findings.hot = hot.measure_latency(has_ours, names, lab, findings.hot_seconds)

  def costs() -> None:
    findings.costs = hot.measure_costs(lab, findings.cost_seconds)

  if has_ours or any(spec.name == peer.name for spec in findings.specs for peer in peers.HOT):
    _attempt(findings, f"hot names for {findings.hot_seconds:.0f} s", latency)
  if has_ours:
    _attempt(findings, f"ways of refreshing for {findings.cost_seconds:.0f} s", costs)


def _measure_programs(lab: Lab, findings: Findings, options: argparse.Namespace) -> None:
  """What refreshing and the cache's file cost, without the rest of httpdnsd."""

  def scheduler() -> None:
    findings.scheduler = programs.measure_scheduler(options.refresh_bench)

  def cache_file() -> None:
    findings.cache_file = programs.measure_cache_file(options.cache_bench, 3 if options.quick else 10, lab.folder)

  _attempt(findings, "scheduling", scheduler)
  _attempt(findings, "the cache's file", cache_file)


def _measure_flushes(lab: Lab, findings: Findings) -> None:
  """What a flush takes."""

  def flush() -> None:
    findings.flushes = flushing.measure(lab, findings.rounds, _say)

  _attempt(findings, "flush", flush)


def _measure_scrapes(lab: Lab, findings: Findings) -> None:
  """What scrapes cost."""

  def scrape() -> None:
    findings.scrapes = scrapes.measure(lab, findings.rounds, max(findings.seconds, 2 * scrapes.INTERVAL), _say)

  _attempt(findings, "scrapes", scrape)


def _measure_misses(lab: Lab, findings: Findings) -> None:
  """What an answer costs that a provider has to give."""

  def miss() -> None:
    findings.misses = misses.measure(lab, findings.rounds, 2 * findings.seconds, _say)

  _attempt(findings, "misses", miss)


def _measure_many_names(lab: Lab, findings: Findings) -> None:
  """What a cached answer costs among a million."""

  def many() -> None:
    findings.many = manynames.measure(lab, findings.rounds, findings.seconds, _say)

  _attempt(findings, "many names", many)


def _measure_lists(lab: Lab, findings: Findings, before: Path | None) -> None:
  """What lists of names, sets and clients cost."""

  def measure_all() -> None:
    findings.lists = lists.measure(lab, before, findings.rounds, findings.seconds, _say)
    findings.notes += findings.lists.failures

  _attempt(findings, "lists", measure_all)


def _measure_encrypted(lab: Lab, findings: Findings, before: Path | None) -> None:
  """What DNS over TLS and HTTPS costs."""
  measured = {spec.name for spec in findings.specs}
  programs = [name for name in (OURS, UNBOUND, DNSDIST) if name in measured]

  def measure_all() -> None:
    findings.encrypted = encrypted.measure(lab, programs, before, findings.rounds, findings.seconds, _say)
    findings.notes += findings.encrypted.failures + findings.encrypted.hits.failures

  _attempt(findings, "encrypted", measure_all)


def _measure_dashboard(lab: Lab, findings: Findings, before: Path | None) -> None:
  """What the dashboard costs."""
  has_dnsdist = any(spec.name == DNSDIST for spec in findings.specs)

  def measure_all() -> None:
    findings.dashboard = dashboard.measure(lab, has_dnsdist, before, findings.rounds, findings.seconds, findings.is_quick, _say)
    findings.notes += findings.dashboard.failures

  _attempt(findings, "dashboard", measure_all)


def _measure(lab: Lab, findings: Findings, options: argparse.Namespace) -> None:
  parts = findings.parts
  has_ours = any(spec.role in (Role.OURS, Role.MISS) for spec in findings.specs)
  if has_ours and {"rounds", "alone", "metrics"} & set(parts):
    start_doh(lab)
    start_simulator(lab)
  if "rounds" in parts:
    _measure_rounds(lab, findings)
  if "alone" in parts and has_ours:
    _measure_ours(lab, findings, options)
  if "misses" in parts and has_ours:
    _measure_misses(lab, findings)
  if "many" in parts and has_ours:
    _measure_many_names(lab, findings)
  if "hot" in parts:
    _measure_hot(lab, findings, has_ours)
  if "programs" in parts and has_ours:
    _measure_programs(lab, findings, options)
  if "flush" in parts and has_ours:
    _measure_flushes(lab, findings)
  if "metrics" in parts and has_ours:
    _measure_scrapes(lab, findings)
  if "lists" in parts and has_ours:
    _measure_lists(lab, findings, options.before and options.before.resolve())
  if "encrypted" in parts:
    _measure_encrypted(lab, findings, options.before and options.before.resolve())
  if "dashboard" in parts and has_ours:
    _measure_dashboard(lab, findings, options.before and options.before.resolve())


def _end_on_signal(number: int, _frame: object) -> None:
  sys.exit(128 + number)


def main() -> int:
  """Measures, prints the report and writes it; returns the exit status. A missed figure is no failure."""
  options = parse_arguments(sys.argv[1:])
  for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, _end_on_signal)
  findings = Findings(
    is_quick=options.quick,
    parts=[],
    rounds=options.rounds or (3 if options.quick else 7),
    seconds=options.seconds or (1.0 if options.quick else 2.0),
    idle_seconds=10 if options.quick else 60,
    start_count=5 if options.quick else 11,
    hot_seconds=24 if options.quick else 60,
    cost_seconds=24 if options.quick else 120)
  busy = os.getloadavg()[0]
  if busy > 0.25 * (os.cpu_count() or 1):
    findings.notes.append(f"The machine was busy with other work when the run began (load average {busy:.1f}): the "
                          "figures are rough.")
  try:
    findings.parts = _wanted("--parts", options.parts, _PARTS)
    findings.specs = _chosen(findings.notes, options)
    with open_lab(options.httpdnsd.resolve(), options.simulator.resolve()) as lab:
      _measure(lab, findings, options)
  except BenchError as error:
    _say(f"run: {error}")
    return 1
  except KeyboardInterrupt:
    _say("run: interrupted")
    return 130
  report = compose(findings)
  print(report)
  options.output.parent.mkdir(parents=True, exist_ok=True)
  options.output.write_text(report)
  options.output.with_suffix(".json").write_text(json.dumps(findings.results.as_json(), indent=1))
  return 0
