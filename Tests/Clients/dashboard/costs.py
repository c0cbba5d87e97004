"""costs.py -- what the page costs the browser: script time a sample, and memory."""

from report import expect, expect_soon

from dashboard.browser import Browser
from dashboard.scene import Scene

# In milliseconds a sample, and in octets.
MOST_SCRIPT, MOST_HEAP = 8.0, 20_000_000
SAMPLES = 6


def check_costs(scene: Scene, browser: Browser) -> None:
  """With a session, in the widest layout."""
  browser.resize(1600, 1000)
  browser.open(scene.url)
  expect_soon("dashboard: names before measuring", True, lambda: bool(browser.texts("#names-rows tr")))
  # The thread's own time: other programs use the machine as well.
  browser.cdp("Performance.enable", timeDomain="threadTicks")
  # The first samples come while the engine still compiles.
  _script_time(scene, browser, 2)
  spent = _script_time(scene, browser, SAMPLES)
  expect(f"dashboard: {spent:.1f} ms of script a sample", True, spent <= MOST_SCRIPT)
  browser.cdp("HeapProfiler.collectGarbage")
  heap = _metric(browser, "JSHeapUsedSize")
  expect(f"dashboard: {heap / 1e6:.1f} MB of heap", True, heap <= MOST_HEAP)
  browser.cdp("Performance.disable")
  browser.expect_quiet("measuring")


def _metric(browser: Browser, name: str) -> float:
  return next(each["value"] for each in browser.cdp("Performance.getMetrics")["metrics"] if each["name"] == name)


def _script_time(scene: Scene, browser: Browser, samples: int) -> float:
  """Of one sample, in milliseconds; the driver's own calls are none of it."""
  number, before = scene.sample_number(), _metric(browser, "ScriptDuration")
  browser.wait("samples", lambda: scene.sample_number() >= number + samples)
  return (_metric(browser, "ScriptDuration") - before) / (scene.sample_number() - number) * 1000
