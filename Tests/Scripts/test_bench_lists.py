"""test_bench_lists.py -- the verdicts of the benchmark about lists notice what they are there for."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from bench.figures import Allocations  # noqa: E402  (the path must be set first)
from bench.list_hits import ListHits  # noqa: E402
from bench.list_loading import Changes, Start, Starts  # noqa: E402
from bench.list_sets import SetCosts  # noqa: E402
from bench.listed import BEFORE, BLOCKING, CLASSED, DNSMASQ, FEW, LISTED, MANY, OURS, SMARTDNS  # noqa: E402
from bench.lists import ListCosts  # noqa: E402
from bench.measure import SATURATED, Sample  # noqa: E402
from bench.report_lists import list_parts, list_rows  # noqa: E402


def starts(octets: float = 12, cpu: float = 300, seconds: float = 0.3, threads: int = 2) -> Starts:
  """Starts in which httpdnsd takes this much, and nothing without a list."""
  def one(names: int, each: float, spent: float, took: float, count: int = 1) -> Start:
    return Start([took], [spent], [names * each + 4e6], [count])

  of = {(program, names): one(names, each, spent if names == MANY else 0, took if names == MANY else 0)
        for program, each, spent, took in ((SMARTDNS, 230, 900, 1), (DNSMASQ, 230, 2000, 2)) for names in (0, FEW, MANY)}
  of |= {(OURS, names): one(names, octets, cpu if names == MANY else 0, seconds if names == MANY else 0, threads)
         for names in (0, FEW, MANY)}
  return Starts(of | {(BLOCKING, MANY): one(MANY, octets, cpu, seconds), (BEFORE, 0): one(0, 0, 0, 0, 2)})


def hits(listed: int = 104, classed: int = 101, before: int = 100, calls: int = 0) -> ListHits:
  """Hits in which httpdnsd takes 100 ns, and others what is given."""
  found = ListHits(allocations={LISTED.format(OURS): Allocations(calls, 40_000)})
  costs = {OURS: 100, LISTED.format(OURS): listed, CLASSED.format(OURS): classed, BEFORE: before, SMARTDNS: 180,
           LISTED.format(SMARTDNS): 200, DNSMASQ: 160, LISTED.format(DNSMASQ): 160}
  for name, cost in costs.items():
    found.results.add(Sample(1, name, SATURATED.name, cost * 1000, 1000, 1, True))
  return found


def sets(added: float = 0.05, held: int = 3, alone: float = 9_000, commanded: float = 100) -> SetCosts:
  """First answers of three names."""
  plain = {program: [0.2] * 3 for program in (OURS, SMARTDNS, DNSMASQ)}
  return SetCosts(plain, {program: [0.2 + added] * 3 for program in plain}, dict.fromkeys(plain, held), commanded, alone)


def costs(**changes: object) -> ListCosts:
  """Figures that are all good, but for the changes."""
  return ListCosts(**{"starts": starts(), "changes": Changes([1.5], [2.0], [1.5]), "hits": hits(), "sets": sets(), **changes})


class ListVerdictTests(unittest.TestCase):
  """The rows of the part `lists`."""

  def verdicts(self, found: ListCosts) -> list[str]:
    """The verdict of each row."""
    list_parts(found)
    return [row.verdict for row in list_rows(found)]

  def test_good_figures_are_met(self) -> None:
    self.assertEqual(set(self.verdicts(costs())), {"met"})

  def test_each_bad_figure_is_missed_in_its_row_alone(self) -> None:
    bad = [{"starts": starts(octets=17)}, {"starts": starts(cpu=460)}, {"changes": Changes([3.1], [2.0], [1.5])},
           {"hits": hits(listed=106)}, {"hits": hits(calls=40_000)}, {"hits": hits(classed=103)}, {"sets": sets(added=0.2)},
           {"sets": sets(alone=12_000)}, {"starts": starts(seconds=0.6)}, {"starts": starts(threads=3)}]
    for row, changes in enumerate(bad):
      found = self.verdicts(costs(**changes))
      self.assertEqual([number for number, word in enumerate(found) if word != "met"], [row], changes)

  def test_other_bad_figures_are_missed(self) -> None:
    for changes in ({"changes": Changes([1.5], [4.0], [1.5])}, {"hits": hits(before=98)}, {"sets": sets(held=2)},
                    {"sets": sets(commanded=300)}):
      self.assertIn("**missed**", self.verdicts(costs(**changes)), changes)

  def test_nothing_measured_is_not_met(self) -> None:
    self.assertEqual(set(self.verdicts(ListCosts())), {"not measured"})
    self.assertEqual(list_parts(None), [])


if __name__ == "__main__":
  unittest.main()
