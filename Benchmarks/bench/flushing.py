"""flushing.py -- what `httpdnsd flush` takes where a full cache has a file, and how long a client waits meanwhile."""

from __future__ import annotations

import dataclasses
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import load as loads
from . import ours
from .dns import ask
from .figures import MANY_NAMES, launch_simulator
from .processes import BenchError, die_with_parent
from .servers import LOCAL_NAME, Lab, Server, start
from .table import Row, verdict


@dataclass
class FlushCost:
  """What flushes take, in milliseconds; one figure for each round."""

  entries: int = 0
  work: list[float] = field(default_factory=list)  # the command, less what the same command takes that finds nothing
  command: list[float] = field(default_factory=list)  # the whole command, as the operator runs it
  waits: list[float] = field(default_factory=list)  # the longest of a client that asks all the time
  usual_waits: list[float] = field(default_factory=list)  # the same, while nothing is flushed


def measure(lab: Lab, rounds: int, say: Callable[[str], None]) -> FlushCost:
  """Fills the cache with 100,000 names and flushes it, in every round."""
  simulator = launch_simulator(lab)
  names = loads.write_names(lab.new_folder("flush") / "names", MANY_NAMES)
  server = start(ours.WITH_FILE, dataclasses.replace(lab, json_url=simulator.url))
  cost = FlushCost(entries=MANY_NAMES)
  try:
    for number in range(1, rounds + 1):
      for _ in range(3):
        if loads.run(server.port, names).is_complete:
          break
      wait, (removed, full) = _while_asking(server, lambda: _flush(server, lab))
      # The name by which the start was found may be among them.
      if not MANY_NAMES <= removed <= MANY_NAMES + 1:
        raise BenchError(f"{removed} of {MANY_NAMES} entries were flushed")
      usual, (_, empty) = _while_asking(server, lambda: _flush(server, lab))
      cost.work.append(full - empty)
      cost.command.append(full)
      cost.waits.append(wait)
      cost.usual_waits.append(usual)
      say(f"flush: round {number} of {rounds} is done")
    return cost
  finally:
    server.process.stop()
    simulator.server.process.stop()


def _flush(server: Server, lab: Lab) -> tuple[int, float]:
  """Runs the command; how many entries it has removed, and how long it took."""
  command = [str(lab.httpdnsd), "flush", "--json", "--socket", str(server.folder / ours.SOCKET)]
  begin = time.monotonic()
  finished = subprocess.run(command, capture_output=True, text=True, timeout=30, preexec_fn=die_with_parent)
  took = (time.monotonic() - begin) * 1000
  if finished.returncode != 0:
    raise BenchError(f"flush failed: {finished.stdout}{finished.stderr}")
  return json.loads(finished.stdout)["entries"], took


def _while_asking(server: Server, action: Callable[[], tuple[int, float]]) -> tuple[float, tuple[int, float]]:
  """What an action gives, and the longest wait of a client that asks all the time meanwhile."""
  waits = [0.0]
  end = threading.Event()

  def ask_on() -> None:
    while not end.is_set():
      begin = time.monotonic()
      if ask(server.port, LOCAL_NAME, timeout=5) is None:
        waits.append(float("inf"))
      waits.append((time.monotonic() - begin) * 1000)

  client = threading.Thread(target=ask_on)
  client.start()
  try:
    result = action()
  finally:
    end.set()
    client.join()
  return max(waits), result


def flush_row(cost: FlushCost | None) -> Row:
  """The requirement, by the command itself."""
  figure = ("`httpdnsd flush` of 100,000 entries with a cache file: its work / with its start and end / longest wait of "
            "a client")
  limit = "≤ 50 ms"
  if cost is None:
    return Row(figure, limit)
  work, command, wait, usual = map(statistics.median, (cost.work, cost.command, cost.waits, cost.usual_waits))
  return Row(figure, limit, f"{work:.0f} ms / {command:.0f} ms / {wait:.1f} ms ({usual:.1f} ms without)",
             verdict(work <= 50))
