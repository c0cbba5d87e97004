"""test_sanitize.py -- Scripts/sanitize fails where the tests do, in whatever way."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts/sanitize"
WELL = "✔ Test run with 3 tests in 1 suite passed after 1 seconds."


class SanitizeTests(unittest.TestCase):
  """The script, with a `swift` that writes a given log."""

  def exit_code(self, log: str, then: str) -> int:
    """What the script ends with when `swift test` writes a log and then does something."""
    with tempfile.TemporaryDirectory() as name:
      root = Path(name)
      for folder in ("Scripts", "bin", ".build-asan"):
        (root / folder).mkdir()
      shutil.copy(SCRIPT, root / "Scripts/sanitize")
      swift = f"#!/bin/sh\nif [ \"$1\" = test ]; then\ncat <<'END'\n{log}\nEND\n{then}\nfi\n"
      helpers = {f"Scripts/{name}": "#!/bin/sh\n" for name in ("install-packages", "test-venv", "test-valkey")}
      for path, text in {**helpers, "bin/swift": swift}.items():
        (root / path).write_text(text)
        (root / path).chmod(0o755)
      environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "SANITIZE_SECONDS": "1"}
      return subprocess.run([root / "Scripts/sanitize", "address"], env=environment, capture_output=True, check=False).returncode

  def test_all_is_well(self) -> None:
    self.assertEqual(self.exit_code(WELL, "exit 0"), 0)

  def test_a_report_and_a_failed_test(self) -> None:
    self.assertEqual(self.exit_code(f"==1==ERROR: AddressSanitizer: heap-use-after-free\n{WELL}", "exit 0"), 1)
    self.assertEqual(self.exit_code(f"✘ Test a() failed after 1 seconds.\n{WELL}", "exit 0"), 1)

  def test_a_crash_behind_the_last_line(self) -> None:
    self.assertEqual(self.exit_code(WELL, "kill -SEGV $$"), 1)
    self.assertEqual(self.exit_code("", "exit 0"), 1)

  def test_a_test_that_never_ends(self) -> None:
    self.assertEqual(self.exit_code(WELL, "exec sleep 30"), 1)


if __name__ == "__main__":
  unittest.main()
