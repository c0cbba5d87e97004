"""test_check_types.py -- Scripts/check-types counts a type's own lines and stored properties."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "Scripts" / "check-types"
_LOADER = importlib.machinery.SourceFileLoader("check_types", str(_PATH))
check_types = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_types", _LOADER))
sys.modules["check_types"] = check_types
_LOADER.exec_module(check_types)
Size = check_types.Size

SOURCE = '''
/// A `struct Text` in a comment { does not count.
final class Engine: Part {
  static let most = 3
  private let loop: EventLoop
  @Guarded(by: loop) public private(set) var count = 0

  weak var owner: (any Owner)?
  var (low, high) = (0, 1)
  var watched = 0 {
    didSet { count += 1 }
  }
  var isBusy: Bool { count == 1 }
  var name: String {
    "struct Other { let a = 1 }"
  }

  enum State {
    case idle
  }

  func run(
    times: Int = 2
  ) {
    let local = times
    var other = local
  }
}
'''


class SizeTests(unittest.TestCase):
  """Sizes of types."""

  def test_stored_properties_are_counted(self) -> None:
    # loop, count, owner, low, high, watched.
    self.assertEqual(check_types.count([SOURCE])["Engine"].properties, 6)

  def test_lines_of_nested_types_are_their_own(self) -> None:
    sizes = check_types.count([SOURCE])
    self.assertEqual(sizes["Engine.State"].lines, 3)
    self.assertEqual(sizes["Engine"].lines, 20)

  def test_extensions_count_for_their_type(self) -> None:
    more = "extension Engine {\n  func stop() {}\n}\nextension Engine.State {\n  var isIdle: Bool { true }\n}\n"
    sizes = check_types.count([SOURCE, more])
    self.assertEqual((sizes["Engine"].lines, sizes["Engine"].properties), (23, 6))
    self.assertEqual(sizes["Engine.State"], Size(6, 0))

  def test_a_type_that_is_too_large_is_a_mistake(self) -> None:
    sizes = {"A": Size(501, 0), "B": Size(0, 26), "C": Size(500, 25)}
    self.assertEqual([text.split(":")[0] for text in check_types.mistakes(sizes, {})], ["A", "B"])

  def test_an_exception_only_falls(self) -> None:
    larger = {"A": Size(600, 0)}
    self.assertEqual(check_types.mistakes({"A": Size(600, 25)}, larger), [])
    self.assertIn("601 lines", check_types.mistakes({"A": Size(601, 0)}, larger)[0])
    self.assertIn("no exception", check_types.mistakes({"A": Size(500, 25)}, larger)[0])


if __name__ == "__main__":
  unittest.main()
