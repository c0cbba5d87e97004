"""report_dashboard.py -- the part of the report about the dashboard."""

from __future__ import annotations

import statistics

from .dashboard import DashboardCosts
from .dashboard_cpu import (
  BUSY,
  CONDITIONS,
  DNSDIST_UNWATCHED,
  DNSDIST_PAGE,
  IDLE,
  LOADS,
  MANY,
  UNWATCHED,
  ONE,
  SCRAPER,
  Hits,
  Looks,
)
from .dashboard_rest import OFF, ON, Memory, Wakeups
from .encrypted_lab import BEFORE, DNSDIST, OURS
from .measure import PACED
from .table import NOT_MEASURED, Row, table, verdict
from .viewers import MOST, Visit

#: KiB that are no growth: rows are written into a ring whose pages are used for the first time.
_NO_GROWTH = 64


def _spread(values: list[float]) -> str:
  return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _one_row(looks: Looks | None) -> Row:
  figure = f"CPU of the daemon with 1 page open at {BUSY}, ratio in the same rounds"
  limit = "≤ 1.0 × with a scraper of `/metrics` every 2 s, and × dnsdist with its page open"
  of = {other: looks.ratios(BUSY, ONE, other) if looks else [] for other in (SCRAPER, DNSDIST_PAGE)}
  if not of[SCRAPER]:
    return Row(figure, limit)
  text = "; ".join(f"{_spread(ratios)} × {other}" for other, ratios in of.items() if ratios)
  is_met = all(statistics.median(ratios) <= 1 for ratios in of.values() if ratios)
  return Row(figure, limit, text, verdict(is_met) if of[DNSDIST_PAGE] or not is_met else "not fully measured")


def _many_row(looks: Looks | None) -> Row:
  figure, limit = f"CPU of the daemon with {MOST} pages open at {BUSY}, ratio to 1 in the same rounds", "≤ 1.2"
  ratios = looks.ratios(BUSY, MANY, ONE) if looks else []
  if not ratios:
    return Row(figure, limit)
  return Row(figure, limit, _spread(ratios), verdict(statistics.median(ratios) <= 1.2))


def _hit_row(hits: Hits | None) -> Row:
  figure = f"{MOST} pages open beside {PACED.rate:,} hits/s, against none: CPU of the listener's thread / median of hits"
  limit = "≤ 1.02 / ≤ 1.05"
  if hits is None or not hits.cpu:
    return Row(figure, limit)
  is_met = statistics.median(hits.cpu) <= 1.02 and statistics.median(hits.latency) <= 1.05
  return Row(figure, limit, f"{_spread(hits.cpu)} / {_spread(hits.latency)}", verdict(is_met))


def _visit_row(visits: dict[str, Visit]) -> Row:
  figure, limit = "octets of a first visit, ratio to the files of dnsdist's page", "≤ 0.7"
  if OURS not in visits:
    return Row(figure, limit)
  own = visits[OURS]
  if DNSDIST not in visits:
    return Row(figure, limit, f"{own.content:,} octets", "not fully measured")
  other = visits[DNSDIST]
  text = (f"{own.content / other.content:.3f}, {own.content:,} of {other.content:,}; {own.whole / other.whole:.3f} with the heads "
          "of the responses")
  return Row(figure, limit, text, verdict(own.content <= 0.7 * other.content))


def _memory_row(memory: Memory | None) -> Row:
  seconds = memory.seconds if memory else 180
  figure = f"memory more with {MOST} pages open than without / growth in {seconds:g} s of viewing"
  limit = "≤ 2 MiB / none"
  if memory is None:
    return Row(figure, limit)
  ends = {is_watched: [first + then for first, then in zip(memory.opened[is_watched], memory.grown[is_watched], strict=True)]
          for is_watched in (True, False)}
  more = statistics.median(ends[True]) - statistics.median(ends[False])
  grown = statistics.median(memory.grown[True])
  return Row(figure, limit, f"{more:.0f} KiB / {grown:.0f} KiB", verdict(more <= 2048 and grown <= _NO_GROWTH))


def _wakeup_row(wakeups: Wakeups | None) -> Row:
  figure = ("no page open, idle: voluntary context switches a minute more with `dashboard = true` than with `false` / with `false` "
            "than before")
  limit = "≤ 1 / 0"
  if wakeups is None:
    return Row(figure, limit)
  of = {name: statistics.median(values) for name, values in wakeups.a_minute.items()}
  more = of[ON] - of[OFF]
  text = f"{more:.1f}, {of[ON]:.1f} against {of[OFF]:.1f}"
  if BEFORE not in of:
    return Row(figure, limit, text, "not fully measured" if more <= 1 else verdict(False))
  rest = of[OFF] - of[BEFORE]
  return Row(figure, limit, f"{text} / {rest:.1f}", verdict(more <= 1 and rest <= 0))


def dashboard_rows(costs: DashboardCosts | None) -> list[Row]:
  """The requirements in their order."""
  found = costs or DashboardCosts()
  return [_one_row(found.looks), _many_row(found.looks), _hit_row(found.hits), _visit_row(found.visits),
          _memory_row(found.memory), _wakeup_row(found.wakeups)]


def _look_table(looks: Looks) -> list[str]:
  rows = []
  for condition in CONDITIONS:
    if (BUSY, condition) not in looks.milliseconds:
      continue
    base = DNSDIST_UNWATCHED if condition == DNSDIST_PAGE else UNWATCHED
    cells = [condition]
    for load in LOADS:
      cells.append(f"{statistics.median(looks.milliseconds[load, condition]):.2f}")
      is_base = condition in (UNWATCHED, DNSDIST_UNWATCHED)
      cells.append(NOT_MEASURED if is_base else f"{looks.more(load, condition, base):.2f}")
    rows.append(cells)
  return ["## Dashboard: CPU of the whole process, in milliseconds a second",
          table(["who looks", f"at {BUSY}", "more than without viewers", f"with {IDLE}", "more than without viewers"], rows)]


def _memory_table(memory: Memory) -> list[str]:
  rows = [[name, *(f"{statistics.median(values[is_watched]):.0f}" for values in (memory.before, memory.opened, memory.grown))]
          for name, is_watched in ((f"{MOST} pages", True), ("no viewer", False))]
  return [f"## Dashboard: a daemon's own memory in KiB, {len(memory.before[True])} processes each",
          table(["who looks", "before", "more once pages are open", f"growth until {memory.seconds:g} s"], rows)]


def _wakeup_table(wakeups: Wakeups) -> list[str]:
  rows = [[name, f"{statistics.median(values):.1f}", f"{min(values):.1f}–{max(values):.1f}",
           f"{statistics.median(wakeups.kibibytes[name]):.0f}"] for name, values in wakeups.a_minute.items()]
  return [f"## Dashboard: idle daemons that nothing looks at, over {wakeups.seconds:g} s",
          table(["daemon", "voluntary context switches a minute", "lowest and highest", "own memory in KiB"], rows)]


def dashboard_parts(costs: DashboardCosts | None) -> list[str]:
  """The tables behind the requirements, each with its title."""
  if costs is None:
    return []
  return [*(_look_table(costs.looks) if costs.looks and costs.looks.milliseconds else []),
          *(_memory_table(costs.memory) if costs.memory else []), *(_wakeup_table(costs.wakeups) if costs.wakeups else [])]
