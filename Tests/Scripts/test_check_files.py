"""test_check_files.py -- Scripts/check-files finds links that lead nowhere, old words, comments that repeat their declaration, and two ADRs
with one number."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts/check-files"
sys.dont_write_bytecode = True
_spec = importlib.util.spec_from_loader("check_files", SourceFileLoader("check_files", str(SCRIPT)))
check_files = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_files)


class LinkTests(unittest.TestCase):
  """Links between documents."""

  def broken(self, text: str) -> list[str]:
    """What is wrong with a document of that text, beside one that has two headings."""
    with tempfile.TemporaryDirectory() as name:
      root = Path(name)
      (root / "docs").mkdir()
      (root / "docs/other.md").write_text("# A name, `quoted`\n## Twice\n## Twice\n```\n# no heading\n```\n")
      (root / "here.md").write_text(text)
      return check_files.broken_links(root, Path("here.md"))

  def test_links_that_lead_somewhere(self) -> None:
    self.assertEqual(self.broken("[a](docs/other.md) [b](docs) [c](https://example.com/nowhere) [d](docs/other.md#twice-1)"), [])
    self.assertEqual(self.broken("# Here\n[a](#here) [b](docs/other.md#a-name-quoted)\n[c]: docs/other.md\n"), [])

  def test_links_that_lead_nowhere(self) -> None:
    self.assertEqual(self.broken("\n[a](docs/none.md)"), ["here.md:2: docs/none.md leads to no file"])
    self.assertEqual(len(self.broken("[a](#nowhere) [b](docs/other.md#no-heading) [c](docs/other.md#twice-2)")), 3)
    self.assertEqual(len(self.broken("[c]: docs/none.md\n")), 1)

  def test_code_has_no_links(self) -> None:
    self.assertEqual(self.broken("`[a](none.md)`\n\n```\n[b](none.md)\n```\n"), [])


class SleepTests(unittest.TestCase):
  """Tests that let real time pass."""

  def lines(self, text: str, path: str = "Tests/ATests/ATests.swift") -> list[int]:
    """The lines that are refused."""
    return [int(mistake.split(":")[0]) for mistake in check_files.sleeps(Path(path), text)]

  def test_whatever_sleeps_is_found(self) -> None:
    for call in ("try? await Task.sleep(for: .seconds(2))", "Thread.sleep(forTimeInterval: 1)", "usleep(1000)", "sleep(1)",
                 "nanosleep(&time, nil)", "poll(nil, 0, 100)", "select(0, nil, nil, nil, &time)"):
      self.assertEqual(self.lines(f"import A\n{call}\n"), [2], call)

  def test_a_real_loop_is_no_virtual_one(self) -> None:
    sleep = "await loop.sleep(for: .milliseconds(20))\n"
    self.assertEqual(self.lines(f"let loop = try EventLoop()\n{sleep}"), [2])
    self.assertEqual(self.lines(f"try onLoop {{ loop in\n{sleep}"), [2])
    self.assertEqual(self.lines(f"let loop = SimulatedLoop()\n{sleep}"), [])
    self.assertEqual(self.lines("try EventLoop()\nloop.schedule(after: .milliseconds(3)) { loop.stop() }\n"), [2])

  def test_waiting_with_a_limit_is_no_sleep(self) -> None:
    for call in ("await loop.sleep(for: .zero)", "poll(&entry, 1, 10_000)", "await loop.until { isDone }", "comes { isDone }",
                 "loop.schedule(after: .seconds(30)) { loop.stop() }", "loop.sleep(through: .seconds(5))"):
      self.assertEqual(self.lines(f"try EventLoop()\n{call}\n"), [], call)

  def test_those_that_may(self) -> None:
    self.assertEqual(self.lines("usleep(10)\n", "Tests/EndToEndTests/Support/Deadline.swift"), [])
    self.assertEqual(self.lines("usleep(10)\n", "Sources/A/A.swift"), [])
    for path in check_files.MAY_SLEEP:
      self.assertTrue((check_files.ROOT / path).is_file(), path)


class CallbackTests(unittest.TestCase):
  """Timers, events and captures that may outlive what they use."""

  def lines(self, text: str, path: str = "Sources/A/A.swift") -> list[int]:
    """The lines that are refused."""
    return [int(mistake.split(":")[0]) for mistake in check_files.callbacks(Path(path), text)]

  def test_what_may_outlive_its_owner_is_found(self) -> None:
    for line in ("connect { [unowned self] in end() }", "connect { [weak a, unowned self] in end() }", "connect {\n  [unowned a] in",
                 "private var timer: OwnedTimer?", "event_new(base, 1, 2, f, nil)", "fetch.timer.set(at: time, on: loop, for: self) { $0.end() }",
                 "timer.set(after: .seconds(1), on: loop, for: other) { $0.end() }",
                 "timer.set(\n  after: .seconds(1), on: loop,\n  for: other\n) { $0.end() }",
                 "{ [\n  a,\n  unowned b\n] in b.end() }",
                 "LoopEvent(on: loop, descriptor: d, .read, for: other) { $0.ready() }",
                 "place.take(on: loop, for: other) { $0.read() }", "SSL_CTX_new(TLS_client_method())"):
      self.assertEqual(self.lines(f"import A\n{line}\n"), [2], line)
      self.assertEqual(self.lines(line, "Sources/EventLoop/A.swift"), [])

  def test_what_ends_with_its_owner(self) -> None:
    for line in ("connect { [weak self] in self?.end() }", "private unowned let carrier: Carrier", "private let timer = OwnedTimer()",
                 "timer.set(after: .seconds(1), on: loop, for: self) { $0.end() }", "a.timer.set(at: f(1), on: loop, for: a) { $0.end() }",
                 "LoopEvent(on: loop, descriptor: d, .read, for: self) { $0.ready() }",
                 "place.take(on: loop, for: self) { $0.read() }", "socket.place.take(on: loop, for: socket) { $0.read() }",
                 "let a = SSL_CTX_new(m)\nctls_bound_work(a)", "timer.set(at: time, on: loop) { [self] in end() }", "$0.timer.set(after: t, on: $0.loop, for: $0) { $0.end() }"):
      self.assertEqual(self.lines(line), [], line)


class HeaderVariableTests(unittest.TestCase):
  """Static variables of C headers."""

  def test_what_each_file_has_of_its_own_is_found(self) -> None:
    for line in ("static int left;", "  static uint32_t left = 16384;", "static char *name = NULL;", "static int left[4];",
                 "static uint8_t x[] = {1};", "static int a, b;", "static const char *name = 0;", "_Thread_local static int x;"):
      self.assertEqual([mistake.split(":")[0] for mistake in check_files.header_variables(Path("Sources/CA/CA.h"), f"// a\n{line}\n")],
                       ["2"], line)

  def test_what_is_the_same_in_all(self) -> None:
    for line in ("static inline int f(void) { return 1; }", "static const int most = 1;", "enum { MOST = 1 };", "static int f(int a);"):
      self.assertEqual(check_files.header_variables(Path("Sources/CA/CA.h"), line), [], line)


class RestatementTests(unittest.TestCase):
  """Summaries that only repeat their declaration."""

  def lines(self, text: str, path: str = "Sources/A/A.swift") -> list[int]:
    """The lines that are refused."""
    return [int(mistake.split(":")[0]) for mistake in check_files.restatements(Path(path), text)]

  def test_what_repeats_the_declaration_is_found(self) -> None:
    for summary, declaration in (
        ("Creates a report.", "init(code: Int)"), ("Creates counters of 0.", "@inlinable\n  init() {}"),
        ("Creates a type from its number.", "public init(rawValue: UInt16)"), ("The name.", "let name: String"),
        ("The owner name.", "var owner: DomainName"), ("The report's name.", "var name: String { text }"),
        ("Whether this is the root.", "var isRoot: Bool { octets.count == 1 }"), ("Closes all.", "func closeAll()"),
        ("Adds a query.", "mutating func add(\n    _ query: Query, at time: (Int) -> Int\n  ) {"), ("A location.", "enum Location {"),
        ("An empty report type counter.", "@_noAllocation @inlinable\n  init()"), ("A name.", "case name(String)"),
        ("Adds a connection.\n  ///\n  /// - Returns: the one to close.", "func add(_ connection: Int) -> Int"),
        ("The cached queries.", "var queryCache: [Query]")):
      text = f"struct TypeReportCounters {{\n\n  /// {summary}\n  {declaration}\n"
      self.assertEqual(self.lines(text), [3], summary)
      self.assertEqual(self.lines(text, "Tests/ATests/ATests.swift"), [])

  def test_what_says_more_is_none(self) -> None:
    for summary, declaration in (
        ("Seconds.", "let ttl: UInt32"), ("The length of a key in octets.", "var keyLength: Int"),
        ("QNAME.", "var name: DomainName"), ("Creates a report without text.", "init(code: Int)"),
        ("The name; nil for the root.", "var name: String?"), ("The port, RFC 7858.", "let port: UInt16"),
        ("IN: the Internet.", "static var internet: Class"), ("Creates a port.", "func open(_ port: Port)"),
        ("The name.\n  /// Nil for the root.", "var name: String?"), ("- Throws: Fault", "func fault() throws(Fault)"),
        ("Whether the text is empty.", "var isBlank: Bool { text.isEmpty }")):
      self.assertEqual(self.lines(f"struct Report {{\n  /// {summary}\n  {declaration}\n"), [], summary)

  def test_the_type_around_is_the_nearest_one(self) -> None:
    text = "struct Query {\n  enum Kind {\n  }\n  /// A query.\n  var value: Int\n}\n/// The query.\nvar value: Int\n"
    self.assertEqual(self.lines(text), [4])


class PlainEnglishTests(unittest.TestCase):
  """Phrases for which there are plain words."""

  def lines(self, text: str, path: str = "docs/a.md") -> list[int]:
    """The lines that are refused."""
    return [int(mistake.split(":")[0]) for mistake in check_files.old_words(Path(path), text)]

  def test_old_words_are_found(self) -> None:
    for phrase in check_files.BETTER_WORDS:
      self.assertEqual(self.lines(f"first\nIt is {phrase}.\n"), [2], phrase)
      self.assertEqual(self.lines(f"{phrase.upper()}\n"), [1], phrase)
    self.assertEqual(self.lines("a\n/// is told\n/// of it\n", "Sources/A/A.swift"), [2])
    self.assertEqual(self.lines("as it goes\nby\n"), [1])
    self.assertEqual(self.lines("a\n#: So\n#: many\n", "Benchmarks/a.py"), [2])
    self.assertIn("write: again", check_files.old_words(Path("a.md"), "anew")[0])

  def test_other_words_are_none(self) -> None:
    self.assertEqual(self.lines("renewed; untold offers; for whom; underway; in vainglory; told often\n"), [])
    self.assertEqual(self.lines("a personal file; amended; recommend; arrests; asNobody; as of today; so much; no person\n"), [])

  def test_names_and_plain_english_are_allowed(self) -> None:
    for text in ("user=nobody", "${SUDO_USER:-nobody}", 'chown("nobody")', r"use = \"nobody\"", "user=somebody",
                 "the user `nobody`", "@ SOA ns.example. nobody.invalid. 1 2 3 4 5", "if value is None:", "nil if there is none",
                 "There\n/// is none.", "this rests on two measurements", "so many names that the cache is full",
                 "so many\n# names that the cache is full"):
      self.assertEqual(self.lines(f"{text}\n", "Tests/A/a"), [], text)

  def test_the_same_words_elsewhere_are_found(self) -> None:
    for text in ("`nobody waits for it`", "a user that nobody knows", "nobody's", 'say "somebody else"', "nil if it is none",
                 "is none of these", "So many names that are asked for", "so many octets", "what was refused rests for a minute",
                 "let nobody = try ask()"):
      self.assertEqual(self.lines(f"first\n{text}\n", "Tests/A/a"), [2], text)

  def test_code_in_a_document_is_left_out(self) -> None:
    text = "say `again`, not `anew`\n```\nasked in vain\n```\n"
    self.assertEqual(self.lines(text), [])
    self.assertEqual(self.lines("func `it is read anew`()\n", "Tests/A/A.swift"), [1])

  def test_exempt_files_exist(self) -> None:
    for path in check_files.MAY_HAVE_OLD_WORDS:
      self.assertTrue((check_files.ROOT / path).exists(), path)


class DecisionTests(unittest.TestCase):
  """Numbers and headings of ADRs."""

  def mistakes(self, **files: str) -> list[str]:
    """What is wrong with a folder of these."""
    with tempfile.TemporaryDirectory() as name:
      for stem, text in files.items():
        (Path(name) / f"{stem}.md").write_text(text)
      return check_files.decision_mistakes(Path(name))

  def test_one_form_of_heading(self) -> None:
    self.assertEqual(self.mistakes(**{"0001-a": "# 0001: A\n", "0003-b": "# 0003: B\n"}), [])
    self.assertEqual(len(self.mistakes(**{"0001-a": "# 1. A\n", "0002-b": "# 0003: B\n"})), 2)

  def test_one_decision_a_number(self) -> None:
    self.assertEqual(len(self.mistakes(**{"0001-a": "# 0001: A\n", "0001-b": "# 0001: B\n"})), 1)
    self.assertEqual(len(self.mistakes(**{"1-a": "# 1: A\n"})), 1)


if __name__ == "__main__":
  unittest.main()
