"""releases.py -- the releases of Debian that there are packages for: their names of things, and the packages themselves."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# The libraries that the program is linked with.
LIBRARIES = {
  "bookworm": ("libc6", "libcurl4", "libevent-2.1-7", "libmnl0", "libnftnl11", "libnghttp2-14",
               "libpsl5", "libsimdjson14", "libssl3", "libstdc++6"),
  "trixie": ("libc6", "libcurl4t64", "libevent-2.1-7t64", "libmnl0", "libnftnl11", "libnghttp2-14",
             "libpsl5t64", "libsimdjson25", "libssl3t64", "libstdc++6"),
}
UNITS_FOLDER = {"bookworm": "/lib/systemd/system", "trixie": "/usr/lib/systemd/system"}
# This machine's, if it is one of them.
OWN = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
           ).get("VERSION_CODENAME")
BUILD_TIME = 3000




def built(release: str, *commit: str) -> Path:
  """The package of a release, built from what is committed."""
  return _printed("Scripts/deb-release", release, *commit)


def package(release: str) -> Path:
  """The package of a release: of the program in .build/bin where this machine has that release, else from what is committed."""
  return _printed("Scripts/deb") if release == OWN else built(release)


def first_commit() -> str:
  """What the package 0.1.0 was built from."""
  text = (ROOT / "packaging/debian/changelog").read_text(encoding="utf-8")
  return re.search(r"(?m)^httpdnsd \(0\.1\.0-1\)[^-]*?commit ([0-9a-f]{40})", text)[1]


def _printed(*command: str) -> Path:
  made = subprocess.run([ROOT / command[0], *command[1:]], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        text=True, timeout=BUILD_TIME)
  return ROOT / made.stdout.strip().split("\n")[-1]
