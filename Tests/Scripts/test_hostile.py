"""test_hostile.py -- the verdicts of Benchmarks/run-hostile and run-holds notice what they are there for."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Benchmarks"))

from bench.processes import BenchError  # noqa: E402  (the path must be set first)
from hostile import hits, holds  # noqa: E402
from hostile.lab import Adversary, Lab, Programs  # noqa: E402
from hostile.report import compose  # noqa: E402
from hostile.scenes import Figure  # noqa: E402
from hostile.watch import Turns  # noqa: E402

MISSING = {"scene": "late zone (6 s)", "way": "doh", "place": "same address", "why": "BenchError: no answer"}


def verdict(*figures: Figure, missing: tuple[dict, ...] = (), **more: object) -> bool:
  """Whether a report with these figures says that all is as it must be."""
  now = {"figures": [figure.as_dict() for figure in figures], "missing": list(missing), **more}
  return compose({"machine": "none", "now": now})[1]


def good(**changes: object) -> Figure:
  """A scene in which all is well, but for the changes."""
  return Figure(**{"scene": "late zone (6 s)", "way": "json", "place": "same address", "asked": 400, "slower": 1.1,
                   "transfers": 240, **changes})


class ReportTests(unittest.TestCase):
  """run-hostile's verdict."""

  def test_good_figures_are_met(self) -> None:
    self.assertTrue(verdict(good()))

  def test_a_bad_figure_is_missed(self) -> None:
    for changes in ({"localdns": 1}, {"failed": 1}, {"slower": 1.51}):
      self.assertFalse(verdict(good(**changes)), changes)
    self.assertFalse(verdict(good(scene="10,000 random names", transfers=5_001)))

  def test_a_scene_that_was_not_measured_is_missed(self) -> None:
    self.assertFalse(verdict(good(), missing=(MISSING,)))
    self.assertFalse(verdict())

  def test_a_scene_in_which_nothing_happened_is_missed(self) -> None:
    for changes in ({"asked": 0}, {"transfers": 0}, {"slower": 0.0}, {"slower": float("inf")}, {"slower": float("nan")}):
      self.assertFalse(verdict(good(**changes)), changes)

  def test_a_name_that_is_late_after_an_outage_is_missed(self) -> None:
    title = "outage of 140 s, ended"
    self.assertTrue(verdict(good(scene=title, asked=20, within=20)))
    self.assertFalse(verdict(good(scene=title, asked=20, within=19)))
    self.assertFalse(verdict(good(scene=title, asked=0, within=0)))
    self.assertFalse(verdict(good(), missing=({**MISSING, "scene": title},)))

  def test_a_hit_may_cost_no_memory(self) -> None:
    self.assertTrue(verdict(good(), instructions=2800, allocations=-0.03))
    self.assertFalse(verdict(good(), instructions=2800, allocations=1.0))


class ProfileTests(unittest.TestCase):
  """What is read from callgrind's profile."""

  def test_calls_for_memory_are_added_up(self) -> None:
    profile = "\n".join(["fn=(1) serve", "cfn=(2) malloc", "calls=3 0", "0 10", "cfn=(3) free", "calls=9 0", "0 10", "fn=(4) read",
                         "cfn=(2)", "calls=4 0", "0 10", "cfn=(5) calloc'2", "calls=1 0", "0 10", "fn=(2)", "0 5"])
    self.assertEqual(hits.calls(profile), 8)


class _Echo:
  """What the watch asks: it sends back whatever comes."""

  def __init__(self) -> None:
    self._socket = socket.create_server(("127.0.0.1", 0))
    self.port = self._socket.getsockname()[1]
    threading.Thread(target=self._serve, daemon=True).start()

  def _serve(self) -> None:
    while True:
      client, _ = self._socket.accept()
      while octets := client.recv(4096):
        client.sendall(octets)


@mock.patch.object(holds, "_SETTLING", 0)
class HoldsTests(unittest.TestCase):
  """run-holds counts no round that shows nothing."""

  def setUp(self) -> None:
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.lab = Lab(Programs(Path(), Path()), Path(folder.name))
    self.daemon = subprocess.Popen(["sleep", "60"])
    self.addCleanup(self.end)

  def end(self) -> None:
    self.daemon.kill()
    self.daemon.wait()

  def measure(self, attack: Callable[[], int], port: int | None = None, turns: int = 1_000_000) -> tuple[int, int]:
    self.lab.daemon_process = self.daemon
    seen = mock.Mock(spec=Turns)
    seen.read.return_value = (1.0, turns)
    return holds.measure(self.lab, lambda _: (port or _Echo().port, attack), seen)

  def attack(self) -> int:
    time.sleep(0.5)
    return 3

  def test_a_round_in_which_something_hostile_was_done_counts(self) -> None:
    asked, done = self.measure(self.attack)
    self.assertGreater(asked, 100)
    self.assertEqual(done, 3)

  def test_a_daemon_that_ends_is_an_error(self) -> None:
    def attack() -> int:
      self.end()
      return self.attack()
    with self.assertRaisesRegex(BenchError, "has ended with -9"):
      self.measure(attack)

  def test_a_daemon_that_takes_no_connection_is_an_error(self) -> None:
    with socket.socket() as closed:
      closed.bind(("127.0.0.1", 0))
      with self.assertRaisesRegex(BenchError, "no connection"):
        self.measure(self.attack, closed.getsockname()[1])

  def test_a_daemon_that_was_hardly_asked_is_an_error(self) -> None:
    with mock.patch.object(holds, "_LEAST_ASKED", 1_000_000), self.assertRaisesRegex(BenchError, "was asked"):
      self.measure(self.attack)

  def test_a_loop_whose_turns_were_not_seen_is_an_error(self) -> None:
    with self.assertRaisesRegex(BenchError, "5 turns of the loop were seen"):
      self.measure(self.attack, turns=5)

  def test_the_longest_turn_of_a_loop_is_seen(self) -> None:
    with tempfile.TemporaryDirectory() as folder:
      turns = Turns(Path(folder))
      program = """if True:
        import select, time
        waits = select.epoll()
        for turn in range(7):
          waits.poll(0)
          end = time.thread_time() + (0.05 if turn == 2 else 0.001)
          while time.thread_time() < end:
            pass
      """
      subprocess.run([*turns.starter, sys.executable, "-c", program], check=True)
      longest, count = turns.read()
      self.assertEqual(count, 6)
      self.assertTrue(50 <= longest < 60, longest)

  def test_an_adversary_that_did_nothing_is_an_error(self) -> None:
    def attack() -> int:
      self.attack()
      return Adversary(self.lab, "flushes", "1").count("notes")
    self.addCleanup(self.lab.end)
    with self.assertRaisesRegex(BenchError, "nothing hostile"):
      self.measure(attack)

  def test_what_an_adversary_has_not_done_is_missing(self) -> None:
    self.addCleanup(self.lab.end)
    store = Adversary(self.lab, "store", "1")
    with socket.create_connection(("127.0.0.1", store.port)) as client:
      client.sendall(b"*1\r\n$4\r\nPING\r\n")
      self.assertEqual(store.count("commands"), 1)
    self.assertEqual(store.missing(), ["store: no lies"])


if __name__ == "__main__":
  unittest.main()
