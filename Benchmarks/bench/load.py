"""load.py -- drives one server with dnsperf and reads what dnsperf counted."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .processes import BenchError, die_with_parent, find_program

#: Questions that dnsperf has in flight at most, at every load: none is lost for want of a buffer.
OUTSTANDING = 64
#: Sockets that dnsperf asks from: enough flows for the kernel to spread over the sockets of two workers.
CLIENTS = 16
#: Seconds that dnsperf waits for a response before it counts a loss.
_TIMEOUT = 3
_LATENCY = re.compile(r"^> NOERROR \S+ \S+ ([\d.]+)$", re.MULTILINE)
#: Seconds that one pass over a file of names may take.
_PASS_LIMIT = 60


@dataclass(frozen=True)
class Load:
  """How hard a server is driven: `rate` queries a second, or None for as many as it answers."""

  name: str
  rate: int | None


@dataclass(frozen=True)
class Transport:
  """How dnsperf asks: its mode, what more it is told, and its connections."""

  mode: str
  options: tuple[str, ...] = ()
  clients: int = CLIENTS


UDP = Transport("udp")


@dataclass(frozen=True)
class Outcome:
  """What dnsperf counted in one run."""

  sent: int
  answered: int
  noerror: int
  rate: float  # answers a second

  @property
  def is_complete(self) -> bool:
    """Whether every query got an answer with RCODE 0."""
    return self.answered == self.sent == self.noerror


def _number(pattern: str, text: str) -> float:
  found = re.search(pattern, text)
  return float(found.group(1)) if found else 0.0


def run(port: int, names: Path, *, rate: int | None = None, seconds: float | None = None,
        transport: Transport = UDP) -> Outcome:
  """Asks for the names in the file in turn: for `seconds`, or without it each of them once."""
  program = find_program("dnsperf")
  if program is None:
    raise BenchError("dnsperf is missing: run Benchmarks/setup first")
  command = [program, "-s", "127.0.0.1", "-p", str(port), "-d", str(names), "-c", str(transport.clients), "-q",
             str(OUTSTANDING), "-t", str(_TIMEOUT), "-m", transport.mode, *transport.options]
  command += ["-l", f"{seconds:.3f}"] if seconds is not None else ["-n", "1", "-l", str(_PASS_LIMIT)]
  if rate is not None:
    command += ["-Q", str(rate)]
  try:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=(seconds or _PASS_LIMIT) + 30,
                              preexec_fn=die_with_parent)
  except subprocess.TimeoutExpired as error:
    raise BenchError("dnsperf did not end in time") from error
  if finished.returncode != 0:
    raise BenchError(f"dnsperf failed: {finished.stderr.strip()[-300:]}")
  text = finished.stdout
  return Outcome(
    sent=int(_number(r"Queries sent:\s+(\d+)", text)),
    answered=int(_number(r"Queries completed:\s+(\d+)", text)),
    noerror=int(_number(r"NOERROR (\d+)", text)),
    rate=_number(r"Queries per second:\s+([\d.]+)", text))


def latencies(port: int, names: Path, *, rate: int, seconds: float) -> list[float]:
  """Asks like `run`; how long each answer with RCODE 0 took, in seconds, in rising order. dnsperf prints each one."""
  command = latency_command(port, names, rate=rate, seconds=seconds)
  finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, preexec_fn=die_with_parent)
  return read_latencies(finished.stdout)


def latency_command(port: int, names: Path, *, rate: int, seconds: float) -> list[str]:
  """The command behind it, for those who run several at once."""
  return [find_program("dnsperf") or "dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", str(names), "-c", str(CLIENTS),
          "-q", str(OUTSTANDING), "-Q", str(rate), "-l", f"{seconds:.3f}", "-v"]


def read_latencies(text: str) -> list[float]:
  """What it has printed."""
  times = sorted(float(time) for time in _LATENCY.findall(text))
  if len(times) < 100:
    raise BenchError("dnsperf tells no latencies")
  return times


def write_names(path: Path, count: int) -> Path:
  """Writes the file of questions: the A records of n0.bench.example and so on."""
  path.write_text("".join(f"n{number}.bench.example A\n" for number in range(count)))
  return path
