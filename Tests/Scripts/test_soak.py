"""test_soak.py -- the model of Benchmarks/run-soak notices what it is there for."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from hostile import soak  # noqa: E402  (the path must be set first)
from hostile.clients import Query  # noqa: E402
from hostile.lab import MARK  # noqa: E402


class SoakTests(unittest.TestCase):
  """run-soak's model of the answers."""

  def setUp(self) -> None:
    self.judge = soak.Judge()
    self.judge.eras = [0.0, 500.0]
    self.judge.networks = [(0.0, ""), (100.0, "com example"), (200.0, "corp.example"), (300.0, "")]

  def violations(self, name: str, sent: float, *, rcode: int = 0, address: str | None = None, latency: float | None = 0.01) -> int:
    """How many violations one query adds."""
    before = len(self.judge.violations)
    self.judge.judge(Query(name, sent, latency, rcode, address))
    return len(self.judge.violations) - before

  def test_a_query_without_an_answer_is_a_violation(self) -> None:
    self.assertEqual(self.violations("h1.good1.example", 10, latency=None), 1)
    self.judge.outages = [(5.0, 15.0)]
    self.assertEqual(self.violations("h1.good1.example", 10, latency=None), 1)

  def test_a_wrong_address_is_a_violation(self) -> None:
    self.assertEqual(self.violations("h1.good1.example", 10, address="10.0.0.1"), 0)
    self.assertEqual(self.violations("h1.good1.example", 10, address="10.0.0.2"), 1)
    self.assertEqual(self.violations("h1.good1.example", 600, address="10.0.0.1"), 1)
    self.assertEqual(self.violations("k1.corp.example", 250, address="10.0.0.1"), 0)

  def test_localdns_and_failures_are_for_outages_alone(self) -> None:
    self.assertEqual(self.violations("h1.good1.example", 10, address=MARK), 1)
    self.assertEqual(self.violations("k1.corp.example", 250, address=MARK), 1)
    self.assertEqual(self.violations("h1.good1.example", 10, rcode=2), 1)
    self.assertEqual(self.violations("h1.good1.example", 10, rcode=0), 1)
    self.judge.outages = [(5.0, 15.0)]
    self.assertEqual(self.violations("h1.good1.example", 10, address=MARK), 0)
    self.assertEqual(self.violations("h1.good1.example", 10, rcode=2), 0)
    self.assertEqual(self.violations("h1.good1.example", 40, address=MARK), 1)

  def test_the_intranet_is_there_on_its_network_alone(self) -> None:
    for sent, is_there in ((50, False), (150, False), (250, True), (350, False)):
      self.assertEqual(self.violations("i1.corp.example", sent, address=MARK), 0 if is_there else 1, sent)
      self.assertEqual(self.violations("i1.corp.example", sent, rcode=3), 1 if is_there else 0, sent)
      self.assertEqual(self.violations("i1.corp.example", sent, rcode=2), 1, sent)
    # While the network changes, both are right.
    for moment in (200.5, 302):
      self.assertEqual(self.violations("i1.corp.example", moment, address=MARK), 0, moment)
      self.assertEqual(self.violations("i1.corp.example", moment, rcode=3), 0, moment)

  def test_what_never_came_about_is_named(self) -> None:
    self.assertEqual(len(self.judge.missing()), 3)
    self.violations("h1.good1.example", 10, address="10.0.0.1")
    self.violations("i1.corp.example", 10, rcode=3)
    self.violations("i1.corp.example", 250, address=MARK)
    self.assertEqual(self.judge.missing(), [])

  def test_growth_is_noticed(self) -> None:
    flat = [soak.Sample(20 << 20, 20, 2) for _ in range(200)]
    self.assertEqual(soak.growth(flat)[1], [])
    for what, step in (("resident", 64 << 10), ("descriptors", 1), ("threads", 1)):
      grown = [soak.Sample(20 << 20, 20, 2) for _ in range(200)]
      for number, sample in enumerate(grown):
        setattr(sample, what, getattr(sample, what) + number * step)
      self.assertEqual([found.split(":")[0] for found in soak.growth(grown)[1]], [what])

  def test_a_short_run_says_that_it_shows_no_growth(self) -> None:
    lines, found = soak.growth([soak.Sample((20 + number) << 20, 20, 2) for number in range(20)])
    self.assertIn("not judged", lines[0])
    self.assertEqual(found, [])


if __name__ == "__main__":
  unittest.main()
