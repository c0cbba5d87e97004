"""programs.py -- runs the project's own benchmark programs, which measure parts of httpdnsd without the rest."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .processes import BenchError, die_with_parent

#: Seconds that one of them may take.
_LIMIT = 300


@dataclass(frozen=True)
class SchedulerCost:
  """What refreshing costs beyond transfers."""

  names: int
  microseconds: float  # CPU for each refresh
  octets: float  # for each name, at the highest


@dataclass(frozen=True)
class CacheFileCost:
  """What saving, loading and flushing a cache takes, in milliseconds: the best of the rounds."""

  entries: int
  load: float
  save: float
  delays: list[float]  # of each round, the longest look into the cache while it is saved or loaded into
  flush: float  # how long removing everything takes
  flush_delays: list[float]  # of each round, the longest look meanwhile
  flush_turn: float  # the longest turn of the loop that removes, in the best round


def _run(program: Path, *arguments: str) -> str:
  if not program.exists():
    raise BenchError(f"{program.name} is not built: Scripts/build {program.name}")
  try:
    finished = subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=_LIMIT,
                              preexec_fn=die_with_parent)
  except subprocess.TimeoutExpired as error:
    raise BenchError(f"{program.name} did not end in time") from error
  if finished.returncode != 0:
    raise BenchError(f"{program.name} failed: {finished.stderr.strip()[-300:]}")
  return finished.stdout


def measure_scheduler(program: Path) -> SchedulerCost:
  """Runs refresh-bench with 100,000 names."""
  try:
    figures = json.loads(_run(program))
    return SchedulerCost(figures["names"], figures["cpu_us_per_refresh"], figures["octets_per_name_peak"])
  except (KeyError, ValueError) as error:
    raise BenchError(f"{program.name} prints something else than expected: {error!r}") from error


def measure_cache_file(program: Path, rounds: int, folder: Path) -> CacheFileCost:
  """Runs cache-bench, with its file in `folder`."""
  figures = dict(line.split(maxsplit=1) for line in _run(program, str(rounds), str(folder)).splitlines())
  try:
    saving, loading = (map(float, figures[f"{work}_longest_us_rounds"].split(",")) for work in ("save", "load"))
    return CacheFileCost(int(figures["entries"]), float(figures["load_ms"]), float(figures["save_ms"]),
                         [max(pair) / 1000 for pair in zip(saving, loading, strict=True)], float(figures["flush_ms"]),
                         [float(figure) / 1000 for figure in figures["flush_longest_us_rounds"].split(",")],
                         float(figures["flush_turn_longest_us"]) / 1000)
  except (KeyError, ValueError) as error:
    raise BenchError(f"{program.name} prints something else than expected: {error!r}") from error
