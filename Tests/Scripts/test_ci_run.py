"""test_ci_run.py -- .ci/run repeats only the tests that .ci/repeats.txt names, and never a crash."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Logs each call; the first `make test` fails and leaves the log that the test wants.
MAKE = """#!/bin/sh
echo "$*" >> calls
[ "$1" = test ] || exit 0
if [ ! -e failed ]; then
  touch failed
  rm -f .build/test.log
  [ ! -e first.log ] || cp first.log .build/test.log
  exit 1
fi
echo "✔ Test run with 1 test in 1 suite passed after 1 seconds." > .build/test.log
"""
ISSUE = '✘ Test "{}" recorded an issue at {}.swift:12:5: Expectation failed: x\n'
CLOSING = "✘ Test run with 2296 tests in 330 suites failed after 199.4 seconds with 1 issue.\n"


class RunTest(unittest.TestCase):
  """In a folder with a make that only says what it was asked for."""

  def setUp(self) -> None:
    self.folder = Path(tempfile.mkdtemp(prefix="httpdnsd-ci-"))
    self.addCleanup(shutil.rmtree, self.folder)
    shutil.copytree(ROOT / ".ci", self.folder / ".ci")
    (self.folder / ".build").mkdir()
    for target, title in (("EndToEndTests", "late"), ("SimulatorTests", "other")):
      (self.folder / "Tests" / target).mkdir(parents=True)
      (self.folder / f"Tests/{target}/FaultTests.swift").write_text(f"@Test func `{title}`() {{}}\n", encoding="utf-8")
    (self.folder / "Tests/EndToEndTests/StaleTests.swift").write_text("", encoding="utf-8")
    tools = self.folder / "tools"
    tools.mkdir()
    (tools / "make").write_text(MAKE, encoding="utf-8")
    (tools / "make").chmod(0o755)

  def run_script(self, log: str | None) -> subprocess.CompletedProcess:
    """Runs it, after a first `make test` that fails with this log."""
    if log is not None:
      (self.folder / "first.log").write_text(log, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{self.folder}/tools:{os.environ['PATH']}", "CI_WITHOUT_SYSTEM": "1"}
    return subprocess.run([self.folder / ".ci/run"], env=environment, capture_output=True, text=True, check=False,
                          timeout=60)

  def calls(self) -> list[str]:
    """What make was asked for."""
    return (self.folder / "calls").read_text(encoding="utf-8").splitlines()

  def test_named_tests_run_again_by_their_target(self) -> None:
    """A base name that two targets have is told apart by the test's title."""
    done = self.run_script(ISSUE.format("late", "FaultTests") + ISSUE.format("x", "StaleTests") + CLOSING)
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn("test TESTS=--filter 'EndToEndTests\\..*/(FaultTests|StaleTests)\\.swift'", self.calls())
    self.assertIn("run: 2 repeats: FaultTests StaleTests", done.stdout)
    self.assertIn("run: left out: system tests", done.stdout)

  def test_nothing_else_runs_again(self) -> None:
    """A file of another target, one that is not named, an issue without a file, a crash, no end, no log."""
    late = ISSUE.format("late", "FaultTests")
    for log in (ISSUE.format("other", "FaultTests") + CLOSING, late + ISSUE.format("x", "WireTests") + CLOSING,
                late + '✘ Test "y" recorded an issue: unknown\n' + CLOSING, CLOSING, late, None,
                late + "Fatal error: Index out of range\n" + CLOSING,
                late + CLOSING + "error: Exited with unexpected signal code 11\n"):
      with self.subTest(log=log):
        for name in ("failed", "calls", "first.log"):
          (self.folder / name).unlink(missing_ok=True)
        done = self.run_script(log)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(self.calls(), ["check", "test"])


if __name__ == "__main__":
  unittest.main()
