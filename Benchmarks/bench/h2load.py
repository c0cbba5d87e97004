"""h2load.py -- drives a server over DNS over HTTPS and HTTP/2 (RFC 8484), by GET, and reads what h2load counted."""

from __future__ import annotations

import base64
import re
import subprocess
from pathlib import Path

from .dns import compose_query
from .load import CLIENTS, OUTSTANDING, Outcome
from .processes import BenchError, die_with_parent, find_program

_COUNTS = re.compile(r"^requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded", re.MULTILINE)
_GOOD = re.compile(r"^status codes: (\d+) 2xx", re.MULTILINE)
_RATE = re.compile(r"^finished in [^,]+, ([\d.]+) req/s", re.MULTILINE)


def run(port: int, names: Path, *, rate: int | None = None, seconds: float) -> Outcome:
  """Asks for the names in the file in turn for `seconds`, over connections that stay."""
  program = find_program("h2load")
  if program is None:
    raise BenchError("h2load is missing: run Benchmarks/setup first")
  command = [program, "-i", str(_addresses(port, names)), "-t", "1", "-c", str(CLIENTS), "-m", str(OUTSTANDING // CLIENTS),
             "-D", f"{round(seconds * 1000)}ms"]
  if rate is not None:
    command += ["--rps", f"{rate / CLIENTS:.3f}"]
  try:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, preexec_fn=die_with_parent)
  except subprocess.TimeoutExpired as error:
    raise BenchError("h2load did not end in time") from error
  if finished.returncode != 0:
    raise BenchError(f"h2load failed: {finished.stderr.strip()[-300:]}")
  return read_outcome(finished.stdout)


def read_outcome(text: str) -> Outcome:
  """What it has printed. Of requests in flight when the time is over it knows nothing, and does not count them."""
  counts, good, rate = _COUNTS.search(text), _GOOD.search(text), _RATE.search(text)
  if counts is None or good is None or rate is None:
    raise BenchError(f"h2load failed: {text.strip()[-300:]}")
  return Outcome(sent=int(counts.group(1)), answered=int(counts.group(2)), noerror=int(good.group(1)),
                 rate=float(rate.group(1)))


def _addresses(port: int, names: Path) -> Path:
  """The file of URLs that stands for a file of names."""
  path = names.with_name(f"{names.name}-at-{port}")
  if not path.exists():
    with open(names) as lines:
      queries = [compose_query(line.split()[0], 0) for line in lines]
    encoded = (base64.urlsafe_b64encode(query).decode("ascii").rstrip("=") for query in queries)
    path.write_text("".join(f"https://127.0.0.1:{port}/dns-query?dns={text}\n" for text in encoded))
  return path
