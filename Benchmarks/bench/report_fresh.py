"""report_fresh.py -- the part of the report about answers that stay fresh: hot names, refreshing, the cache's file."""

from __future__ import annotations

import statistics

from . import hotnames, ours
from .hot import RATE, WAITED, Cost, HotAnswers
from .programs import CacheFileCost, SchedulerCost
from .table import NOT_MEASURED, Row, table, verdict


def _milliseconds(answers: HotAnswers, part: float) -> str:
  return f"{answers.quantile(part):.2f}" if answers.milliseconds else NOT_MEASURED


def _hot_row(hot: list[HotAnswers]) -> Row:
  figure, limit = f"p99.9 of a hot name's latency across TTL ends, upstream {hotnames.DELAY} ms", "≤ 2 ms"
  own = next((answers for answers in hot if answers.name == ours.HOT.name), None)
  if own is None:
    return Row(figure, limit)
  others = ", ".join(f"{answers.name} {_milliseconds(answers, 0.999)}" for answers in hot if answers is not own)
  text = f"{_milliseconds(own, 0.999)} ms"
  if not own.is_right:
    text += f", with {own.wrong} wrong answers and {own.lost} losses"
  return Row(figure, limit, f"{text}; {others}",
             verdict(own.is_right and own.quantile(0.999) <= 2))


def _cost_row(costs: dict[str, Cost]) -> Row:
  figure = "hot refresh with batches against without, two families: HTTP transfers / billing units"
  limit = "≤ 0.5 / ≤ 1.0"
  if ours.WITH_BATCHES not in costs or ours.WITHOUT_BATCHES not in costs:
    return Row(figure, limit)
  batched, single = costs[ours.WITH_BATCHES], costs[ours.WITHOUT_BATCHES]
  if single.transfers == 0 or single.units == 0:
    return Row(figure, limit, "nothing was refreshed", verdict(False))
  transfers = batched.transfers_per_thousand / single.transfers_per_thousand
  units = batched.units_per_thousand / single.units_per_thousand
  is_right = batched.answers.is_right and single.answers.is_right
  text = f"{transfers:.2f} / {units:.2f}" + ("" if is_right else ", with wrong answers or losses")
  # Both runs have chances of their own; what differs by less than half a hundredth is the same.
  return Row(figure, limit, text, verdict(is_right and transfers <= 0.5 and round(units, 2) <= 1))


def _scheduler_row(cost: SchedulerCost | None) -> Row:
  figure = "scheduling 100,000 names: CPU for each refresh beyond its transfer / memory for each name"
  limit = "≤ 5 µs / ≤ 64 octets"
  if cost is None:
    return Row(figure, limit)
  return Row(figure, limit, f"{cost.microseconds:.2f} µs / {cost.octets:.0f} octets",
             verdict(cost.microseconds <= 5 and cost.octets <= 64))


def _cache_file_row(cost: CacheFileCost | None) -> Row:
  figure = "100,000 entries: loaded in / longest delay that a save or a load adds to any answer"
  limit = "≤ 200 ms / ≤ 1 ms"
  if cost is None:
    return Row(figure, limit)
  delay = statistics.median(cost.delays)
  text = f"{cost.load:.0f} ms / {delay:.2f} ({min(cost.delays):.2f}–{max(cost.delays):.2f}) ms"
  return Row(figure, limit, text, verdict(cost.load <= 200 and delay <= 1))


def _flush_row(cost: CacheFileCost | None) -> Row:
  figure = "flush of 100,000 entries / longest delay that it adds to any answer / longest turn of the resolver's loop"
  limit = "≤ 50 ms / ≤ 1 ms / ≤ 1 ms"
  if cost is None:
    return Row(figure, limit)
  delay = statistics.median(cost.flush_delays)
  return Row(figure, limit, f"{cost.flush:.0f} ms / {delay:.2f} ms / {cost.flush_turn:.2f} ms",
             verdict(cost.flush <= 50 and delay <= 1 and cost.flush_turn <= 1))


def fresh_rows(hot: list[HotAnswers], costs: dict[str, Cost], scheduler: SchedulerCost | None,
               cache_file: CacheFileCost | None) -> list[Row]:
  """The requirements in their order."""
  return [_hot_row(hot), _cost_row(costs), _scheduler_row(scheduler), _cache_file_row(cache_file),
          _flush_row(cache_file)]


def _latency_cells(answers: HotAnswers) -> list[str]:
  return [*(_milliseconds(answers, part) for part in (0.5, 0.99, 0.999, 1)), f"{answers.waited:,}",
          f"{answers.wrong:,}", f"{answers.lost:,}"]


def _titled(name: str, note: str) -> str:
  return f"{name} ({note})" if note else name


_LATENCY = ["p50", "p99", "p99.9", "max", f"≥ {WAITED:.0f} ms", "wrong", "lost"]


def _workload(receiver: str, seconds: float) -> str:
  return (f"{hotnames.COUNT} names, A and AAAA, with a TTL of {hotnames.TTL} s; {RATE} queries a second at random "
          f"moments to each {receiver} for {seconds:g} s, to all at the same time; upstream takes {hotnames.DELAY} ms.")


def fresh_parts(hot: list[HotAnswers], hot_seconds: float, costs: dict[str, Cost], cost_seconds: float) -> list[str]:
  """The tables behind those of the other figures, each with its title; how many seconds were measured."""
  parts = []
  if hot:
    rows = [[_titled(answers.name, answers.note), f"{answers.queries:,}", *_latency_cells(answers)] for answers in hot]
    parts += ["## Latency of hot names across TTL ends, in ms", _workload("server", hot_seconds),
              table(["server", "queries", *_LATENCY], rows)]
  if costs:
    rows = [[_titled(name, cost.answers.note), f"{cost.transfers_per_thousand:.1f}", f"{cost.units_per_thousand:.1f}",
             *_latency_cells(cost.answers)] for name, cost in costs.items()]
    parts += ["## What refreshing costs, for 1,000 client queries; latency in ms",
              _workload("set-up", cost_seconds),
              table(["refreshing", "transfers", "billing units", *_LATENCY], rows)]
  return parts
