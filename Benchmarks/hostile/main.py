"""main.py -- the command line of the hostile benchmark, and its report."""

from __future__ import annotations

import argparse
import json
import multiprocessing.pool
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.machine import describe_machine, package_version
from bench.processes import BenchError

from . import hits, scenes
from .lab import Programs
from .report import compose

_ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("spoiled", "flood", "slow", "search", "outage", "hits")


def _arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="Benchmarks/run-hostile", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--before", type=Path,
                      help="another httpdnsd, measured in the same way for comparison; or the JSON file of an earlier run")
  parser.add_argument("--parts", default=",".join(PARTS), help=f"default all: {', '.join(PARTS)}")
  parser.add_argument("--seconds", type=float, default=8, help="of each kind of hostile question; default 8")
  parser.add_argument("--outage", type=float, default=140, help="seconds; default 140")
  parser.add_argument("--jobs", type=int, default=1, help="scenes at a time; more than one makes latencies useless")
  parser.add_argument("--only", default="", help="of 'spoiled', the kinds whose name has this")
  parser.add_argument("--output", type=Path, default=_ROOT / "Benchmarks/results/hostile.md")
  return parser.parse_args()


def _scenes(options: argparse.Namespace, programs: Programs) -> list[Callable[[], object]]:
  parts = options.parts.split(",")
  if unknown := set(parts) - set(PARTS):
    raise BenchError(f"--parts: {', '.join(sorted(unknown))} is not known")
  chosen: list[Callable[[], object]] = []
  pairs = [(way, place) for way in scenes.WAYS for place in scenes.PLACES]
  if "spoiled" in parts:
    chosen += [partial(scenes.spoiled, programs, spoil, way, place, options.seconds)
               for spoil in scenes.SPOILS if options.only in spoil for way, place in pairs]
  if "flood" in parts:
    chosen += [partial(scenes.flood, programs, way, place) for way, place in pairs]
  if "slow" in parts:
    chosen += [partial(scenes.slow, programs, way, place) for way, place in pairs]
  if "search" in parts:
    chosen += [partial(scenes.search_domain, programs, way) for way in scenes.WAYS]
  if "outage" in parts:
    chosen += [partial(scenes.outage, programs, way, options.outage, frozen=frozen)
               for way in scenes.WAYS for frozen in (False, True)]
  return chosen


def _perform(scene: Callable[[], object]) -> list[scenes.Figure] | str:
  """Runs one scene; its failure is a line in the report."""
  try:
    result = scene()
  except BenchError as error:
    return f"{scene.func.__name__} {scene.args[1:]}: {error}"  # type: ignore[attr-defined]
  if result is None:
    return f"{scene.func.__name__}: not possible here"  # type: ignore[attr-defined]
  return result if isinstance(result, list) else [result]  # type: ignore[list-item]


def _measure(options: argparse.Namespace, httpdnsd: Path) -> dict[str, object]:
  programs = Programs(httpdnsd, options.simulator)
  for path in (httpdnsd, options.simulator):
    if not path.exists():
      raise BenchError(f"{path} is not built")
  figures, notes = [], []
  with multiprocessing.pool.ThreadPool(options.jobs) as pool:
    for result in pool.imap(_perform, _scenes(options, programs)):
      if isinstance(result, str):
        notes.append(result)
        print(result, file=sys.stderr, flush=True)
        continue
      for figure in result:
        print(figure, file=sys.stderr, flush=True)
        figures.append(figure.as_dict())
  instructions = hits.instructions_per_hit(programs) if "hits" in options.parts.split(",") else None
  return {"figures": figures, "notes": notes, "instructions": instructions}


def main() -> int:
  """Measures and writes the report; 1 where a figure is not what it must be."""
  options = _arguments()
  try:
    results = {"now": _measure(options, options.httpdnsd)}
    if options.before and options.before.suffix == ".json":
      results["before"] = json.loads(options.before.read_text())["now"]
    elif options.before:
      results["before"] = _measure(options, options.before)
  except BenchError as error:
    print(f"run-hostile: {error}", file=sys.stderr)
    return 2
  results["machine"] = f"{describe_machine()}; unbound {package_version('unbound') or 'not installed'}"
  options.output.parent.mkdir(parents=True, exist_ok=True)
  options.output.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
  text, is_met = compose(results)
  options.output.write_text(text)
  print(text)
  return 0 if is_met else 1
