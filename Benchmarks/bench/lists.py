"""lists.py -- the part about lists of names, sets and clients: measures all of it, beside smartdns and dnsmasq."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .list_hits import ListHits, measure_hits
from .list_loading import Changes, Starts, measure_changes, measure_starts
from .list_sets import SetCosts, measure_sets
from .listed import surroundings
from .processes import BenchError
from .servers import Lab


@dataclass
class ListCosts:
  """What was measured; what is None was not."""

  starts: Starts | None = None
  changes: Changes | None = None
  hits: ListHits | None = None
  sets: SetCosts | None = None
  failures: list[str] = field(default_factory=list)


def measure(lab: Lab, before: Path | None, rounds: int, seconds: float, say: Callable[[str], None]) -> ListCosts:
  """Measures loading, changes, hits and sets; what fails does not keep the others from being measured."""
  costs = ListCosts()

  def attempt(what: str, action: Callable[[], None]) -> None:
    try:
      action()
    except BenchError as error:
      say(f"lists: {what} failed: {error}")
      costs.failures.append(f"lists: {what} failed: {str(error).splitlines()[0]}")

  with surroundings(lab, before) as around:
    few = max(2, rounds // 2)

    def starts() -> None:
      costs.starts = measure_starts(around, few, say)

    def changes() -> None:
      costs.changes = measure_changes(around, few, say)

    def hits() -> None:
      costs.hits = measure_hits(around, rounds, seconds / 4, say)

    def sets() -> None:
      costs.sets = measure_sets(lab, say)

    attempt("starts", starts)
    attempt("changes", changes)
    attempt("hits", hits)
  attempt("sets", sets)
  return costs
