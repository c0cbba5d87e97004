"""test_bench_dashboard.py -- the verdicts of the benchmark about the dashboard notice what they are there for."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from bench.dashboard import DashboardCosts  # noqa: E402  (the path must be set first)
from bench.dashboard_cpu import (  # noqa: E402
  BUSY,
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
from bench.dashboard_rest import OFF, ON, Memory, Wakeups  # noqa: E402
from bench.encrypted_lab import BEFORE, DNSDIST, OURS  # noqa: E402
from bench.report import Findings, requirement_rows  # noqa: E402
from bench.report_dashboard import dashboard_parts, dashboard_rows  # noqa: E402
from bench.viewers import Visit, named_files  # noqa: E402

ONE_PAGE, MANY_PAGES, HITS, VISIT, MEMORY, WAKEUPS = range(6)


def looks(one: float = 9, many: float = 10, dnsdist: float = 12) -> Looks:
  """CPU at both loads; 10 ms a second with a scraper."""
  of = {UNWATCHED: 8.0, SCRAPER: 10.0, ONE: one, MANY: many, DNSDIST_UNWATCHED: 6.0, DNSDIST_PAGE: dnsdist}
  return Looks({(load, condition): [value] for load in LOADS for condition, value in of.items()})


def memory(opened: float = 500, grown: float = 8) -> Memory:
  """Memory of pages that are open; a daemon without them grows by 100 KiB."""
  return Memory(180, before={True: [4000], False: [4000]}, opened={True: [opened], False: [60]},
                grown={True: [grown], False: [40]})


def wakeups(on: float = 2, off: float = 1) -> Wakeups:
  """Idle daemons; the one of before wakes once a minute."""
  return Wakeups(120, {ON: [on], OFF: [off], BEFORE: [1]}, {ON: [4000], OFF: [3900], BEFORE: [3900]})


def visits(content: int = 270_000) -> dict[str, Visit]:
  """A visit of this size beside one of 395,000 octets."""
  return {OURS: Visit(17, content, content + 9_000), DNSDIST: Visit(11, 395_000, 399_000)}


def costs(**changes: object) -> DashboardCosts:
  """Figures that are all good, but for the changes."""
  good = {"visits": visits(), "looks": looks(), "hits": Hits([1.01, 1.0, 1.3], [1.02, 1.0, 4.0]), "memory": memory(),
          "wakeups": wakeups()}
  return DashboardCosts(**{**good, **changes})


class DashboardVerdictTests(unittest.TestCase):
  """The rows of the part `dashboard`."""

  def verdicts(self, found: DashboardCosts | None) -> list[str]:
    """The verdict of each row."""
    dashboard_parts(found)
    return [row.verdict for row in dashboard_rows(found)]

  def test_figures_within_their_limits_are_met(self) -> None:
    """Nothing is missed that is good."""
    self.assertEqual(self.verdicts(costs()), ["met"] * 6)

  def test_what_was_not_measured_is_not_met(self) -> None:
    """A part that did not run says so, and one that ran and failed."""
    for found in (None, DashboardCosts()):
      self.assertEqual(self.verdicts(found), ["not measured"] * 6)

  def test_each_figure_beyond_its_limit_is_missed(self) -> None:
    """And no other one."""
    beyond = [
      (ONE_PAGE, {"looks": looks(one=10.1, many=12)}), (ONE_PAGE, {"looks": looks(dnsdist=8.9)}),
      (MANY_PAGES, {"looks": looks(many=11)}), (HITS, {"hits": Hits([1.03], [1])}), (HITS, {"hits": Hits([1], [1.06])}),
      (VISIT, {"visits": visits(277_000)}), (MEMORY, {"memory": memory(opened=2200)}), (MEMORY, {"memory": memory(grown=65)}),
      (WAKEUPS, {"wakeups": wakeups(on=2.5)}), (WAKEUPS, {"wakeups": wakeups(on=2.5, off=1.5)}),
    ]
    for row, changes in beyond:
      with self.subTest(row=row, changes=changes):
        expected = ["met"] * 6
        expected[row] = "**missed**"
        self.assertEqual(self.verdicts(costs(**changes)), expected)

  def test_a_comparison_that_is_missing_leaves_the_figure_open(self) -> None:
    """Without dnsdist, and without the program of before."""
    found = looks()
    for load in (BUSY, IDLE):
      del found.milliseconds[load, DNSDIST_UNWATCHED], found.milliseconds[load, DNSDIST_PAGE]
    idle = wakeups()
    del idle.a_minute[BEFORE]
    verdicts = self.verdicts(costs(looks=found, visits={OURS: Visit(17, 1, 2)}, wakeups=idle))
    self.assertEqual([verdicts[row] for row in (ONE_PAGE, VISIT, WAKEUPS)], ["not fully measured"] * 3)

  def test_a_run_of_the_part_alone_reports_its_rows(self) -> None:
    """Other parts have rows of their own; with any of the rest there is the whole table."""
    def rows(parts: list[str]) -> int:
      return len(requirement_rows(Findings(False, parts, 5, 2, 60, 11, dashboard=costs())))

    self.assertEqual(rows(["dashboard"]), 6)
    self.assertGreater(rows(["dashboard", "metrics"]), 30)


class NamedFileTests(unittest.TestCase):
  """What belongs to a page."""

  def test_files_of_a_page_are_found(self) -> None:
    """Scripts, style sheets and images; relative to the page, or from the root."""
    text = ('<link rel="icon" href="/dashboard/icon.svg"><script type="module" src="/dashboard/app.js"></script>'
            '<script src="js/d3.min.js"></script><a href="/elsewhere"></a><img src="logo.png"/><img src="https://a.example/b">')
    self.assertEqual(named_files("/dashboard", text),
                     ["/dashboard/icon.svg", "/dashboard/app.js", "/js/d3.min.js", "/logo.png"])

  def test_modules_of_a_module_are_found(self) -> None:
    """Also where the names that are imported take several lines."""
    text = 'import { a,\n  b } from "./dom.js";\nimport { c } from "./rows.js";\nconst from = "./no.js";'
    self.assertEqual(named_files("/dashboard/app.js", text), ["/dashboard/dom.js", "/dashboard/rows.js"])


if __name__ == "__main__":
  unittest.main()
