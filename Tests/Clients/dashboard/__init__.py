"""__init__.py -- the dashboard in headless Chromium, with a daemon, providers and queries of its own."""

import pathlib
import shutil
import sys
import time
import traceback

from lab import Lab
from machine import REPOSITORY
from report import expect, failed

from dashboard import acting, attacks, changing, costs, looking, pages, proxy, pure
from dashboard.browser import Browser
from dashboard.scene import Scene

# Pictures of the page, which are kept if a check has failed.
PICTURES = REPOSITORY / ".build/dashboard"
# In this order: as long as nothing was asked, figures, actions, what changes, attacks. The restart ends the session.
STEPS = {
  "functions": pure.check_functions,
  "looks with nothing asked": lambda scene, browser: pages.check_looks(scene, browser, "nothing asked"),
  "figures": looking.check_signed_out,
  "looks without a session": lambda scene, browser: pages.check_looks(scene, browser, "signed out"),
  "signing in": acting.check_sign_in,
  "panels": looking.check_panels,
  "actions": acting.check_actions,
  "live queries": acting.check_live,
  "signing out": acting.check_sign_out,
  "the ninth page": changing.check_full,
  "hidden": changing.check_hidden,
  "hostile names": pages.check_hostile,
  "looks with a session": lambda scene, browser: pages.check_looks(scene, browser, "signed in"),
  "costs": costs.check_costs,
  "less motion": pages.check_motion,
  "without JavaScript": pages.check_without_script,
  "behind a proxy": proxy.check_proxy,
  "attacks": attacks.check_attacks,
  "an outage": changing.check_outage,
  "a restart": changing.check_restart,
}


def check(lab: Lab) -> None:
  """One step after the other; one that cannot go on does not keep the others from being tried."""
  shutil.rmtree(PICTURES, ignore_errors=True)
  folder = lab.folder / "dashboard"
  folder.mkdir()
  scene, before = Scene(folder), len(failed())
  try:
    scene.start()
    with Browser(PICTURES, scene.origin) as browser:
      for name, step in STEPS.items():
        _try(name, step, scene, browser)
  finally:
    scene.end()
  if len(failed()) == before:
    shutil.rmtree(PICTURES, ignore_errors=True)
    return
  print(f"run: pictures of the dashboard are in {PICTURES}; its programs' log ends with\n{_end_of(scene.log)}", file=sys.stderr)


def _try(name: str, step, scene: Scene, browser: Browser) -> None:
  before, begin = len(failed()), time.monotonic()
  try:
    step(scene, browser)
  except Exception as error:
    traceback.print_exc()
    expect(f"dashboard: {name}, every check", "an end", repr(error))
  if len(failed()) > before:
    browser.keep_picture(f"after {name}")
  print(f"run: dashboard, {name}: {time.monotonic() - begin:.0f} s", flush=True)


def _end_of(log: pathlib.Path) -> str:
  return log.read_text(errors="replace")[-2000:]
