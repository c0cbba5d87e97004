"""test_bench_encrypted.py -- the verdicts of the benchmark about DNS over TLS and HTTPS notice what they are there for."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from bench import report_encrypted  # noqa: E402  (the path must be set first)
from bench.encrypted import EncryptedCosts  # noqa: E402
from bench.encrypted_handshakes import (  # noqa: E402
  ELSEWHERE,
  FLOOR,
  FULL,
  KINDS,
  RESUMED,
  WITH,
  WITHOUT,
  Handshakes,
  Sample,
  Storm,
)
from bench.encrypted_hits import LIMITED, LOADS, EncryptedHits  # noqa: E402
from bench.encrypted_idle import OFF, ON, UNSET, IdleCosts, Presence  # noqa: E402
from bench.encrypted_lab import BEFORE, DNSDIST, OURS, UNBOUND  # noqa: E402
from bench.encrypted_renewal import Renewals  # noqa: E402
from bench.figures import Allocations  # noqa: E402
from bench.h2load import read_outcome  # noqa: E402
from bench.measure import Results  # noqa: E402
from bench.measure import Sample as HitSample  # noqa: E402
from bench.processes import BenchError  # noqa: E402

DOT, DOH, ALLOCATIONS, HANDSHAKE, MEMORY, STORM, TCP, RATE_LIMIT, RENEWAL, PRESENCE = range(10)


def hits(dot: int = 100, doh: int = 100, dnsdist: int = 110, tcp: int = 101, limited: int = 102, calls: int = 0,
         is_complete: bool = True) -> EncryptedHits:
  """Hits that take the others 110, 100 and 100 ns, and httpdnsd what is given."""
  found = EncryptedHits(allocations={protocol: Allocations(calls, 40_000) for protocol in ("dot", "doh", "udp")})
  costs = {"dot": {OURS: dot, UNBOUND: 110, DNSDIST: dnsdist}, "doh": {OURS: doh, UNBOUND: 110, DNSDIST: dnsdist},
           "tcp": {OURS: tcp, BEFORE: 100}, "udp": {OURS: 100, LIMITED: limited}}
  for protocol, programs in costs.items():
    results = found.results.setdefault(protocol, Results())
    for name, cost in programs.items():
      for load in LOADS:
        results.add(HitSample(1, name, load.name, cost * 1000, 1000, 1, is_complete))
  return found


def handshakes(full: float = 600, resumed: float = 350) -> Handshakes:
  """Handshakes that take the floor 500 and 300 microseconds."""
  return Handshakes({(OURS, FULL): [full], (OURS, RESUMED): [resumed], (FLOOR, FULL): [500], (FLOOR, RESUMED): [300]})


def idle(dot: float = 20, doh: float = 28) -> IdleCosts:
  """Connections that take unbound 21 and 29 KiB."""
  return IdleCosts({(OURS, "dot"): [dot], (OURS, "doh"): [doh], (UNBOUND, "dot"): [21], (UNBOUND, "doh"): [29]})


def storms(cpu: float = 1.04, hit: float = 1.05, miss: float = 1.05, failed: int = 0) -> dict[str, Storm]:
  """What handshakes do to others."""
  none = Sample(1, 1, 1)
  return {OURS: Storm({WITH: [Sample(cpu, hit, miss)], ELSEWHERE: [Sample(2, 2, 2)], WITHOUT: [none]}, 400, failed)}


def presence(threads: int = 4, sockets: int = 6) -> dict[str, Presence]:
  """A daemon that had four threads and six sockets."""
  return {UNSET: Presence(4, 6), OFF: Presence(threads, sockets), ON: Presence(5, 8), BEFORE: Presence(4, 6)}


def costs(**changes: object) -> EncryptedCosts:
  """Figures that are all good, but for the changes."""
  good = {"hits": hits(), "handshakes": handshakes(), "storms": storms(), "idle": idle(),
          "renewals": Renewals([2.2, 3.1], 4, 0), "presence": presence()}
  return EncryptedCosts(**{**good, **changes})


class EncryptedVerdictTests(unittest.TestCase):
  """The rows of the part `encrypted`."""

  def verdicts(self, found: EncryptedCosts | None, version: str = "1.7.3-2") -> list[str]:
    """The verdict of each row, beside that version of dnsdist."""
    with mock.patch.object(report_encrypted, "package_version", lambda _: version):
      report_encrypted.encrypted_parts(found)
      return [row.verdict for row in report_encrypted.encrypted_rows(found)]

  def test_figures_within_their_limits_are_met(self) -> None:
    """Nothing is missed that is good."""
    self.assertEqual(self.verdicts(costs()), ["met"] * 10)

  def test_what_was_not_measured_is_not_met(self) -> None:
    """A part that did not run says so."""
    self.assertEqual(self.verdicts(None), ["not measured"] * 10)

  def test_each_figure_beyond_its_limit_is_missed(self) -> None:
    """And no other one."""
    beyond = [
      (DOT, {"hits": hits(dot=111)}), (DOT, {"hits": hits(dnsdist=99)}), (DOH, {"hits": hits(doh=111)}),
      (ALLOCATIONS, {"hits": hits(calls=100)}), (HANDSHAKE, {"handshakes": handshakes(full=660)}),
      (HANDSHAKE, {"handshakes": handshakes(resumed=400)}), (MEMORY, {"idle": idle(dot=22)}), (MEMORY, {"idle": idle(doh=30)}),
      (STORM, {"storms": storms(cpu=1.06)}), (STORM, {"storms": storms(hit=1.11)}), (STORM, {"storms": storms(miss=1.11)}),
      (STORM, {"storms": storms(failed=1)}), (TCP, {"hits": hits(tcp=103)}), (RATE_LIMIT, {"hits": hits(limited=104)}),
      (RENEWAL, {"renewals": Renewals([2, 5.1], 4, 0)}), (RENEWAL, {"renewals": Renewals([2], 1, 1)}),
      (PRESENCE, {"presence": presence(threads=5)}), (PRESENCE, {"presence": presence(sockets=7)}),
    ]
    for row, changes in beyond:
      with self.subTest(row=row, changes=changes):
        expected = ["met"] * 10
        expected[row] = "**missed**"
        self.assertEqual(self.verdicts(costs(**changes)), expected)

  def test_answers_that_were_lost_are_no_good_figure(self) -> None:
    """A server that drops queries is cheap."""
    found = self.verdicts(costs(hits=hits(is_complete=False)))
    self.assertEqual([found[row] for row in (DOT, DOH, TCP, RATE_LIMIT)], ["**missed**"] * 4)

  def test_dnsdist_counts_over_https_from_1_9_on(self) -> None:
    """Its older server is shown only."""
    found = costs(hits=hits(dot=90, doh=100, dnsdist=99))
    self.assertEqual([self.verdicts(found, version)[DOH] for version in ("1.7.3-2", "1.9.10-1", "2.0.1")],
                     ["met", "**missed**", "**missed**"])

  def test_a_peer_that_is_missing_leaves_the_figure_open(self) -> None:
    """Half of a comparison proves nothing."""
    found = hits()
    found.results["dot"] = Results()
    for name in (OURS, UNBOUND):
      for load in LOADS:
        found.results["dot"].add(HitSample(1, name, load.name, 1000, 1000, 1, True))
    self.assertEqual(self.verdicts(costs(hits=found))[DOT], "not fully measured")

  def test_peers_alone_have_tables_and_no_verdict(self) -> None:
    """The part runs without httpdnsd."""
    alone = EncryptedCosts(handshakes=Handshakes({(name, kind): [1] for name in (UNBOUND, FLOOR) for kind in KINDS}),
                           idle=IdleCosts({(UNBOUND, "dot"): [21], (UNBOUND, "doh"): [29]}), storms={UNBOUND: Storm()})
    self.assertEqual(self.verdicts(alone), ["not measured"] * 10)


class H2LoadTests(unittest.TestCase):
  """What h2load prints."""

  _TEXT = """finished in 2.01s, 28633.00 req/s, 2.12MB/s
requests: 57266 total, 57330 started, 57266 done, {good} succeeded, 0 failed, 0 errored, 0 timeout
status codes: {good} 2xx, 0 3xx, 0 4xx, 0 5xx
"""

  def test_counts_are_read(self) -> None:
    """Requests that were done, and the rate."""
    outcome = read_outcome(self._TEXT.format(good=57266))
    self.assertEqual((outcome.sent, outcome.answered, outcome.rate, outcome.is_complete), (57266, 57266, 28633.0, True))

  def test_another_status_is_a_loss(self) -> None:
    """It stands for a query without an answer."""
    self.assertFalse(read_outcome(self._TEXT.format(good=57265)).is_complete)

  def test_other_text_is_an_error(self) -> None:
    """As when no connection was made."""
    with self.assertRaises(BenchError):
      read_outcome("finished in 1s, 0 req/s")


if __name__ == "__main__":
  unittest.main()
