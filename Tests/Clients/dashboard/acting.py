"""acting.py -- signing in and out, actions that the daemon carries out, and live queries."""

from report import call, expect, expect_match, expect_match_soon, expect_soon

from dashboard.browser import Browser
from dashboard.scene import BUSY, FAILING, Scene

STORED = "return localStorage.getItem('httpdnsd.session') ?? ''"
# Asked by no load.
OWN, OTHER = "own.bench.example", "other.bench.example"


def check_sign_in(scene: Scene, browser: Browser) -> None:
  """By the address that the command prints; a code works once."""
  browser.requests()
  url = scene.sign_in_url()
  code = url.partition("#")[2]
  expect_match("dashboard: the printed address", rf"^{scene.url}#[\w-]{{22}}$", url)
  browser.open(url)
  expect_soon("dashboard: the code leaves the address", scene.url, lambda: browser.driver.current_url)
  expect_match_soon("dashboard: the token is stored", '"token"', lambda: browser.run(STORED))
  expect_soon("dashboard: panels of a session", True, lambda: all(map(browser.is_shown, ("names", "failing", "live"))))
  expect_match("dashboard: end of the session", "^Signed in until", browser.text("#session-text"))
  sent = browser.requests()
  expect("dashboard: the code is in no URL and no Referer", [],
         [each["url"] for each in sent if code in each["url"].partition("#")[0] + str(each["headers"])])
  browser.run("location.hash = arguments[0]", code)
  expect_match_soon("dashboard: a used code while signed in", "wrong, was used.*session of this page goes on",
                    lambda: " ".join(browser.text("#result").split()))
  expect("dashboard: a used code does not end the session", [True, scene.url],
         [browser.is_shown("names"), browser.driver.current_url])
  browser.click("#result-close")
  expect("dashboard: no cookie", [], browser.driver.get_cookies())
  browser.expect_quiet("signing in", may_fail=True)


def check_sign_out(scene: Scene, browser: Browser) -> None:
  """In one tab, seen in the other; then codes that give nothing."""
  url = scene.sign_in_url()
  browser.open(url)
  first = browser.driver.current_window_handle
  browser.driver.switch_to.new_window("tab")
  browser.open(scene.url)
  expect_soon("dashboard: another tab is signed in", True, lambda: browser.is_shown("names"))
  browser.click("#sign-out")
  expect_soon("dashboard: signed out", True, lambda: browser.is_shown("signin") and not browser.is_shown("names"))
  browser.driver.close()
  browser.driver.switch_to.window(first)
  expect_soon("dashboard: signed out in the other tab", True, lambda: browser.is_shown("signin"))
  expect("dashboard: no name stays after signing out", False, "bench.example" in browser.driver.page_source)
  expect("dashboard: no token stays after signing out", "", browser.run(STORED))
  browser.expect_quiet("signing out", may_fail=True)
  for what, address in (("a wrong code", f"{scene.url}#{'A' * 22}"), ("a code that was used", url)):
    browser.open(address)
    expect_match_soon(f"dashboard: {what}", "wrong, was used", lambda: browser.text("#signin-text"))
    expect(f"dashboard: {what} leaves the address", scene.url, browser.driver.current_url)
    expect(f"dashboard: {what} signs no one in", [False, ""], [browser.is_shown("names"), browser.run(STORED)])
    browser.expect_quiet(what, may_fail=True)


def check_actions(scene: Scene, browser: Browser) -> None:
  """Each is seen at the daemon, and its result on the page."""
  browser.open(scene.url)
  expect_soon("dashboard: names for actions", True, lambda: bool(browser.texts("#names-rows tr")))
  _check_refresh(scene, browser)
  _check_flush(scene, browser)
  _check_report(scene, browser)
  _check_flush_of_all(scene, browser)
  expect("dashboard: actions in the log", 5, len(scene.logged(r"NOTICE dashboard: user 0: ")))
  browser.expect_quiet("actions")


def _requests_for(scene: Scene, name: str) -> int:
  return sum(name in str(each) for each in scene.simulator("alidns", "requests"))


def _check_refresh(scene: Scene, browser: Browser) -> None:
  scene.ask(OWN)
  before = _requests_for(scene, OWN)
  browser.write("action-name", OWN)
  browser.click("#action-refresh")
  expect_match_soon("dashboard: refresh, its result", rf"Refreshed {OWN}.*A: .*from alidns", lambda: browser.text("#result"))
  expect("dashboard: refresh, at the provider", True, _requests_for(scene, OWN) > before)


def _check_flush(scene: Scene, browser: Browser) -> None:
  scene.ask(OTHER)
  browser.write("action-name", OWN)
  browser.click("#action-flush")
  expect_match_soon("dashboard: flush of a name, its result", rf"Flushed {OWN}.*removed: [12] cached answer",
                    lambda: browser.text("#result"))
  expect("dashboard: flush of a name", [], scene.ask_control("cache", OWN)["entries"])
  expect("dashboard: flush of a name, others stay", 1, len(scene.ask_control("cache", OTHER)["entries"]))
  row = f"tr[data-name='{BUSY}.'][data-type=A] button[aria-label^=Refresh]"
  browser.click(f"#names-rows {row}")
  expect_match_soon("dashboard: refresh of a row, its result", rf"Refreshed {BUSY}.*A: 192\.0\.2\.1, 192\.0\.2\.2",
                    lambda: browser.text("#result"))


def _check_report(scene: Scene, browser: Browser) -> None:
  row = f"#names-rows tr[data-name='{BUSY}.'][data-type=A]"
  browser.click(f"{row} summary")
  expect("dashboard: addresses of a name", ["192.0.2.1", "192.0.2.2"], sorted(browser.texts(f"{row} li code")))
  browser.click(f"{row} li button[aria-label='Report 192.0.2.1 bad']")
  expect_match_soon("dashboard: report bad, its result", r"192\.0\.2\.1 is now last in 1 answer", lambda: browser.text("#result"))
  said = call("dig", "@127.0.0.1", "-p", str(scene.ports["dns"]), BUSY, "+short").text
  expect("dashboard: report bad", ["192.0.2.2", "192.0.2.1"], said.split())


def _check_flush_of_all(scene: Scene, browser: Browser) -> None:
  scene.load.pause()
  browser.click("#action-all")
  expect("dashboard: flush of everything asks", True, browser.is_shown("confirm"))
  browser.click("#confirm-cancel")
  expect("dashboard: flush of everything, cancelled", True, scene.ask_control("stats")["cache"]["entries"] > 5)
  browser.click("#action-all")
  browser.click("#confirm-flush")
  expect_match_soon("dashboard: flush of everything, its result", r"Flushed everything.*removed: \d+ cached answers.*notified: ",
                    lambda: browser.text("#result"))
  # Names in refresh.keep are fetched again.
  expect_soon("dashboard: flush of everything", True, lambda: scene.ask_control("stats")["cache"]["entries"] <= 2)
  shown = browser.text("#result")
  before = scene.sample_number()
  browser.wait("two more samples", lambda: scene.sample_number() >= before + 2)
  expect("dashboard: the result stays in sight", [shown, True], [browser.text("#result"), browser.run(
    "const {top, bottom} = document.getElementById('result').getBoundingClientRect(); return top >= 0 && bottom <= innerHeight")])
  browser.click("#result-close")
  expect("dashboard: the result is closed", False, browser.is_shown("result"))
  scene.load.start()


def check_live(scene: Scene, browser: Browser) -> None:
  """Off at first; by name; failed ones only; stopped."""
  def names() -> set[str]:
    return set(browser.texts("#live-rows tr:nth-child(-n + 3) .name"))

  browser.requests()
  browser.open(scene.url)
  expect_match_soon("dashboard: live queries are off at first", "^Off", lambda: browser.text("#live-text"))
  expect("dashboard: live queries, no request at first", [], _tails(browser))
  browser.click("#live-button")
  expect_soon("dashboard: live queries come", True, lambda: len(browser.texts("#live-rows tr")) > 5)
  expect_soon("dashboard: live queries, several names", True, lambda: len(names()) > 1)
  rows = [" ".join(row.split()) for row in browser.texts("#live-rows tr")]
  expect_match("dashboard: live queries, a hit", r"127\.0\.0\.1 udp \S+ A hit – NOERROR [\d.]+ ms", "\n".join(rows))
  browser.write("live-name", f"{BUSY}\n")
  expect_soon("dashboard: live queries of a name", {f"{BUSY}."}, names)
  browser.write("live-name", "\n")
  browser.run("document.getElementById('live-failed').click()")
  expect_soon("dashboard: live queries that failed", {f"{FAILING}."}, names, 15)
  expect_match("dashboard: live queries, the reason", "SERVFAIL", browser.text("#live-rows tr:first-child"))
  expect("dashboard: live queries, at most 200 lines", True, len(browser.texts("#live-rows tr")) <= 200)
  browser.click("#live-button")
  expect("dashboard: live queries are stopped", "Stopped.", browser.text("#live-text"))
  expect_soon("dashboard: live queries, no reader stays", 0, lambda: scene.now()["tail"]["readers"])
  browser.expect_quiet("live queries")


def _tails(browser: Browser) -> list[str]:
  return [each["url"] for each in browser.requests() if "/queries" in each["url"]]
