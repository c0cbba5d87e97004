"""chromium.py -- headless Chromium resolves by DNS over HTTPS alone, as a managed policy says, and shows a page."""

import json
import pathlib

from lab import FOLDER, NAME, PAGE, PAGE_HOST, Lab
from report import call, expect, expect_match

# Debian's folder of policies; /etc is covered (lab.py).
POLICIES = pathlib.Path("/etc/chromium/policies/managed")
# A first start makes a profile.
SECONDS = 60


def check(lab: Lab) -> None:
  """A page by the daemon, and none by a template whose path the daemon does not have."""
  database = pathlib.Path.home() / ".pki/nssdb"
  database.mkdir(parents=True)
  for arguments in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "lab", "-i", str(lab.authority.root)]):
    made = call("certutil", "-d", f"sql:{database}", *arguments)
    if made.status:
      expect("chromium: certutil", 0, made.text)
  expect_match("chromium with DoH, a page", PAGE, _page(f"https://{NAME}/dns-query{{?dns}}"))
  expect("chromium with DoH at another path, a page", False, PAGE in _page(f"https://{NAME}/other{{?dns}}"))


def _page(template: str) -> str:
  """What Chromium prints of the page if it resolves by this template."""
  POLICIES.mkdir(parents=True, exist_ok=True)
  (POLICIES / "lab.json").write_text(json.dumps({
    "DnsOverHttpsMode": "secure", "DnsOverHttpsTemplates": template, "HttpsUpgradesEnabled": False,
    "ComponentUpdatesEnabled": False, "MetricsReportingEnabled": False, "BackgroundModeEnabled": False}))
  profile = FOLDER / f"chromium-{len(list(FOLDER.glob('chromium-*')))}"
  # Its sandbox does not run as root.
  return call("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
              "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}", "--dump-dom",
              f"http://{PAGE_HOST}/", seconds=SECONDS).text
