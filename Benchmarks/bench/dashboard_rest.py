"""dashboard_rest.py -- memory of pages that are open, and wake-ups of a daemon that nothing looks at."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from . import load as loads
from .encrypted_lab import BEFORE, OURS
from .measure import warm
from .ours import with_dashboard
from .processes import Process, free_port
from .servers import LOCAL_NAME, Lab, Server, start
from .viewers import MOST, pages

#: Seconds after a start until the daemon has returned what only the start needed.
_START = 35
#: Seconds until pages that were opened have all that they need.
_OPENED = 20
#: Hits a second of each daemon while memory is read.
_RATE = 100
ON, OFF = "dashboard = true", "dashboard = false"


@dataclass
class Memory:
  """KiB of a daemon's own memory, one for each process: what it had before, and what it grew by."""

  seconds: float  # of viewing
  before: dict[bool, list[float]] = field(default_factory=dict)  # by whether pages are open
  opened: dict[bool, list[float]] = field(default_factory=dict)  # more than before, soon after they were opened
  grown: dict[bool, list[float]] = field(default_factory=dict)  # from then to the end


def measure_memory(lab: Lab, count: int, seconds: float, say: Callable[[str], None]) -> Memory:
  """Starts twice as many daemons, all asked for names in the cache; one half has all pages open. Memory that was freed is
  used again, so each figure has a process of its own."""
  memory = Memory(seconds)
  with ExitStack() as stack:
    servers: list[tuple[bool, Server, int]] = []
    for is_watched in [True, False] * count:
      web = free_port()
      server = start(with_dashboard(OURS, web, True), lab)
      stack.callback(server.process.stop)
      warm(server, lab)
      servers.append((is_watched, server, web))
    asking = [threading.Thread(target=loads.run, args=(server.port, lab.names), kwargs={
      "rate": _RATE, "seconds": _START + seconds + 10}) for _, server, _ in servers]
    for thread in asking:
      thread.start()
      stack.callback(thread.join)
    time.sleep(_START)
    first = [_kibibytes(server.process) for _, server, _ in servers]
    for is_watched, _, web in servers:
      if is_watched:
        stack.enter_context(pages(web, MOST))
    time.sleep(_OPENED)
    second = [_kibibytes(server.process) for _, server, _ in servers]
    time.sleep(seconds - _OPENED)
    for (is_watched, server, _), before, opened in zip(servers, first, second, strict=True):
      memory.before.setdefault(is_watched, []).append(before)
      memory.opened.setdefault(is_watched, []).append(opened - before)
      memory.grown.setdefault(is_watched, []).append(_kibibytes(server.process) - opened)
  say("dashboard: memory is done")
  return memory


def _kibibytes(process: Process) -> float:
  return process.proportional_octets() / 1024


@dataclass
class Wakeups:
  """Voluntary context switches a minute of idle daemons by kind, one for each process."""

  seconds: float
  a_minute: dict[str, list[float]] = field(default_factory=dict)
  kibibytes: dict[str, list[float]] = field(default_factory=dict)  # own memory at the end


def count_wakeups(lab: Lab, before: Path | None, count: int, seconds: float, say: Callable[[str], None]) -> Wakeups:
  """Lets `count` daemons of each kind idle, all at once: with the dashboard, without, and of the program of before."""
  wakeups = Wakeups(seconds)
  kinds: list[tuple[str, Lab, bool | None]] = [(ON, lab, True), (OFF, lab, False)]
  if before is not None:
    kinds.append((BEFORE, dataclasses.replace(lab, httpdnsd=before), None))
  with ExitStack() as stack:
    servers: list[tuple[str, Process]] = []
    for name, place, dashboard in kinds * count:
      # They answer a local name: their caches are empty.
      server = start(with_dashboard(name, free_port(), dashboard, ready=LOCAL_NAME), place)
      stack.callback(server.process.stop)
      servers.append((name, server.process))
    time.sleep(_START)
    first = [process.voluntary_switches() for _, process in servers]
    time.sleep(seconds)
    for (name, process), switches in zip(servers, first, strict=True):
      wakeups.a_minute.setdefault(name, []).append((process.voluntary_switches() - switches) * 60 / seconds)
      wakeups.kibibytes.setdefault(name, []).append(_kibibytes(process))
  say("dashboard: wake-ups are done")
  return wakeups
