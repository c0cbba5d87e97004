"""main.py -- the command line of the hostile benchmark, and its report."""

from __future__ import annotations

import argparse
import json
import multiprocessing.pool
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.machine import describe_machine, package_version
from bench.processes import BenchError

from . import bill, hits, judgement, quiet, scenes
from .lab import Programs
from .report import compose

_ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("judgement", "bill", "spoiled", "flood", "slow", "search", "outage", "hits")


def _arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="Benchmarks/run-hostile", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--before", type=Path,
                      help="another httpdnsd, measured in the same way for comparison; or the JSON file of an earlier run")
  parser.add_argument("--parts", default=",".join(PARTS), help=f"default all: {', '.join(PARTS)}")
  parser.add_argument("--seconds", type=float, default=10, help="of each kind of hostile question; default 10")
  parser.add_argument("--outage", type=float, default=140, help="seconds; default 140")
  parser.add_argument("--jobs", type=int, default=1, help="scenes at a time; more than one makes latencies useless. Outages run side by side in any case")
  parser.add_argument("--only", default="", help="of 'spoiled', the kinds whose name has this")
  parser.add_argument("--output", type=Path, default=_ROOT / "Benchmarks/results/hostile.md")
  return parser.parse_args()


@dataclass(frozen=True)
class _Scene:
  """A scene that is to be measured: what its figures will be called, and how they come about."""

  scene: str
  way: str
  place: str
  perform: Callable[[], object]


def _scenes(options: argparse.Namespace, programs: Programs) -> tuple[list[_Scene], list[_Scene]]:
  """The scenes that need the machine for themselves, and the outages, which do little but wait."""
  parts = options.parts.split(",")
  if unknown := set(parts) - set(PARTS):
    raise BenchError(f"--parts: {', '.join(sorted(unknown))} is not known")
  chosen, outages = [], []
  pairs = [(way, place) for way in scenes.WAYS for place in scenes.PLACES]
  if "spoiled" in parts:
    chosen += [_Scene(spoil, way, place, partial(scenes.spoiled, programs, spoil, way, place, options.seconds))
               for spoil in scenes.SPOILS if options.only in spoil for way, place in pairs]
  if "flood" in parts:
    chosen += [_Scene("10,000 random names", way, place, partial(scenes.flood, programs, way, place)) for way, place in pairs]
  if "slow" in parts:
    chosen += [_Scene("1,100 slow questions", way, place, partial(scenes.slow, programs, way, place)) for way, place in pairs]
  if "search" in parts:
    chosen += [_Scene("search com", way, "same address", partial(scenes.search_domain, programs, way)) for way in scenes.WAYS]
  if "outage" in parts:
    # One unbound for each kind of outage is enough.
    outages = [_Scene(f"outage of {options.outage:.0f} s, {'frozen' if frozen else 'ended'}", way, place,
                      partial(scenes.outage, programs, way, place, options.outage, frozen=frozen,
                              has_peer=(way, place) == pairs[0]))
               for way, place in pairs for frozen in (False, True)]
  return chosen, outages


def _perform(scene: _Scene) -> tuple[_Scene, list[scenes.Figure] | str]:
  """Runs one scene; whatever stops it, the others go on, and the report says so."""
  try:
    result = scene.perform()
  except Exception as error:  # noqa: BLE001 (a scene without figures is a missed one, for whatever reason)
    return scene, f"{type(error).__name__}: {error}"
  return scene, result if isinstance(result, list) else [result]  # type: ignore[list-item]


def _judged_scenes(options: argparse.Namespace, programs: Programs) -> Iterator[Callable[[], list[judgement.Judged]]]:
  """The scenes that have bounds of their own."""
  parts = options.parts.split(",")
  if "judgement" in parts:
    yield from judgement.scenes(programs, options.outage)
    yield from quiet.scenes(programs)
  if "bill" in parts:
    yield from bill.scenes(programs)


def _judge(options: argparse.Namespace, programs: Programs, missing: list[dict[str, str]]) -> list[dict[str, object]]:
  """Runs them."""
  judged: list[dict[str, object]] = []
  for scene in _judged_scenes(options, programs):
    try:
      found = scene()
    except Exception as error:  # noqa: BLE001 (a scene without figures is a missed one, for whatever reason)
      call = scene.func.__name__ + str(scene.args[1:])  # type: ignore[attr-defined]
      missing.append({"scene": call, "way": "–", "place": "–", "why": f"{type(error).__name__}: {error}"})
      print(missing[-1], file=sys.stderr, flush=True)
      continue
    for figure in found:
      print(figure, "" if figure.is_met else "MISSED", file=sys.stderr, flush=True)
      judged.append(figure.as_dict())
  return judged


def _measure(options: argparse.Namespace, httpdnsd: Path) -> dict[str, object]:
  programs = Programs(httpdnsd, options.simulator)
  for path in (httpdnsd, options.simulator):
    if not path.exists():
      raise BenchError(f"{path} is not built")
  figures, missing = [], []
  chosen, outages = _scenes(options, programs)
  for group, jobs in ((chosen, options.jobs), (outages, max(options.jobs, len(outages)))):
    if not group:
      continue
    with multiprocessing.pool.ThreadPool(jobs) as pool:
      for scene, result in pool.imap(_perform, group):
        if isinstance(result, str):
          missing.append({"scene": scene.scene, "way": scene.way, "place": scene.place, "why": result})
          print(missing[-1], file=sys.stderr, flush=True)
          continue
        for figure in result:
          print(figure, file=sys.stderr, flush=True)
          figures.append(figure.as_dict())
  results: dict[str, object] = {"figures": figures, "missing": missing, "judged": _judge(options, programs, missing)}
  if "hits" in options.parts.split(","):
    try:
      results |= hits.cost_of_a_hit(programs)
    except Exception as error:  # noqa: BLE001 (as above)
      missing.append({"scene": "a cached answer", "way": "json", "place": "–", "why": f"{type(error).__name__}: {error}"})
  return results


def main() -> int:
  """Measures and writes the report; 1 where a figure is missing or not what it must be."""
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
