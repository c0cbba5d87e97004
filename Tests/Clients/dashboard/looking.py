"""looking.py -- what the page shows without a session and with one, panel by panel, beside what the commands print."""

import re

from report import expect, expect_match, expect_match_soon, expect_soon

from dashboard.browser import Browser
from dashboard.scene import BUSY, FAILING, PROVIDERS, UNITS_PER_DAY, Scene

PANELS = ("state", "glance", "queries", "ratio", "hits", "misses", "load", "providers", "fleet", "ranking", "encrypted")
PLOTS = PANELS[2:6]
OF_A_SESSION = ("names", "failing", "live")
# The end of a plot's axis, in seconds since 1970.
END = "return Chart.getChart(document.querySelector(`#${arguments[0]} canvas`)).options.scales.x.max"
PICTURES = 4
# Plots take turns with the samples: each has been drawn in this time, in seconds.
TURNS = 25
# The number of points of a plot's first curve.
POINTS = "return Chart.getChart(document.querySelector(`#${arguments[0]} canvas`)).data.datasets[0].data.length"


def check_signed_out(scene: Scene, browser: Browser) -> None:
  """Figures at once, and nothing of what was asked. The load begins here."""
  scene.load.start()
  browser.open(scene.url)
  expect_match_soon("dashboard: state without a session", r"^Resolving by alidns\b", lambda: browser.text("#state-sentence"))
  expect("dashboard: panels without a session", [], [id for id in PANELS if not browser.is_shown(id)])
  expect("dashboard: panels of a session are away", [], [id for id in OF_A_SESSION if browser.is_shown(id)])
  expect_match("dashboard: the command that signs in", "httpdnsd dashboard", browser.text("#signin"))
  before = _queries(browser)
  expect_soon("dashboard: figures move", True, lambda: _queries(browser) > before)
  expect("dashboard: plots are drawn", [], [id for id in PLOTS if browser.run(POINTS, id) < 1])
  expect_match_soon("dashboard: failures without a session", r"failed \(SERVFAIL\).*httpdnsd dashboard shows which names",
                    lambda: browser.text("#state-failure"))
  _check_plots_go_on(browser)
  servers = [browser.cell("providers", name, "Server") for name in PROVIDERS]
  expect("dashboard: no server without a session", ["–"] * 3, servers)
  page = browser.run("return document.documentElement.outerHTML")
  expect("dashboard: no name without a session", [], [name for name in (BUSY, FAILING, "bench.example") if name in page])
  expect("dashboard: requests without a session carry no token", [],
         [each["url"] for each in browser.requests() if "Authorization" in each["headers"]])
  browser.expect_quiet("without a session")


def _check_plots_go_on(browser: Browser) -> None:
  """A picture beyond the window changes the viewport twice, at times between two frames, as printing does."""
  for _ in range(PICTURES):
    browser.picture()
  ends = {plot: browser.run(END, plot) for plot in PLOTS}
  expect_soon("dashboard: plots that do not go on after pictures", [],
              lambda: [plot for plot, end in ends.items() if browser.run(END, plot) <= end], TURNS)


def check_panels(scene: Scene, browser: Browser) -> None:
  """While nothing is asked, the page has the figures of the commands. The browser is signed in."""
  scene.load.pause()
  _wait_until_quiet(scene)
  # The first report of names comes at once, the next one after 10 s.
  browser.open(scene.url)
  expect_soon("dashboard: queries as in stats", scene.ask_control("stats")["queries"], lambda: _queries(browser))
  expect_soon("dashboard: names have come", True, lambda: bool(browser.texts("#names-rows tr")))
  stats, by_name = scene.ask_control("stats"), scene.ask_control("stats", "--by-name")
  _check_state(browser)
  _check_figures(browser, stats)
  _check_latency(browser, stats)
  for name in PROVIDERS:
    _check_provider(browser, scene.provider(name))
  _check_names(scene, browser, by_name)
  _check_features(scene, browser, stats)
  _check_spans(browser)
  browser.expect_quiet("while the panels were compared")
  scene.load.start()


def _wait_until_quiet(scene: Scene) -> None:
  """Refreshes and measurements may still go on."""
  def is_quiet() -> bool:
    first, second = scene.ask_control("stats"), scene.ask_control("stats")
    return first["queries"] == second["queries"] and not second["questions_under_way"]

  expect_soon("dashboard: the daemon is idle", True, is_quiet)


def _queries(browser: Browser) -> int:
  return number(browser.fact("load", "Queries"))


def number(text: str) -> int:
  """The first number of a text; -1 without one."""
  found = re.search(r"[\d,]+", text)
  return int(found[0].replace(",", "")) if found else -1


def _check_state(browser: Browser) -> None:
  expect_match("dashboard: version and start", r"^Version \d+\.\d+.*running since .*certificate: 89 days left",
               browser.text("#state-facts"))
  expect_match("dashboard: reasons", "alidns, the first provider: .*answers SERVFAIL", browser.text("#state-reasons"))


def _check_figures(browser: Browser, stats: dict) -> None:
  fates, cache = stats["fates"], stats["cache"]
  hits = fates["hit"] + fates["stale"]
  ratio = hits / (hits + fates["miss"] + fates["overflow"])
  # The figure is rounded down.
  expect("dashboard: hit ratio", f"{int(ratio * 1000 + 1e-9) / 10:.1f} %", browser.fact("glance", "Hit ratio"))
  expect_match("dashboard: hit ratio, its caption", r"asked a provider: 1 of \d", browser.text("#ratio-caption"))
  expect_match("dashboard: SERVFAIL responses", rf"\b{stats['rcodes']['servfail']} SERVFAIL responses",
               browser.text("#queries-caption"))
  expect("dashboard: cached answers", cache["entries"], number(browser.fact("load", "Cached answers")))
  expect("dashboard: memory of the cache", round(cache["octets"] / 1024), number(browser.fact("load", "Memory of the cache")))
  expect("dashboard: questions in flight", 0, number(browser.fact("load", "Questions in flight")))
  expect("dashboard: names that are refreshed", True, number(browser.fact("refresh", "Refreshing")) >= 1)
  expect("dashboard: transfers of refreshing", stats["refresh_transfers"], number(browser.fact("refresh", "In all")))


def _check_latency(browser: Browser, stats: dict) -> None:
  """The page has percentiles of rows, the command of everything: near each other."""
  for panel, key in (("hits", "latency_at_hand_ms"), ("misses", "latency_resolved_ms")):
    median, scale = re.search(r"at most ([\d.]+) (µs|ms|s)", browser.text(f"#{panel}-caption")).groups()
    shown = float(median) * {"µs": 0.001, "ms": 1, "s": 1000}[scale]
    expect(f"dashboard: median of {panel}, {median} {scale} beside {stats[key]['p50']} ms", True,
           0.4 < shown / stats[key]["p50"] < 2.5)


def _check_provider(browser: Browser, provider: dict) -> None:
  name = provider["name"]

  def cell(label: str) -> str:
    return browser.cell("providers", name, label)

  place = PROVIDERS.index(name)
  mark = "(– does not serve|▷ few of the answers)" if place else "▶ serves now"
  expect_match(f"dashboard: {name}, place and mark", rf"^{place + 1}\. {name} {mark}$",
               " ".join(browser.texts("#providers-rows th")[place].split()))
  expect_match(f"dashboard: {name}, state", "up", cell("State"))
  expect(f"dashboard: {name}, server", provider["server"], cell("Server"))
  expect(f"dashboard: {name}, transfers", provider["transfers"], number(cell("Transfers")))
  expect(f"dashboard: {name}, failures", provider["failures"], number(cell("Failures")))
  limit = f"of {UNITS_PER_DAY:,}" if provider["units_per_day"] else "no limit"
  expect_match(f"dashboard: {name}, units", rf"^\s*{provider['units_today']:,}\b.*{limit}", cell("Units today, UTC"))
  expect_match(f"dashboard: {name}, forecast", "too little data|about", cell("Forecast, by the last hour"))


def _check_names(scene: Scene, browser: Browser, by_name: dict) -> None:
  shown = browser.cell("names", f"{BUSY}.", "Queries")
  # Type 1 is A. Hits, and questions that a provider was asked.
  counted = next(each for each in by_name["names"] if (each["domain"], each["type"]) == (f"{BUSY}.", 1))
  expect("dashboard: queries of the busiest name", counted["cacheDnsNum"] + counted["requestPDnsNum"], number(shown))
  entry = next(each for each in scene.ask_control("cache", BUSY)["entries"] if each["type"] == "A")
  left = re.search(r"(?:(\d+) min)? ?(?:(\d+) s)?", browser.cell("names", f"{BUSY}.", "TTL left")).groups("0")
  expect("dashboard: TTL left", True, abs(60 * int(left[0]) + int(left[1]) - entry["fresh_seconds"]) < 12)
  expect_match("dashboard: fetched again", "refresh.keep", browser.cell("names", f"{BUSY}.", "Fetched again"))
  expect("dashboard: provider of an answer", "alidns", browser.cell("names", f"{BUSY}.", "Provider"))
  expect_match("dashboard: the state names a failing name, and why",
               rf"1 name failed in the last minute: {FAILING}\. A: .*SERVFAIL", browser.text("#state-failure"))
  browser.click("#state-failing")
  expect("dashboard: the link leads to the failing names", True, browser.run(
    "const {top, bottom} = document.getElementById('failing').getBoundingClientRect(); return top < innerHeight && bottom > 0"))
  expect_match("dashboard: a failing name with its reason", "SERVFAIL", browser.cell("failing", f"{FAILING}.", "Reason"))


def _check_features(scene: Scene, browser: Browser, stats: dict) -> None:
  ranking, fleet = stats["ranking"], scene.ask_control("fleet")
  expect_soon("dashboard: ranking, probes", ranking["probes"], lambda: number(browser.fact("ranking", "Probes")))
  expect("dashboard: ranking, whether measuring is hindered", "⚠ yes" if ranking["problems"] else "no",
         browser.fact("ranking", "Measuring is hindered"))
  expect("dashboard: fleet, the store", "used", browser.fact("fleet", "Store"))
  expect("dashboard: fleet, its daemons", len(fleet["members"]), number(browser.fact("fleet", "Daemons")))
  expect("dashboard: fleet, units", fleet["units"]["alidns"], number(browser.fact("fleet", "Units today, UTC, alidns")))
  scene.ask_by_tls(BUSY)
  expect_soon("dashboard: encrypted, queries by DoT", "1", lambda: browser.fact("encrypted", "Queries by DoT"))
  expect("dashboard: encrypted, handshakes", "1", browser.fact("encrypted", "Handshakes"))


def _check_spans(browser: Browser) -> None:
  """All three spans have rows; the table behind a button has them as text."""
  for span, title in (("1h", "1 h"), ("24h", "24 h"), ("10m", "10 min")):
    browser.run("document.getElementById(`span-${arguments[0]}`).click()", span)
    expect_match_soon(f"dashboard: span {title}", rf"last {title}\b", lambda: browser.text("#queries .span"))
    expect_soon(f"dashboard: span {title}, points", True, lambda: browser.run(POINTS, "queries") >= 1)
  browser.click("#queries-button")
  expect("dashboard: table of a plot", True, len(browser.texts("#queries-table tbody tr")) >= 3)
  browser.click("#queries-button")
