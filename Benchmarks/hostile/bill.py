"""bill.py -- the requests that a provider gets, and those that are counted for its bill, while it fails in every way."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

from .clients import Stream, drive
from .judgement import Judged
from .lab import Lab, OpenLab, Programs, Simulator
from .scenes import OTHERS

#: Seeds, and names of each.
_SEEDS, _NAMES = 10, 1_000
#: How the provider fails, at two of five requests.
_FAULTS = ["delay&ms=20", "stall", "reset", "status&code=500", "status&code=403", "status&code=429", "status&code=302", "html",
           "cut", "wrong-question", "garble", "bad-rdata", "bad-name", "loop", "chain", "bogus", "big", "error"]
_LIMITS = 'timeout = "300ms"\nrequests_per_second = 0\n'


def _counted(lab: Lab) -> int:
  command = [str(lab.programs.httpdnsd), "providers", "--json", "--socket", str(lab.folder / "control.sock")]
  return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["providers"][0]["transfers"]


def _settled(lab: Lab, simulator: Simulator) -> tuple[int, int]:
  """The requests that the provider got and those that were counted, when neither changes any more."""
  last = None
  while (now := (simulator.requests(), _counted(lab))) != last:
    last = now
    time.sleep(1)
  return now


def bill(programs: Programs, seed: int, is_http2: bool) -> list[Judged]:
  """1,000 names, each of them asked for once."""
  # A proxy asks once more after a reset.
  faults = [fault for fault in _FAULTS if not (is_http2 and fault == "reset")]
  with OpenLab(programs) as lab:
    simulator = lab.simulator(*(f"kind={fault}&probability=0.4&below=good{number}.example" for number, fault in enumerate(faults)),
                              seed=seed)
    url = f"http://127.0.0.1:{simulator.port}"
    if is_http2:
      proxy = lab.proxy(simulator.port)
      url = f"https://127.0.0.1:{proxy.port}"
    authority = f'ca_file = "{proxy.authority}"\n' if is_http2 else ""
    port = lab.daemon_with([f'kind = "json"\nurl = "{url}/resolve"\n{authority}{_LIMITS}'], [])
    names = (f"n{number}.good{number % len(faults)}.example" for number in range(_NAMES))
    drive(port, [Stream(OTHERS, 250, names)], _NAMES / 250)
    received, counted = _settled(lab, simulator)
    title = f"the bill over {'HTTP/2' if is_http2 else 'HTTP/1.1'}, seed {seed}"
    return [Judged(title, "requests of the provider and counted requests, difference", abs(received - counted), 0),
            Judged(title, "requests", received, _NAMES, is_least=True)]


def scenes(programs: Programs) -> Iterator[Callable[[], list[Judged]]]:
  """All of them."""
  yield from (partial(bill, programs, seed, is_http2) for is_http2 in (False, True) for seed in range(1, _SEEDS + 1))
