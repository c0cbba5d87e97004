#!/usr/bin/env python3
"""pictures.py -- makes the pictures of docs/dashboard.md, in a network of its own, as root: dashboard-pictures calls it.

  pictures.py FOLDER

A daemon with two providers and a lifelike load runs for some minutes, in which the first provider is down once.
"""

import itertools
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "System")]

from dashboard.browser import Browser  # noqa: E402
from dashboard.scene import BLOCKED, BUSY, RATE, Scene  # noqa: E402

# When things happen, in seconds after the start: a forecast needs six minutes.
DOWN, FIRST_PICTURE, UP, LAST_PICTURES = 310, 400, 410, 490
# Widths of the pictures. The height is that of the page, so that all plots are drawn.
WIDE, PHONE, HEIGHT = 1440, 390, 4000
FAILING = "bank.example.net"
FAULTS = (f"kind=bogus&name={FAILING}", "kind=delay&ms=90&probability=0.04", "kind=delay&ms=35&probability=0.2")
HOSTS = ("www", "api", "cdn", "mail", "git", "registry", "img", "auth", "time", "mirror", "metrics", "chat", "maps", "video",
         "news", "docs", "static", "push", "update", "wiki", "login", "search", "feeds", "shop", "blog", "status")
DOMAINS = ("example.com", "example.net", "example.org")
# Few and many addresses, short and long TTLs.
TTLS = (60, 120, 300, 600)


def main() -> int:
  """Makes the network, the programs and the pictures."""
  folder = pathlib.Path(sys.argv[1])
  for command in (["ip", "link", "set", "lo", "up"], *(["ip", "address", "add", f"192.0.2.{number}/32", "dev", "lo"]
                                                       for number in range(1, 100))):
    subprocess.run(command, check=True, timeout=10)
  # The browser shows local times.
  os.environ["TZ"] = "UTC"
  with tempfile.TemporaryDirectory(prefix="dashboard-") as place:
    scene = Scene(pathlib.Path(place), load=_lifelike(), faults=FAULTS, zone=_zone(), has_store=False)
    try:
      scene.start()
      with Browser(folder, scene.origin) as browser:
        _make_pictures(scene, browser)
    except BaseException:
      print(scene.log.read_text(errors="replace")[-4000:], file=sys.stderr)
      raise
    finally:
      scene.end()
  return 0


def _make_pictures(scene: Scene, browser: Browser) -> None:
  begin = time.monotonic()

  def wait_until(moment: float) -> None:
    """Pictures need a history, which takes its time."""
    time.sleep(max(0.0, begin + moment - time.monotonic()))

  scene.load.start()
  browser.resize(WIDE, HEIGHT)
  browser.open(scene.sign_in_url())
  wait_until(DOWN)
  scene.stop_simulator("alidns")
  wait_until(FIRST_PICTURE)
  _keep(browser, scene.url, "dashboard-light", "light", WIDE, "failing")
  wait_until(UP)
  scene.start_simulator("alidns")
  wait_until(LAST_PICTURES)
  _keep(browser, scene.url, "dashboard-dark", "dark", WIDE, "names")
  _keep(browser, scene.url, "dashboard-phone", "light", PHONE, "queries")


def _keep(browser: Browser, url: str, name: str, scheme: str, width: int, panel: str) -> None:
  """Writes a picture of the page, loaded again in this form, down to a panel."""
  browser.prefer(prefers_color_scheme=scheme)
  browser.resize(width, HEIGHT)
  browser.open(url)
  # Names come at once, figures after two seconds, and plots take turns.
  time.sleep(6)
  bottom = browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().bottom + scrollY", panel)
  path = browser.pictures / f"{name}.png"
  path.write_bytes(browser.picture(int(bottom) + 16))
  subprocess.run(["pngquant", "--force", "--ext", ".png", "--speed", "1", "128", path], check=True, timeout=60)
  print(f"pictures: {path.name}, {path.stat().st_size // 1000} kB", flush=True)


def _names() -> list[str]:
  return [BUSY, *(f"{host}.{domain}" for host, domain in zip(HOSTS[1:], itertools.cycle(DOMAINS[::-1])))]


def _zone() -> str:
  """The names with one address or two, and any other name with one."""
  dice = random.Random(7)
  lines = ["$TTL 300"]
  for domain in DOMAINS:
    lines += [f"{domain}. SOA ns.{domain}. hostmaster.{domain}. 1 3600 600 604800 60", f"*.{domain}. A 192.0.2.99"]
  for number, name in enumerate(_names()):
    lines += [f"{name}. {dice.choice(TTLS)} A 192.0.2.{address}" for address in (number + 1, number + 50)[:1 + number % 2]]
  return "\n".join(lines) + "\n"


def _lifelike():
  """A few names that all ask for, many that few ask for, waves, a blocked name and one that fails."""
  dice, names = random.Random(3), _names()
  weights = [1 / rank for rank in range(1, len(names) + 1)]

  def name_of(number: int) -> str | None:
    if dice.random() > 0.7 + 0.3 * math.sin(number / RATE / 25):
      return None
    what = dice.random()
    if what < 0.004:
      return FAILING
    if what < 0.05:
      return BLOCKED
    if what < 0.1:
      return f"h{dice.randrange(3000)}.{dice.choice(DOMAINS)}"
    return dice.choices(names, weights)[0]

  return name_of


if __name__ == "__main__":
  sys.exit(main())
