"""changing.py -- what the page makes of a provider that goes down, of a daemon that ends, and of being hidden."""

import contextlib
import signal
import time

from report import expect, expect_match, expect_match_soon, expect_soon

from dashboard.browser import Browser
from dashboard.scene import Scene

# The page may be this much later than `httpdnsd providers`, in seconds.
BEHIND = 3.0
# Fetches of the page while the daemon is away for a few seconds, and when it is back.
FEW_REQUESTS = 12
# The daemon's limit.
MOST_STREAMS = 8


def check_outage(scene: Scene, browser: Browser) -> None:
  """A provider's simulator ends, and comes back."""
  browser.open(scene.url)
  expect_match_soon("dashboard: alidns is up", "up", lambda: browser.cell("providers", "alidns", "State"))
  scene.stop_simulator("alidns")
  _expect_in_time(scene, browser, "down", r"^Resolving by tencent\b[^;]*; alidns is down\b")
  expect_match("dashboard: the failures of a provider", r"[1-9]\d* \(", browser.cell("providers", "alidns", "Failures"))
  expect_match("dashboard: the title says that something is wrong", "^! ", browser.driver.title)
  scene.start_simulator("alidns")
  _expect_in_time(scene, browser, "up", r"^Resolving by ")
  browser.expect_quiet("an outage")


def _expect_in_time(scene: Scene, browser: Browser, state: str, sentence: str) -> None:
  """Looks at daemon and page in turns until both report a state."""
  seen: dict[str, float] = {}
  deadline = time.monotonic() + 60
  while len(seen) < 2 and time.monotonic() < deadline:
    if scene.provider("alidns")["state"] == state:
      seen.setdefault("daemon", time.monotonic())
    if state in browser.cell("providers", "alidns", "State"):
      seen.setdefault("page", time.monotonic())
  behind = seen.get("page", deadline) - seen.get("daemon", 0)
  expect(f"dashboard: alidns is {state}, seen {behind:.1f} s after the daemon", True, behind <= BEHIND)
  expect_match_soon(f"dashboard: alidns is {state}, the sentence", sentence, lambda: browser.text("#state-sentence"), BEHIND)


def check_restart(scene: Scene, browser: Browser) -> None:
  """The daemon is restarted, then killed; each ends the session."""
  for what, number in (("a restart", signal.SIGTERM), ("a crash", signal.SIGKILL)):
    browser.open(scene.sign_in_url())
    expect_soon(f"dashboard: signed in before {what}", True, lambda: browser.is_shown("names"))
    before = scene.now()["started"]
    browser.requests()
    scene.stop_daemon(number)
    expect_match_soon(f"dashboard: {what}, the banner", r"^No data since \d\d:\d\d:\d\d .*", lambda: browser.text("#banner"))
    expect(f"dashboard: {what}, old figures are grey", True, browser.run("return document.body.classList.contains('old')"))
    expect_match(f"dashboard: {what}, old state", "^Unknown since", browser.text("#state-sentence"))
    scene.start_daemon()
    expect_soon(f"dashboard: {what}, figures again", True, lambda: _is_well(browser), 20)
    expect(f"dashboard: {what}, a later start", True, scene.now()["started"] > before)
    expect_match_soon(f"dashboard: {what}, running for seconds", r"running since .*, \d+ s\b",
                      lambda: browser.text("#state-facts"))
    expect_soon(f"dashboard: {what}, the command in the place of names", True,
                lambda: browser.is_shown("signin") and not browser.is_shown("names"))
    _expect_few_requests(scene, browser, what)
    browser.expect_quiet(what, may_fail=True)


def _is_well(browser: Browser) -> bool:
  return not browser.is_shown("banner") and browser.text("#state-sentence").startswith("Resolving by")


def _expect_few_requests(scene: Scene, browser: Browser, what: str) -> None:
  """No loop: once the stream is there again, nothing more is asked for."""
  sent = browser.requests()
  tokens = [each["url"] for each in sent if "Authorization" in each["headers"]]
  expect(f"dashboard: {what}, {len(sent)} requests, {len(tokens)} with the old token", True,
         len(sent) <= FEW_REQUESTS and len(tokens) <= 6)
  number = scene.sample_number()
  browser.wait("three samples", lambda: scene.sample_number() >= number + 3)
  # The history is loaded once more, soon after the first sample.
  later = [each["url"] for each in browser.requests()]
  expect(f"dashboard: {what}, no loop of requests", True, len(later) <= 4)


def check_full(scene: Scene, browser: Browser) -> None:
  """Eight other pages are open: the ninth says so, and goes on when one is closed."""
  browser.driver.get("about:blank")
  with contextlib.ExitStack() as others:
    for _ in range(MOST_STREAMS):
      others.enter_context(browser.wait("a stream", scene.open_stream))
    browser.open(scene.url)
    expect_match_soon("dashboard: the ninth page", f"trying again.*{MOST_STREAMS} pages are open", lambda: browser.text("#banner"))
  expect_soon("dashboard: the ninth page when there is room", True, lambda: _is_well(browser), 20)
  browser.expect_quiet("while pages were open", may_fail=True)


def check_hidden(scene: Scene, browser: Browser) -> None:
  """Another tab is in front: the streams close, and come back with the samples between."""
  first = browser.driver.current_window_handle
  browser.open(scene.sign_in_url())
  expect_soon("dashboard: signed in before hiding", True, lambda: browser.is_shown("names"))
  browser.click("#live-button")
  expect_soon("dashboard: a reader before hiding", 1, lambda: scene.now()["tail"]["readers"])
  expect_soon("dashboard: live queries before hiding", True, lambda: bool(browser.texts("#live-rows tr")))
  browser.requests()
  before = scene.connections()
  browser.driver.switch_to.new_window("tab")
  # That of the figures, and that of the queries.
  expect_soon("dashboard: connections while the page is hidden", before - 2, scene.connections)
  expect("dashboard: no reader while the page is hidden", 0, scene.now()["tail"]["readers"])
  number = scene.sample_number()
  browser.driver.close()
  browser.driver.switch_to.window(first)
  expect_soon("dashboard: a reader when the page is seen again", 1, lambda: scene.now()["tail"]["readers"])
  expect_soon("dashboard: samples when the page is seen again", True, lambda: scene.sample_number() > number)
  expect("dashboard: no banner after hiding", False, browser.is_shown("banner"))
  again = [each["headers"] for each in browser.requests() if each["url"].endswith("/events")]
  expect("dashboard: the stream goes on after the last sample", True, bool(again) and "Last-Event-ID" in again[-1])
  browser.click("#live-button")
  browser.expect_quiet("while the page was hidden", may_fail=True)
