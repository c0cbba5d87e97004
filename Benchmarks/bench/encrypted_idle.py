"""encrypted_idle.py -- memory of connections that wait, and threads and sockets without encrypted listeners."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ours, peers
from .dns import wait_until_answered
from .encrypted_lab import BEFORE, OURS, Surroundings
from .measure import warm
from .processes import BenchError, die_with_parent
from .servers import FIRST_NAME, LOCAL_NAME, Spec, launch

CONNECTIONS = 300
PROTOCOLS = ("dot", "doh")
#: Connections before memory is read for the first time: what the first ones need is there then.
_FIRST_CONNECTIONS = 10
#: Seconds after a start until httpdnsd has returned what only the start needed, and until connections are at rest.
_START, _REST = 35, 3


@dataclass
class IdleCosts:
  """KiB for each connection by server and protocol, one for each process."""

  kibibytes: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def measure_idle(around: Surroundings, rounds: int, say: Callable[[str], None]) -> IdleCosts:
  """Opens connections that ask once each. Memory that was freed is used again, so each figure has a process of its own."""
  costs = IdleCosts()
  for number in range(1, rounds + 1):
    places = [(name, protocol) for name in around.programs for protocol in PROTOCOLS]
    with around.started([name for name, _ in places]) as servers:
      for listeners, (_, protocol) in zip(servers, places, strict=True):
        warm(listeners.server, around.lab)
        with _Held(around, protocol, listeners.port(protocol), _FIRST_CONNECTIONS):
          pass
      time.sleep(_START)
      for listeners, place in zip(servers, places, strict=True):
        process = listeners.server.process
        before = process.proportional_octets()
        with _Held(around, place[1], listeners.port(place[1]), CONNECTIONS):
          time.sleep(_REST)
          grown = process.proportional_octets() - before
        costs.kibibytes.setdefault(place, []).append(grown / CONNECTIONS / 1024)
    say(f"encrypted: round {number} of {rounds} of idle connections is done")
  return costs


class _Held:
  """Connections that are open; on leaving, all of them must still be."""

  def __init__(self, around: Surroundings, protocol: str, port: int, count: int) -> None:
    self._count = count
    self._child = subprocess.Popen(
      [str(around.client), "hold", protocol, str(port), peers.DOH_NAME, FIRST_NAME, str(count)], stdin=subprocess.PIPE,
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)

  def __enter__(self) -> None:
    output = self._child.stdout
    if output is None or output.readline() != "ready\n":
      _, text = self._child.communicate()
      raise BenchError(f"{self._count} connections: {text.strip()}")

  def __exit__(self, kind: object, _error: object, _traceback: object) -> None:
    text, _ = self._child.communicate(timeout=30)
    if kind is None and text.strip() != str(self._count):
      raise BenchError(f"of {self._count} idle connections {text.strip() or 'none'} are left")


@dataclass(frozen=True)
class Presence:
  """What a daemon has."""

  threads: int
  sockets: int


#: The set-ups of httpdnsd that are compared.
UNSET, OFF, ON = "without the section", "with an empty section", "with DoT and DoH"


def count_presence(around: Surroundings) -> dict[str, Presence]:
  """Threads and sockets of httpdnsd without encrypted listeners, with them, and of the program of before."""
  specs = {UNSET: ours.with_rate_limit(OURS, 0), OFF: ours.encrypted_off(OURS)}
  if around.has_ours:
    specs[ON], _, _ = around.spec(OURS)
  if around.before is not None:
    specs[BEFORE] = ours.with_rate_limit(BEFORE, 0)
  return {name: _count(around, name, spec) for name, spec in specs.items()}


def _count(around: Surroundings, name: str, spec: Spec) -> Presence:
  """Ours needs no answer from the provider: its connections to it would count too."""
  server = launch(spec, around.lab_of(name))
  try:
    if not wait_until_answered(server.port, LOCAL_NAME, time.monotonic() + 15, server.process.is_running):
      raise BenchError(f"httpdnsd {name} does not answer\n{server.process.log_tail()}")
    # Threads of the start have ended by then.
    time.sleep(_REST)
    return Presence(server.process.threads(), server.process.sockets())
  finally:
    server.process.stop()
