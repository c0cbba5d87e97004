"""report.py -- turns what was measured into Markdown: the requirements with a verdict each, then all servers."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from . import ours
from .dashboard import DashboardCosts
from .encrypted import EncryptedCosts
from .figures import MANY_NAMES, Allocations, FullCache, Latency
from .flushing import FlushCost, flush_row
from .hot import Cost, HotAnswers
from .lists import ListCosts
from .load import OUTSTANDING
from .machine import describe_machine, package_version
from .measure import LOADS, PACED, SATURATED, Load, Results
from .manynames import ManyNames, many_row
from .misses import Misses, miss_part, miss_rows
from .peers import ALL as PEERS
from .peers import ECHO, ZONE_NAMES
from .programs import CacheFileCost, SchedulerCost
from .report_dashboard import dashboard_parts, dashboard_rows
from .report_encrypted import encrypted_parts, encrypted_rows
from .report_fresh import fresh_parts, fresh_rows
from .report_lists import list_parts, list_rows
from .scrapes import ScrapeCost, scrape_part, scrape_row
from .servers import Role, Spec
from .table import NOT_MEASURED, Row, table, verdict

#: Calls that housekeeping may make while the answers are counted; one an answer would be thousands.
HOUSEKEEPING_CALLS = 20


@dataclass
class Findings:
  """Everything that a run has found; what is None was not measured."""

  is_quick: bool
  parts: list[str]
  rounds: int
  seconds: float
  idle_seconds: float
  start_count: int
  specs: list[Spec] = field(default_factory=list)
  results: Results = field(default_factory=Results)
  allocations: dict[str, Allocations] = field(default_factory=dict)
  latency: dict[str, list[Latency]] = field(default_factory=dict)
  after_https: float | None = None
  full_cache: FullCache | None = None
  starts: dict[str, float] = field(default_factory=dict)
  idle_switches: float | None = None
  hot_seconds: float = 0
  cost_seconds: float = 0
  hot: list[HotAnswers] = field(default_factory=list)
  costs: dict[str, Cost] = field(default_factory=dict)
  scheduler: SchedulerCost | None = None
  cache_file: CacheFileCost | None = None
  flushes: FlushCost | None = None
  scrapes: ScrapeCost | None = None
  misses: Misses | None = None
  many: ManyNames | None = None
  lists: ListCosts | None = None
  encrypted: EncryptedCosts | None = None
  dashboard: DashboardCosts | None = None
  notes: list[str] = field(default_factory=list)


def _spread(values: list[float], digits: int = 2) -> str:
  return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def _load_name(load: Load) -> str:
  return f"{PACED.rate:,} q/s" if load.name == PACED.name else "saturation"


def _ratio_row(findings: Findings, figure: str, spec: Spec, floor: Spec, limit: float, limit_text: str) -> Row:
  """A ratio that must hold at both loads."""
  measured, is_met = [], spec.name not in findings.results.failures
  for load in LOADS:
    ratios = findings.results.ratios(spec.name, floor.name, load)
    if not ratios:
      return Row(figure, limit_text)
    text = f"{_spread(ratios)} at {_load_name(load)}"
    rate = findings.results.rate(spec.name, load) or 0
    if load.name == PACED.name and rate < 0.98 * (load.rate or 0):
      text = f"{_spread(ratios)} at {rate:,.0f} q/s, the highest rate without loss here"
    is_complete = findings.results.is_complete(spec.name, load)
    measured.append(text if is_complete else f"{text}, with losses")
    is_met = is_met and is_complete and statistics.median(ratios) <= limit
  return Row(figure, limit_text, "; ".join(measured), verdict(is_met))


def _cached_row(findings: Findings) -> Row:
  row = _ratio_row(findings, "CPU per cached answer, ratio to the echo in the same rounds", ours.CACHED, ECHO, 1.2,
                   "≤ 1.20, and below every peer")
  if row.measured == NOT_MEASURED:
    return row
  peers = [spec for spec in PEERS if spec.role is Role.PEER]
  cheaper, absent = [], []
  for spec in peers:
    for load in LOADS:
      theirs = findings.results.ratios(spec.name, ECHO.name, load)
      own = findings.results.ratios(ours.CACHED.name, ECHO.name, load)
      if not theirs:
        absent.append(spec.name)
      elif statistics.median(theirs) <= statistics.median(own):
        cheaper.append(f"{spec.name} at {_load_name(load)}")
  measured, result = row.measured, row.verdict
  if cheaper:
    measured, result = f"{measured}; not below {', '.join(cheaper)}", verdict(False)
  elif not absent:
    measured += "; below every peer"
  elif result == "met":
    measured, result = f"{measured}; without {', '.join(sorted(set(absent)))}", "not fully measured"
  return Row(row.figure, row.limit, measured, result)


def _unbound_row(findings: Findings) -> Row:
  unbound = next(spec for spec in PEERS if spec.name == "unbound")
  figure = "CPU per cached answer, ratio to unbound's in the same rounds"
  return _ratio_row(findings, figure, ours.CACHED, unbound, 0.65, "≤ 0.65")


def _allocation_row(findings: Findings) -> Row:
  figure, limit = "`malloc` calls per cached answer", "0"
  count = findings.allocations.get(ours.CACHED.name)
  if count is None:
    return Row(figure, limit)
  return Row(figure, limit, f"{count.calls:,} calls in {count.answers:,} answers",
             verdict(count.calls <= HOUSEKEEPING_CALLS))


def _kinds_row(findings: Findings) -> Row:
  figure, limit = "CPU per miss through any other kind, ratio to JSON's", "≤ 1.3"
  medians: dict[str, float] = {}
  for spec in ours.MISS_KINDS:
    for load in LOADS:
      ratios = findings.results.ratios(spec.name, ours.MISS_JSON.name, load)
      if ratios:
        key = f"{spec.name.removeprefix('httpdnsd miss through ')} at {_load_name(load)}"
        medians[key] = statistics.median(ratios)
  if not medians:
    return Row(figure, limit)
  worst = max(medians, key=lambda key: medians[key])
  text = f"{medians[worst]:.2f} at most, {worst}"
  if len(medians) < len(ours.MISS_KINDS) * len(LOADS):
    return Row(figure, limit, text, "not fully measured")
  return Row(figure, limit, text, verdict(medians[worst] <= 1.3))


def _latency_row(findings: Findings) -> Row:
  figure, limit = "what a miss adds to the provider's own time, median", "≤ 0.4 ms"
  if not findings.latency:
    return Row(figure, limit)
  added = {name: [latency.added for latency in rounds] for name, rounds in findings.latency.items()}
  measured = "; ".join(f"{_spread(values)} ms {name}" for name, values in added.items())
  return Row(figure, limit, measured, verdict(all(statistics.median(values) <= 0.4 for values in added.values())))


def _memory_row(findings: Findings) -> Row:
  figure = f"resident memory 5 s after the first HTTPS answer / with {MANY_NAMES:,} cached A answers"
  limit = "≤ 16 MB / ≤ 44 MB"
  first, full = findings.after_https, findings.full_cache
  if first is None and full is None:
    return Row(figure, limit)
  texts = [NOT_MEASURED if first is None else f"{first:.1f} MB",
           NOT_MEASURED if full is None else f"{full.megabytes:.1f} MB"]
  if full is not None and full.names != MANY_NAMES:
    texts[1] += f" with only {full.names:,} names held"
  if first is None or full is None:
    return Row(figure, limit, " / ".join(texts), "not fully measured")
  return Row(figure, limit, " / ".join(texts),
             verdict(first <= 16 and full.megabytes <= 44 and full.names == MANY_NAMES))


def _start_row(findings: Findings) -> Row:
  figure, limit = "from start to the first answer", "≤ 60 ms"
  if not findings.starts:
    return Row(figure, limit)
  measured = "; ".join(f"{value:.1f} ms for {name}" for name, value in findings.starts.items())
  return Row(figure, limit, measured, verdict(max(findings.starts.values()) <= 60))


def _idle_row(findings: Findings) -> Row:
  figure, limit = "voluntary context switches of the idle daemon, empty cache", "≤ 2 a minute"
  if findings.idle_switches is None:
    return Row(figure, limit)
  return Row(figure, limit, f"{findings.idle_switches:.0f} a minute, over {findings.idle_seconds:.0f} s",
             verdict(findings.idle_switches <= 2))


def requirement_rows(findings: Findings) -> list[Row]:
  """The requirements in their order; where only parts with rows of their own were asked for, those rows."""
  own = {"lists": list_rows(findings.lists), "encrypted": encrypted_rows(findings.encrypted),
         "dashboard": dashboard_rows(findings.dashboard)}
  if set(findings.parts) <= own.keys():
    return [row for part, rows in own.items() if part in findings.parts for row in rows]
  return [
    _cached_row(findings),
    _unbound_row(findings),
    _allocation_row(findings),
    _ratio_row(findings, "CPU per cached answer with two workers against one", ours.TWO_WORKERS, ours.CACHED, 1.05,
               "≤ 1.05"),
    _ratio_row(findings, "CPU per miss over RFC 8484 (dnsdist, HTTP/2, TLS), ratio to the same echo", ours.MISS_DOH,
               ECHO, 8.0, "≤ 8.0"),
    _ratio_row(findings, "CPU per miss over JSON against the simulator, ratio to the same echo", ours.MISS_JSON, ECHO,
               9.0, "≤ 9.0"),
    _kinds_row(findings),
    _latency_row(findings),
    _memory_row(findings),
    _start_row(findings),
    _idle_row(findings),
    *fresh_rows(findings.hot, findings.costs, findings.scheduler, findings.cache_file),
    flush_row(findings.flushes),
    scrape_row(findings.scrapes),
    *miss_rows(findings.misses),
    many_row(findings.many),
    *(row for rows in own.values() for row in rows),
  ]


def _server_rows(findings: Findings) -> list[list[str]]:
  rows = []
  for spec in findings.specs:
    cells = [spec.name + (f" ({spec.note})" if spec.note else "")]
    for load in LOADS:
      value = findings.results.microseconds(spec.name, load)
      ratios = findings.results.ratios(spec.name, ECHO.name, load)
      lost = "" if findings.results.is_complete(spec.name, load) else ", with losses"
      cells.append(NOT_MEASURED if value is None else f"{value:.2f}{lost}")
      cells.append(_spread(ratios) if ratios else NOT_MEASURED)
    for load in LOADS:
      rate = findings.results.rate(spec.name, load)
      cells.append(NOT_MEASURED if rate is None else f"{rate:,.0f}")
    count = findings.allocations.get(spec.name)
    cells.append(NOT_MEASURED if count is None else f"{count.calls / count.answers:.3f}")
    rows.append(cells)
  return rows


def _latency_rows(findings: Findings) -> list[list[str]]:
  def median(rounds: list[Latency], column: str) -> str:
    return f"{statistics.median(getattr(latency, column) for latency in rounds):.3f}"

  return [[name, *(median(rounds, column) for column in ("forwarded", "transfer", "service", "added"))]
          for name, rounds in findings.latency.items()]


def _rounds(findings: Findings) -> str:
  """How the figures of the rounds came about."""
  return (
    f"Rounds: {findings.rounds}, each server for {findings.seconds:g} s at each load in each of them, in random "
    f"order; {ZONE_NAMES:,} names, caches warm. At saturation dnsperf keeps {OUTSTANDING} queries in flight. Figures "
    "are medians over the rounds, in parentheses the lowest and the highest; starts are medians of "
    f"{findings.start_count}. A ratio is taken within a round; a miss is always compared with the echo at the full "
    "load.")


def compose(findings: Findings) -> str:
  """The whole report."""
  versions = [f"{spec.package} {package_version(spec.package)}" for spec in findings.specs if spec.package]
  tools = ["dnsperf", *(["nghttp2-client", "openssl"] if findings.encrypted else [])]
  parts = ["# Benchmark"]
  if findings.is_quick:
    parts.append("**A quick run: fewer rounds and shorter waits than the figures ask for.**")
  parts += [
    f"Machine: {describe_machine()}.  \nPeers: {', '.join(versions) or 'none'}; load from "
    f"{', '.join(f'{tool} {package_version(tool)}' for tool in tools)}.",
    *([_rounds(findings)] if not findings.results.is_empty else []),
    table(["figure", "must reach", "measured", "verdict"],
          [[row.figure, row.limit, row.measured, row.verdict] for row in requirement_rows(findings)]),
  ]
  if not findings.results.is_empty:
    header = [f"µs at {_load_name(PACED)}", "ratio to echo", f"µs at {_load_name(SATURATED)}", "ratio to echo",
              "answers/s, paced", "answers/s, saturated", "`malloc` per answer"]
    parts += ["## CPU per answer", table(["server", *header], _server_rows(findings))]
  if findings.latency:
    parts += ["## Latency of a miss, one question at a time, in ms",
              table(["provider", "through httpdnsd", "direct transfer", "of it the provider's own time", "added"],
                     _latency_rows(findings))]
  parts += fresh_parts(findings.hot, findings.hot_seconds, findings.costs, findings.cost_seconds)
  parts += miss_part(findings.misses)
  parts += scrape_part(findings.scrapes)
  parts += list_parts(findings.lists)
  parts += encrypted_parts(findings.encrypted)
  parts += dashboard_parts(findings.dashboard)
  if findings.notes:
    parts += ["## Notes", "\n".join(f"* {note}" for note in findings.notes)]
  return "\n\n".join(parts) + "\n"
