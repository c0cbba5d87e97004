"""pages.py -- hostile names as text; widths, colours and accessibility; less motion; no JavaScript."""

import pathlib

import axe_playwright_python
from report import expect, expect_match, expect_match_soon, expect_soon

from dashboard.browser import Browser
from dashboard.scene import Scene

WIDTHS = (320, 800, 1600)
SCHEMES = ("light", "dark")
AXE = pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js"
IMPACTS = ("serious", "critical")
# What is wider than the page, for a line about a failure.
WIDER = """return [...document.querySelectorAll("body *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 5).map((node) => `${node.tagName} ${node.id} ${node.className}`)"""
JUDGE = """const [impacts, done] = arguments;
  axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => done(violations
    .filter((each) => impacts.includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3).join(" and ")}`)));"""


def _label(octets: bytes) -> bytes:
  return bytes([len(octets)]) + octets


# The labels of names that a browser, a terminal or a layout may take for something else, and a part of their text.
LONGEST = b"".join(map(_label, (b"m" * 63, b"w" * 63, b"i" * 63, b"l" * 61))) + b"\0"
HOSTILE = {
  r"<img\032src=x\032onerror=alert\(1\)>.example.": _label(b"<img src=x onerror=alert(1)>") + _label(b"example") + b"\0",
  r"\"><script>alert\(2\)</script>.example.": _label(b'"><script>alert(2)</script>') + _label(b"example") + b"\0",
  r"'\000'.example.": _label(b"'\0'") + _label(b"example") + b"\0",
  r"a\226\128\174b.example.": _label("a\u202eb".encode()) + _label(b"example") + b"\0",
  r"\\u202e.example.": _label(rb"\u202e") + _label(b"example") + b"\0",
  "m" * 63 + ".": LONGEST,
}


def check_hostile(scene: Scene, browser: Browser) -> None:
  """Names that are asked for, and that are written into the page's fields."""
  browser.open(scene.url)
  expect_soon("dashboard: names before hostile ones", True, lambda: bool(browser.texts("#names-rows tr")))
  browser.click("#live-button")
  expect_soon("dashboard: a reader for hostile names", 1, lambda: scene.now()["tail"]["readers"])
  scene.load.pause()
  for _ in range(12):
    scene.ask(*HOSTILE.values())
  for text in HOSTILE:
    expect_soon(f"dashboard: {text[:24]} among live queries", True, lambda start=text: _has_name(browser, "live", start))
  # A new page gets a new report at once.
  browser.open(scene.url)
  expect_soon("dashboard: names with hostile ones", True, lambda: browser.is_shown("names-more"))
  browser.click("#names-more")
  for text in HOSTILE:
    expect(f"dashboard: {text[:24]} among names", True, _has_name(browser, "names", text))
  browser.write("action-name", "<img src=x onerror=alert(3)>.example")
  browser.click("#action-flush")
  expect_match_soon("dashboard: a hostile name in a result", "<img src=x onerror=alert", lambda: browser.text("#result"))
  for width in WIDTHS:
    browser.resize(width)
    _expect_fits(browser, f"hostile names, {width}", width)
  browser.resize(1600)
  expect("dashboard: nothing of hostile names becomes an element", 0,
         browser.run("return document.querySelectorAll('main img, main script, aside img').length"))
  # An alert would make every command of the driver fail.
  expect("dashboard: no alert", True, browser.run("return true"))
  browser.click("#result-close")
  browser.expect_quiet("with hostile names", may_fail=True)
  scene.load.start()


def _has_name(browser: Browser, table: str, start: str) -> bool:
  """Whether a table has a name that begins so, all of it in its title."""
  return browser.run("""return [...document.querySelectorAll(`#${arguments[0]}-rows .name`)].some((node) =>
    node.textContent.startsWith(arguments[1]) && node.title === node.textContent)""", table, start)


def _expect_fits(browser: Browser, name: str, width: int) -> None:
  """Expects no scrolling to the side."""
  browser.keep_picture(name)
  if not expect(f"dashboard: {name}, width of the page", True, browser.width_of_content() <= width):
    print(f"  wider: {browser.run(WIDER)}", flush=True)


def check_looks(scene: Scene, browser: Browser, when: str) -> None:
  """Three widths, light and dark; axe-core judges both schemes."""
  browser.open(scene.url)
  expect_soon(f"dashboard: {when}, the page is there", True, lambda: len(browser.texts("#providers-rows tr")) > 0)
  for scheme in SCHEMES:
    browser.prefer(prefers_color_scheme=scheme)
    for width in WIDTHS:
      browser.resize(width)
      _expect_fits(browser, f"{when}, {scheme}, {width}", width)
    expect(f"dashboard: {when}, {scheme}, the scheme counts", scheme == "dark", browser.run(
      "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((value) => value < 80)"))
    # Past the page's policy, as a debugger may.
    browser.cdp("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
    found = browser.driver.execute_async_script(JUDGE, list(IMPACTS))
    expect(f"dashboard: {when}, {scheme}, axe-core", [], found)
  browser.prefer()
  browser.expect_quiet(f"looks, {when}")


def check_motion(scene: Scene, browser: Browser) -> None:
  """With less motion the page changes every ten seconds, not with every sample."""
  browser.prefer(prefers_reduced_motion="reduce")
  browser.open(scene.url)
  expect_match_soon("dashboard: less motion, figures", "^Resolving", lambda: browser.text("#state-sentence"))
  browser.run("""window.changes = new Set();
    new MutationObserver(() => changes.add(document.querySelector("#load-facts").innerText))
      .observe(document.querySelector("#load-facts"), {subtree: true, childList: true, characterData: true});""")
  number = scene.sample_number()
  browser.wait("four samples", lambda: scene.sample_number() >= number + 4)
  # That of the beginning may still come, and one more.
  changes = browser.run("return changes.size")
  expect(f"dashboard: less motion, {changes} changes in four samples", True, changes <= 2)
  browser.prefer()
  browser.expect_quiet("less motion")


def check_without_script(scene: Scene, browser: Browser) -> None:
  """One sentence, in a browser of its own."""
  with Browser(browser.pictures, scene.origin, has_script=False) as other:
    other.driver.get(scene.url)
    said = other.driver.find_element("tag name", "body").text
    expect_match("dashboard: without JavaScript", r"^\s*This page needs JavaScript.*httpdnsd top", said)
