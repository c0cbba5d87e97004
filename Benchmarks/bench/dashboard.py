"""dashboard.py -- the part about the dashboard: measures all of it, beside a scraper and dnsdist's own page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .dashboard_cpu import Hits, Looks, measure_hits, measure_looks
from .dashboard_rest import Memory, Wakeups, count_wakeups, measure_memory
from .encrypted_lab import DNSDIST, OURS, every_name
from .lab import wait_for_tcp
from .measure import warm
from .ours import with_dashboard
from .peers import dnsdist_with_page
from .processes import BenchError, free_port
from .servers import Lab, start
from .viewers import Visit, visit_dashboard, visit_dnsdist


@dataclass
class DashboardCosts:
  """What was measured; what is None was not."""

  visits: dict[str, Visit] = field(default_factory=dict)  # by server
  looks: Looks | None = None
  hits: Hits | None = None
  memory: Memory | None = None
  wakeups: Wakeups | None = None
  failures: list[str] = field(default_factory=list)


def measure(lab: Lab, has_dnsdist: bool, before: Path | None, rounds: int, seconds: float, is_quick: bool,
            say: Callable[[str], None]) -> DashboardCosts:
  """Measures all figures; what fails does not keep the others from being measured."""
  costs = DashboardCosts()

  def attempt(what: str, action: Callable[[], None]) -> None:
    try:
      action()
    except BenchError as error:
      say(f"dashboard: {what} failed: {error}")
      costs.failures.append(f"dashboard: {what} failed: {str(error).splitlines()[0]}")

  with every_name(lab, has_ours=True) as around:

    def visits() -> None:
      costs.visits = _measure_visits(around, has_dnsdist)

    def looks() -> None:
      costs.looks = measure_looks(around, has_dnsdist, rounds, say)
      costs.failures += costs.looks.failures

    def hits() -> None:
      costs.hits = measure_hits(around, rounds, seconds, say)

    def memory() -> None:
      costs.memory = measure_memory(around, max(1, rounds // 2), 60 if is_quick else 180, say)

    def wakeups() -> None:
      costs.wakeups = count_wakeups(around, before, rounds, 60 if is_quick else 120, say)

    attempt("a first visit", visits)
    attempt("CPU of looking", looks)
    attempt("hits beside open pages", hits)
    attempt("memory", memory)
    attempt("wake-ups", wakeups)
  return costs


def _measure_visits(lab: Lab, has_dnsdist: bool) -> dict[str, Visit]:
  """First visits of daemons that have answered, and that nothing has looked at."""
  kinds = {OURS: (lambda web: with_dashboard(OURS, web, True), visit_dashboard)}
  if has_dnsdist:
    kinds[DNSDIST] = (lambda web: dnsdist_with_page(DNSDIST, web), visit_dnsdist)
  found = {}
  for name, (spec, visit) in kinds.items():
    web = free_port()
    server = start(spec(web), lab)
    try:
      wait_for_tcp(server, web, 10)
      warm(server, lab)
      found[name] = visit(web)
    finally:
      server.process.stop()
  return found
