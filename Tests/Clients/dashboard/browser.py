"""browser.py -- headless Chromium, driven by selenium: elements by id, what the console says, which requests it sends."""

import base64
import json
import pathlib
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from machine import wait_for
from report import expect

# A script in the page may wait for this time, in seconds.
SCRIPT_LIMIT = 30
# A name that leads to the daemon, as a rebinding server would have it.
REBOUND = "rebound.example"
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
             "--no-first-run", "--hide-scrollbars")
RULES = (f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",)
# The console repeats the status of a refused or failed request.
OF_THE_NETWORK = "Failed to load resource"


def plain(text: str) -> str:
  """A text whose numbers are not bound to their units."""
  return text.replace("\u00a0", " ")


class Browser:
  """One window; everything that the console said and that was requested since the last `requests` or `expect_quiet`."""

  def __init__(self, folder: pathlib.Path, origin: str, has_script: bool = True, more: tuple[str, ...] = RULES):
    """Starts it; `folder` is for pictures, `origin` the only one that pages may ask, `more` has further arguments."""
    self.origin = origin
    self.pictures = folder
    self.console: list[str] = []
    self.sent: list[dict] = []
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (*ARGUMENTS, *more):
      options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if not has_script:
      options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    self.driver.set_script_timeout(SCRIPT_LIMIT)
    self.driver.set_page_load_timeout(SCRIPT_LIMIT)
    self.resize(1600)

  def __enter__(self) -> "Browser":
    return self

  def __exit__(self, *_) -> None:
    self.driver.quit()

  def open(self, url: str) -> None:
    """Loads a page, also one that differs from the shown one by its fragment alone."""
    self.driver.get("about:blank")
    self.driver.get(url)

  def cdp(self, method: str, **parameters):
    """A command of the DevTools protocol."""
    return self.driver.execute_cdp_cmd(method, parameters)

  def run(self, script: str, *arguments):
    """The value that a script in the page returns."""
    return self.driver.execute_script(script, *arguments)

  def text(self, selector: str) -> str:
    """The text of an element as far as it is shown; empty without one."""
    return plain(self.run("""const node = document.querySelector(arguments[0]);
      return node?.getClientRects().length ? node.innerText : "";""", selector))

  def texts(self, selector: str) -> list[str]:
    """The texts of all elements."""
    found = self.run("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)", selector)
    return [plain(text) for text in found]

  def is_shown(self, identifier: str) -> bool:
    """Whether an element takes room on the page."""
    return self.run("return document.getElementById(arguments[0])?.getClientRects().length > 0", identifier)

  def fact(self, panel: str, term: str) -> str:
    """The figure behind a term of a panel."""
    return plain(self.run("""for (const row of document.getElementById(`${arguments[0]}-facts`).children)
      if (row.firstChild.textContent === arguments[1]) return row.querySelector("b").textContent;
      return "";""", panel, term))

  def cell(self, table: str, row: str, label: str) -> str:
    """A cell of the row that begins with a name."""
    return plain(self.run("""for (const row of document.querySelectorAll(`#${arguments[0]}-rows tr`))
      if (row.querySelector(".name")?.textContent === arguments[1])
        return row.querySelector(`[data-label="${arguments[2]}"]`).innerText;
      return "";""", table, row, label))

  def click(self, selector: str) -> None:
    """Presses what a selector names, by the mouse if it is in sight, as a user would."""
    element = self.driver.find_element("css selector", selector)
    self.run("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()

  def write(self, identifier: str, text: str) -> None:
    """Writes into a field in the place of what it has."""
    field = self.driver.find_element("id", identifier)
    field.clear()
    field.send_keys(text)

  def resize(self, width: int, height: int = 1000) -> None:
    """Gives the page a width, below 600 that of a phone."""
    self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

  def prefer(self, **features: str) -> None:
    """Sets media features, such as prefers_color_scheme="dark"."""
    self.cdp("Emulation.setEmulatedMedia",
             features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

  def width_of_content(self) -> int:
    """How wide the page is that can be scrolled to."""
    return self.run("return document.scrollingElement.scrollWidth")

  def keep_picture(self, name: str) -> pathlib.Path:
    """Writes a picture of the whole page."""
    self.pictures.mkdir(parents=True, exist_ok=True)
    path = self.pictures / f"{name}.png"
    path.write_bytes(self.picture())
    return path

  def picture(self, height: int = 0) -> bytes:
    """The page as PNG, whole or as far as `height`."""
    size = self.run("return [innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": height or size[1], "scale": 1}
    return base64.b64decode(self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"])

  def _read_logs(self) -> None:
    for line in self.driver.get_log("browser"):
      if line["level"] in ("SEVERE", "WARNING"):
        self.console.append(f"{line['source']}: {line['message']}")
    for line in self.driver.get_log("performance"):
      message = json.loads(line["message"])["message"]
      if message["method"] == "Network.requestWillBeSent":
        self.sent.append(message["params"]["request"])

  def requests(self) -> list[dict]:
    """The requests since the last call: method, url, headers."""
    self._read_logs()
    sent, self.sent = self.sent, []
    foreign = [each["url"] for each in sent if not each["url"].startswith((f"{self.origin}/", "about:"))]
    if foreign:
      expect("dashboard: requests to other origins", [], foreign)
    return sent

  def forget(self) -> list[str]:
    """Forgets what an attack has provoked; the lines of the console."""
    self._read_logs()
    said, self.console, self.sent = self.console, [], []
    return said

  def expect_quiet(self, during: str, may_fail: bool = False) -> None:
    """Expects that the console has said nothing, and that no other origin was asked; then forgets both.

    `may_fail`: requests were refused or failed, as the check wanted it.
    """
    self.requests()
    said, self.console = self.console, []
    expect(f"dashboard: errors in the console, {during}", [],
           [line for line in said if not (may_fail and OF_THE_NETWORK in line)])

  def wait(self, what: str, condition, seconds: float = 20):
    """The first value of `condition` that counts as true."""
    return wait_for(what, condition, seconds, 0.1)
