"""test_control.py -- the description of the Debian package is as narrow as lintian wants it."""

import unittest
from pathlib import Path

CONTROL = Path(__file__).resolve().parent.parent.parent / "packaging/debian/control"
# What lintian calls `extended-description-line-too-long`.
WIDTH = 80


class ControlTests(unittest.TestCase):
  def test_lines_of_the_description_are_narrow(self) -> None:
    description = CONTROL.read_text(encoding="utf-8").split("\nDescription: ")[1]
    self.assertEqual([line for line in description.splitlines() if len(line) > WIDTH], [])


if __name__ == "__main__":
  unittest.main()
