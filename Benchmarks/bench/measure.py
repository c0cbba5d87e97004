"""measure.py -- the rounds: every server at every load, in random order, CPU per answer from schedstat."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from . import load as loads
from .load import Load
from .processes import BenchError
from .servers import Lab, Role, Server

PACED = Load("paced", 20_000)
SATURATED = Load("saturated", None)
LOADS = (PACED, SATURATED)

#: Runs in a round. What the verdicts rest on is spread over the round, so that a disturbance meets it all alike.
REPEATS = {Role.FLOOR: 3, Role.OURS: 3}

#: CPU that a backend may use per answer of a server that claims to answer from its cache.
_IDLE_BACKEND_MICROSECONDS = 0.5


@dataclass(frozen=True)
class Sample:
  """What one server did at one load in one round."""

  round: int
  server: str
  load: str
  cpu: int  # nanoseconds
  answers: int
  seconds: float
  is_complete: bool

  @property
  def microseconds(self) -> float:
    """CPU per answer."""
    return self.cpu / self.answers / 1000

  @property
  def rate(self) -> float:
    """Answers a second."""
    return self.answers / self.seconds

  def __add__(self, other: Sample) -> Sample:
    return Sample(self.round, self.server, self.load, self.cpu + other.cpu, self.answers + other.answers,
                  self.seconds + other.seconds, self.is_complete and other.is_complete)


@dataclass
class Results:
  """All samples, and what is computed from them."""

  failures: dict[str, str] = field(default_factory=dict)
  _samples: dict[tuple[str, str], dict[int, Sample]] = field(default_factory=dict)

  def add(self, sample: Sample) -> None:
    """Notes a sample; several of one server, load and round count as one that took longer."""
    rounds = self._samples.setdefault((sample.server, sample.load), {})
    rounds[sample.round] = rounds[sample.round] + sample if sample.round in rounds else sample

  @property
  def is_empty(self) -> bool:
    """Whether nothing was measured."""
    return not self._samples

  def of(self, server: str, load: Load) -> dict[int, Sample]:
    """The samples of one server at one load, by round."""
    return self._samples.get((server, load.name), {})

  def microseconds(self, server: str, load: Load) -> float | None:
    """The median CPU per answer."""
    values = [sample.microseconds for sample in self.of(server, load).values()]
    return statistics.median(values) if values else None

  def rate(self, server: str, load: Load) -> float | None:
    """The median number of answers a second."""
    values = [sample.rate for sample in self.of(server, load).values()]
    return statistics.median(values) if values else None

  def is_complete(self, server: str, load: Load) -> bool:
    """Whether no run of the server at this load lost a query."""
    return all(sample.is_complete for sample in self.of(server, load).values())

  def ratios(self, server: str, floor: str, load: Load) -> list[float]:
    """CPU per answer against that of `floor` in the same round, one for each round in which both were measured."""
    below = self.of(floor, load)
    return [sample.microseconds / below[number].microseconds
            for number, sample in self.of(server, load).items() if number in below]

  def as_json(self) -> list[dict[str, object]]:
    """The samples as plain values."""
    return [asdict(sample) for rounds in self._samples.values() for sample in rounds.values()]


def measure(server: Server, load: Load, lab: Lab, number: int, seconds: float,
            drive: Callable[..., loads.Outcome] = loads.run) -> Sample:
  """Drives one server once; `drive` takes what `load.run` takes."""
  before = server.process.cpu_nanoseconds()
  outcome = drive(server.port, lab.names, rate=load.rate, seconds=seconds)
  spent = server.process.cpu_nanoseconds() - before
  if outcome.answered == 0:
    raise BenchError(f"{server.spec.name} answered nothing")
  return Sample(number, server.spec.name, load.name, spent, outcome.answered, outcome.answered / outcome.rate,
                outcome.is_complete)


def warm(server: Server, lab: Lab) -> None:
  """Fills a server's cache with all names, then makes sure that it answers all of them without its backend."""
  for _ in range(5):
    outcome = loads.run(server.port, lab.names)
    if outcome.is_complete:
      break
    if outcome.noerror < outcome.sent / 2:
      raise BenchError(f"{server.spec.name} answered {outcome.noerror} of {outcome.sent} queries")
  backend = lab.backends.get(server.spec.backend)
  before = backend.process.cpu_nanoseconds() if backend else 0
  outcome = loads.run(server.port, lab.names)
  if not outcome.is_complete:
    raise BenchError(f"{server.spec.name} answered {outcome.noerror} of {outcome.sent} queries")
  if backend and (backend.process.cpu_nanoseconds() - before) / outcome.answered > _IDLE_BACKEND_MICROSECONDS * 1000:
    raise BenchError(f"{server.spec.name} asks its backend although its cache is warm")


def sustainable_load(server: Server, lab: Lab, seconds: float) -> Load:
  """The paced load, or the highest rate below it that this machine carries: all answered, and at the pace asked for."""
  highest = loads.run(server.port, lab.names, seconds=seconds).rate
  rate = PACED.rate or 0
  if highest < rate:
    rate = int(highest * 0.95)
  for _ in range(12):
    outcome = loads.run(server.port, lab.names, rate=rate, seconds=seconds)
    if outcome.is_complete and outcome.rate >= 0.98 * rate:
      break
    rate = int(rate * 0.93)
  # Rounded down to whole hundreds, which leaves a little room.
  return Load(PACED.name, max(100, rate // 100 * 100))


def run_rounds(servers: list[Server], lab: Lab, rounds: int, seconds: float, say: Callable[[str], None]) -> Results:
  """Measures each server at each load in every round, all in random order; one that fails takes no further part."""
  results = Results()
  paced = {server.spec.name: PACED for server in servers}
  for server in servers:
    if server.spec.role is Role.MISS:
      paced[server.spec.name] = sustainable_load(server, lab, min(seconds, 2))
      say(f"{server.spec.name}: carries {paced[server.spec.name].rate} queries a second")
  # A miss costs less the more of them come at a time: those that are compared get the same load.
  misses = [server.spec.name for server in servers if server.spec.role is Role.MISS]
  if misses:
    slowest = min((paced[name] for name in misses), key=lambda load: load.rate or 0)
    paced.update(dict.fromkeys(misses, slowest))
    say(f"the paced load of misses is {slowest.rate} queries a second")
  for number in range(1, rounds + 1):
    runs = [(server, load) for server in servers for load in (paced[server.spec.name], SATURATED)
            for _ in range(REPEATS.get(server.spec.role, 1))]
    random.shuffle(runs)
    for server, load in runs:
      if server.spec.name in results.failures:
        continue
      try:
        results.add(measure(server, load, lab, number, seconds))
      except BenchError as error:
        results.failures[server.spec.name] = str(error).splitlines()[0]
        say(f"{server.spec.name} failed: {error}")
        if server.spec.role is Role.FLOOR:
          raise
    say(f"round {number} of {rounds} is done")
  return results
