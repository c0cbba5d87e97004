"""list_loading.py -- what a list takes until it is in use: memory, CPU, the time of a start, and that of a change."""

from __future__ import annotations

import dataclasses
import os
import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ours
from .dns import ask
from .listed import BEFORE, BLOCKING, DNSMASQ, MANY, OURS, SMARTDNS, NameList, Surroundings, make_list
from .load import latencies
from .measure import warm
from .processes import BenchError
from .servers import Server, start

#: Seconds after the last start until memory and CPU are read: memory that only the start needed is returned.
_SETTLING = 6
#: Queries a second while a list changes, and seconds for which they are asked, with a change and without.
RATE, _WINDOW = 10_000, 3.0
#: The daemon builds tables for a twentieth of the time: the pause until the next one, by what a change took beyond the
#: collecting of changes, in seconds; and at least and at most.
_PAUSES, _COLLECTING, _SHORTEST_PAUSE, _LONGEST_PAUSE = 20, 1.2, 6.0, 20.0
#: Seconds of asking before the file is written.
_LEAD = 0.3
#: Seconds until a change counts as lost.
_PATIENCE = 30
_NXDOMAIN = 3


@dataclass
class Start:
  """What one program with one list needs, one figure for each round."""

  seconds: list[float] = field(default_factory=list)  # to the first answer
  cpu: list[float] = field(default_factory=list)  # milliseconds, until it has settled
  octets: list[float] = field(default_factory=list)  # resident, without pages of files
  threads: list[int] = field(default_factory=list)

  def add(self, server: Server, seconds: float) -> None:
    """Notes what a server has used that has settled."""
    self.seconds.append(seconds)
    self.cpu.append(server.process.cpu_nanoseconds_with_ended() / 1e6)
    self.octets.append(server.process.own_octets())
    self.threads.append(server.process.threads())


@dataclass
class Starts:
  """Each program, by the number of names in its list; 0 is without one."""

  of: dict[tuple[str, int], Start] = field(default_factory=dict)

  def octets_of_a_name(self, program: str, names: int) -> float:
    """Resident memory beyond that of the same program without the list."""
    return self._beyond(program, names, lambda start: start.octets) / names

  def cpu(self, program: str, names: int) -> float:
    """CPU in milliseconds beyond that of the same program without the list."""
    return self._beyond(program, names, lambda start: start.cpu)

  def cpu_of_blocking(self) -> float:
    """The same of httpdnsd with the long list in a rule that blocks."""
    return statistics.median(
      blocking - without for blocking, without in zip(self.of[BLOCKING, MANY].cpu, self.of[OURS, 0].cpu, strict=True))

  def seconds(self, program: str, names: int) -> float:
    """The median time until the first answer."""
    return statistics.median(self.of[program, names].seconds)

  def _beyond(self, program: str, names: int, figures: Callable[[Start], list[float]]) -> float:
    pairs = zip(figures(self.of[program, names]), figures(self.of[program, 0]), strict=True)
    return statistics.median(with_list - without for with_list, without in pairs)


def measure_starts(around: Surroundings, rounds: int, say: Callable[[str], None]) -> Starts:
  """Starts each program with each list, one after the other in random order, and looks at all once they have settled."""
  kinds: list[tuple[str, NameList | None]] = [
    (program, names) for program in (OURS, SMARTDNS, DNSMASQ) for names in (None, around.few, around.many)]
  kinds.append((BLOCKING, around.many))
  if around.before is not None:
    kinds.append((BEFORE, None))
  starts = Starts({(program, names.names if names else 0): Start() for program, names in kinds})
  for number in range(1, rounds + 1):
    running: list[tuple[Start, Server, float]] = []
    try:
      for program, names in random.sample(kinds, len(kinds)):
        spec = around.spec(program, names)
        begin = time.monotonic()
        server = start(spec, around.lab_of(spec))
        running.append((starts.of[program, names.names if names else 0], server, time.monotonic() - begin))
      time.sleep(_SETTLING)
      for kind, server, seconds in running:
        kind.add(server, seconds)
    finally:
      for _, server, _ in running:
        server.process.stop()
    say(f"lists: round {number} of {rounds} of starts is done")
  return starts


@dataclass
class Changes:
  """A list that is replaced while queries are answered, one figure for each round."""

  seconds: list[float] = field(default_factory=list)  # from the write to the first answer that heeds it
  with_change: list[float] = field(default_factory=list)  # 99.9th percentile of the latency of hits, in milliseconds
  without: list[float] = field(default_factory=list)


def measure_changes(around: Surroundings, rounds: int, say: Callable[[str], None]) -> Changes:
  """Replaces the long list of a daemon again and again, each time with one name more."""
  lab = around.lab
  names = make_list(lab, MANY, "127.0.0.1#9")
  text = names.plain.read_bytes()
  server = start(ours.with_rules("httpdnsd, a list that changes", ours.list_rule(names.plain, use="nxdomain")), lab)
  changes = Changes()
  try:
    time.sleep(_SETTLING)
    warm(server, dataclasses.replace(lab, names=around.others))
    for number in range(1, rounds + 1):
      last = changes.seconds[-1] if changes.seconds else 0
      time.sleep(min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, _PAUSES * (last - _COLLECTING))))
      changes.without.append(_slow_milliseconds(server, around))
      fresh = f"fresh{number}.com"
      text += f"{fresh}\n".encode()
      took: list[float] = []
      writer = threading.Thread(target=lambda: took.append(_change(server, names, text, fresh)))
      writer.start()
      changes.with_change.append(_slow_milliseconds(server, around))
      writer.join()
      if not took:
        raise BenchError("the changed list did not come into use")
      changes.seconds.append(took[0])
      say(f"lists: round {number} of {rounds} of changes is done")
    return changes
  finally:
    server.process.stop()


def _slow_milliseconds(server: Server, around: Surroundings) -> float:
  times = latencies(server.port, around.others, rate=RATE, seconds=_WINDOW)
  return times[int(len(times) * 0.999)] * 1000


def _change(server: Server, names: NameList, text: bytes, fresh: str) -> float:
  """Replaces the file; how many seconds later a name is decided that only the new one has."""
  written = names.plain.with_suffix(".new")
  written.write_bytes(text)
  time.sleep(_LEAD)
  if _is_listed(server, fresh):
    raise BenchError(f"{fresh} is decided before it is in the list")
  begin = time.monotonic()
  os.replace(written, names.plain)
  while time.monotonic() < begin + _PATIENCE:
    if _is_listed(server, fresh):
      return time.monotonic() - begin
    time.sleep(0.01)
  raise BenchError("the changed list did not come into use")


def _is_listed(server: Server, name: str) -> bool:
  answer = ask(server.port, name, timeout=1)
  return answer is not None and answer.rcode == _NXDOMAIN
