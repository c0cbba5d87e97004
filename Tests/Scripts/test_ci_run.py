"""test_ci_run.py -- .ci/run repeats only the tests that judge real time, once, and never a crash."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Logs each call; the first call of a target for which there is a log fails, and leaves that log.
MAKE = """#!/bin/sh
echo "$*" >> calls
rm -f .build/test.log
if [ -e "$1.log" ]; then
  mv "$1.log" .build/test.log
  exit 1
fi
echo "✔ Test run with 1 test in 1 suite passed after 1 seconds." > .build/test.log
"""
ISSUE = '✘ Test "late" recorded an issue at FaultTests.swift:12:5: Expectation failed: x\n'
CLOSING = "✘ Test run with 96 tests in 33 suites failed after 199.4 seconds with 1 issue.\n"


class RunTest(unittest.TestCase):
  """In a folder with a make that only says what it was asked for."""

  def setUp(self) -> None:
    self.folder = Path(tempfile.mkdtemp(prefix="httpdnsd-ci-"))
    self.addCleanup(shutil.rmtree, self.folder)
    shutil.copytree(ROOT / ".ci", self.folder / ".ci")
    (self.folder / ".build").mkdir()
    tools = self.folder / "tools"
    tools.mkdir()
    (tools / "make").write_text(MAKE, encoding="utf-8")
    (tools / "make").chmod(0o755)

  def run_script(self, target: str, log: str) -> subprocess.CompletedProcess:
    """Runs it, after the first call of a target fails with this log."""
    (self.folder / f"{target}.log").write_text(log, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{self.folder}/tools:{os.environ['PATH']}", "CI_WITHOUT_SYSTEM": "1"}
    return subprocess.run([self.folder / ".ci/run"], env=environment, capture_output=True, text=True, check=False,
                          timeout=60)

  def calls(self) -> list[str]:
    """What make was asked for."""
    return (self.folder / "calls").read_text(encoding="utf-8").splitlines()

  def test_tests_by_the_clock_run_once_more(self) -> None:
    """And the last lines say so."""
    done = self.run_script("test-clock", ISSUE + CLOSING)
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual(self.calls(), ["check", "test", "test-clock", "test-clock", "fuzz"])
    self.assertIn("run: 1 repeats of make test-clock", done.stdout)
    self.assertIn("run: left out: system tests", done.stdout)

  def test_nothing_else_runs_again(self) -> None:
    """Any other test, a crash, no end."""
    for target, log in (("test", ISSUE + CLOSING), ("test-clock", ISSUE), ("test-clock", ""),
                        ("test-clock", ISSUE + "Fatal error: Index out of range\n" + CLOSING),
                        ("test-clock", ISSUE + CLOSING + "error: Exited with unexpected signal code 11\n")):
      with self.subTest(target=target, log=log):
        (self.folder / "calls").unlink(missing_ok=True)
        done = self.run_script(target, log)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(self.calls()[-1], target)


if __name__ == "__main__":
  unittest.main()
