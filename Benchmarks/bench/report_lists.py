"""report_lists.py -- the part of the report about lists of names, sets and clients."""

from __future__ import annotations

import statistics

from .list_hits import ListHits
from .list_loading import RATE, Changes, Starts
from .list_sets import ELEMENTS, SetCosts
from .listed import BEFORE, BLOCKING, CLASSED, CLASSES, DNSMASQ, FEW, LISTED, MANY, OURS, SMARTDNS, USED
from .lists import ListCosts
from .measure import SATURATED
from .table import NOT_MEASURED, Row, table, verdict

#: Calls that housekeeping may make while the answers are counted.
_HOUSEKEEPING_CALLS = 20
_WITH_LIST = LISTED.format(OURS)


def _memory_row(starts: Starts | None) -> Row:
  figure = f"octets a name, resident without pages of files, of lists of {MANY:,} / {FEW:,} names"
  limit = "≤ 14, and ≤ 0.07 × smartdns"
  if starts is None:
    return Row(figure, limit)
  octets = {program: [starts.octets_of_a_name(program, names) for names in (MANY, FEW)]
            for program in (OURS, SMARTDNS, DNSMASQ)}
  text = "; ".join(f"{program} {many:.1f} / {few:.1f}" for program, (many, few) in octets.items())
  is_met = all(own <= 14 and own <= 0.07 * theirs for own, theirs in zip(octets[OURS], octets[SMARTDNS], strict=True))
  return Row(figure, limit, text, verdict(is_met))


def _cpu_row(starts: Starts | None) -> Row:
  figure = f"CPU of reading and building, {MANY:,} names; of a rule that blocks"
  limit = "≤ 400 ms, and ≤ 0.5 × smartdns"
  if starts is None:
    return Row(figure, limit)
  own, smartdns, dnsmasq = (starts.cpu(program, MANY) for program in (OURS, SMARTDNS, DNSMASQ))
  blocking = starts.cpu_of_blocking()
  return Row(figure, limit, f"{own:.0f} ms; {blocking:.0f} ms; smartdns {smartdns:.0f} ms, dnsmasq {dnsmasq:.0f} ms",
             verdict(max(own, blocking) <= min(400, 0.5 * smartdns)))


def _change_row(changes: Changes | None, starts: Starts | None) -> Row:
  figure = (f"changed list of {MANY:,} names in use / p99.9 of hits at {RATE:,} q/s meanwhile, ratio to without in the same "
            "round")
  limit = "≤ 3 s / ≤ 2"
  if changes is None:
    return Row(figure, limit)
  seconds = statistics.median(changes.seconds)
  ratio = statistics.median(_ratios(changes))
  peers = "" if starts is None else "; by a restart: " + ", ".join(
    f"{program} {starts.seconds(program, MANY):.2f} s" for program in (SMARTDNS, DNSMASQ))
  return Row(figure, limit, f"{seconds:.2f} s / {ratio:.2f}{peers}", verdict(seconds <= 3 and ratio <= 2))


def _ratios(changes: Changes) -> list[float]:
  return [busy / quiet for busy, quiet in zip(changes.with_change, changes.without, strict=True)]


def _spread(values: list[float]) -> str:
  return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _hit_row(hits: ListHits | None) -> Row:
  figure = f"CPU of a hit at saturation, {USED:,} names in use: with a list of {MANY:,} names against without"
  limit = "≤ 1.05, and ≤ 0.65 × smartdns with it"
  if hits is None:
    return Row(figure, limit)
  against_smartdns = hits.ratio(_WITH_LIST, LISTED.format(SMARTDNS))
  own = hits.ratios(_WITH_LIST, OURS)
  peers = ", ".join(f"{program} itself {hits.ratio(LISTED.format(program), program):.2f}" for program in (SMARTDNS, DNSMASQ))
  return Row(figure, limit, f"{_spread(own)}; {against_smartdns:.2f} × smartdns; {peers}",
             verdict(statistics.median(own) <= 1.05 and against_smartdns <= 0.65))


def _allocation_row(hits: ListHits | None) -> Row:
  figure, limit = f"`malloc` calls per hit with the list, and with {CLASSES} classes of clients", "0"
  if hits is None or not hits.allocations:
    return Row(figure, limit)
  text = "; ".join(f"{count.calls:,} calls in {count.answers:,} answers" for count in hits.allocations.values())
  return Row(figure, limit, text, verdict(all(count.calls <= _HOUSEKEEPING_CALLS for count in hits.allocations.values())))


def _class_row(hits: ListHits | None) -> Row:
  figure, limit = f"CPU of a hit at saturation with {CLASSES} classes of clients against without", "≤ 1.02"
  if hits is None:
    return Row(figure, limit)
  ratios = hits.ratios(CLASSED.format(OURS), OURS)
  return Row(figure, limit, _spread(ratios), verdict(statistics.median(ratios) <= 1.02))


def _set_row(sets: SetCosts | None) -> Row:
  figure = f"first answer of a name with a set of {ELEMENTS:,} elements, median: added to that without"
  limit = "≤ 0.1 ms"
  if sets is None:
    return Row(figure, limit)
  text = "; ".join(f"{program} {sets.added(program):.3f} ms" for program in sets.plain)
  # Every name has its own address; n0 came first, to see that the server answers.
  missing = len(sets.with_set[OURS]) - sets.held[OURS]
  if missing > 0:
    text += f"; {missing} addresses of {OURS} are not in its set"
  return Row(figure, limit, text, verdict(missing <= 0 and sets.added(OURS) <= 0.1))


def _lost_row(sets: SetCosts | None) -> Row:
  figure = "set lost by `nft flush ruleset`: full again by itself / by `sets refill`"
  limit = "≤ 11 s / ≤ 0.2 s"
  if sets is None:
    return Row(figure, limit)
  return Row(figure, limit, f"{sets.refilled_alone / 1000:.1f} s / {sets.refilled / 1000:.2f} s",
             verdict(sets.refilled_alone <= 11_000 and sets.refilled <= 200))


def _start_row(starts: Starts | None) -> Row:
  figure, limit = f"start with {MANY:,} names until the first answer; with a rule that blocks", "≤ 0.5 s"
  if starts is None:
    return Row(figure, limit)
  own, blocking = starts.seconds(OURS, MANY), starts.seconds(BLOCKING, MANY)
  peers = ", ".join(f"{program} {starts.seconds(program, MANY):.2f} s" for program in (SMARTDNS, DNSMASQ))
  return Row(figure, limit, f"{own:.2f} s; {blocking:.2f} s; {peers}; without a list {starts.seconds(OURS, 0):.2f} s",
             verdict(max(own, blocking) <= 0.5))


def _unused_row(starts: Starts | None, hits: ListHits | None) -> Row:
  figure = "no lists, sets and clients: threads / own memory / CPU of a hit; ratio to the program of `--before`"
  limit = "as before / ≤ 1.05 × / ≤ 1.01 ×"
  if starts is None:
    return Row(figure, limit)
  now, before = starts.of[OURS, 0], starts.of.get((BEFORE, 0))
  megabytes = statistics.median(now.octets) / 1e6
  text = f"{max(now.threads)} / {megabytes:.2f} MB"
  if before is None or hits is None:
    return Row(figure, limit, f"{text} / {NOT_MEASURED}", "not fully measured")
  memory = statistics.median(now.octets) / statistics.median(before.octets)
  ratios = hits.ratios(OURS, BEFORE)
  text += f" / {_spread(ratios)}; before {max(before.threads)} / {statistics.median(before.octets) / 1e6:.2f} MB"
  is_met = max(now.threads) <= max(before.threads) and memory <= 1.05 and statistics.median(ratios) <= 1.01
  return Row(figure, limit, text, verdict(is_met))


def list_rows(costs: ListCosts | None) -> list[Row]:
  """The requirements in their order."""
  costs = costs or ListCosts()
  return [_memory_row(costs.starts), _cpu_row(costs.starts), _change_row(costs.changes, costs.starts), _hit_row(costs.hits),
          _allocation_row(costs.hits), _class_row(costs.hits), _set_row(costs.sets), _lost_row(costs.sets),
          _start_row(costs.starts), _unused_row(costs.starts, costs.hits)]


def _start_table(starts: Starts) -> list[str]:
  rows = [[program, f"{names:,}" if names else "none", f"{statistics.median(start.octets) / 1e6:.1f}",
           f"{statistics.median(start.cpu):.0f}", f"{statistics.median(start.seconds):.3f}", f"{max(start.threads)}"]
          for (program, names), start in starts.of.items()]
  return ["## Lists: starts", table(["server", "names", "own resident MB", "ms of CPU", "s to the first answer", "threads"], rows)]


def _change_table(changes: Changes) -> list[str]:
  rows = [[f"{seconds:.2f}", f"{busy:.2f}", f"{quiet:.2f}"]
          for seconds, busy, quiet in zip(changes.seconds, changes.with_change, changes.without, strict=True)]
  return ["## Lists: changes, a row for each round",
          table(["s until in use", "p99.9 in ms with a change", "p99.9 in ms without"], rows)]


def _hit_table(hits: ListHits) -> list[str]:
  names = [BEFORE, OURS, CLASSED.format(OURS), _WITH_LIST, SMARTDNS, LISTED.format(SMARTDNS), DNSMASQ,
           LISTED.format(DNSMASQ)]
  rows = []
  for name in names:
    if (microseconds := hits.results.microseconds(name, SATURATED)) is None:
      continue
    lost = "" if hits.results.is_complete(name, SATURATED) else ", with losses"
    rows.append([name, f"{microseconds:.2f}{lost}", _spread(hits.ratios(name, OURS)),
                 f"{hits.results.rate(name, SATURATED) or 0:,.0f}"])
  return [f"## Lists: CPU of a hit at saturation, {USED:,} names, half of them of the list",
          table(["server", "µs", "ratio to httpdnsd without", "answers/s"], rows)]


def _set_table(sets: SetCosts) -> list[str]:
  rows = []
  for program, plain in sets.plain.items():
    cells = [f"{statistics.median(times):.3f} / {sorted(times)[int(len(times) * 0.99)]:.3f}"
             for times in (plain, sets.with_set[program])]
    rows.append([program, *cells, f"{sets.held[program]:,}"])
  return [f"## Sets: first answers of {len(next(iter(sets.plain.values()))):,} names, median / p99 in ms",
          table(["server", "without a set", "with a set", "addresses in the set"], rows)]


def list_parts(costs: ListCosts | None) -> list[str]:
  """The tables behind the requirements, each with its title."""
  if costs is None:
    return []
  return [*(_start_table(costs.starts) if costs.starts else []), *(_change_table(costs.changes) if costs.changes else []),
          *(_hit_table(costs.hits) if costs.hits else []), *(_set_table(costs.sets) if costs.sets else [])]
