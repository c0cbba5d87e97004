"""machine.py -- one line about the machine and the versions, without names of hosts or paths."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path


def describe_machine() -> str:
  """CPU model, number of CPUs, kernel and distribution."""
  cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
  model = cpu.group(1).strip() if cpu else platform.machine()
  virtual = " (virtual machine)" if re.search(r"^flags.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(),
                                              re.MULTILINE) else ""
  # What builders append to the release may name a host.
  kernel = re.match(r"[\d.]+", platform.release())
  try:
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
  except OSError:
    system = ""
  parts = [model + virtual, f"{os.cpu_count()} CPUs", f"Linux {kernel.group(0) if kernel else ''}".strip(), system]
  return ", ".join(part for part in parts if part)


def package_version(package: str) -> str:
  """The installed version of a Debian package, or an empty text."""
  try:
    finished = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True,
                              timeout=10)
  except (FileNotFoundError, subprocess.TimeoutExpired):
    return ""
  return finished.stdout.strip() if finished.returncode == 0 else ""
