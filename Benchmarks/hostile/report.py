"""report.py -- the report of the hostile benchmark, and which figure is what it must be."""

from __future__ import annotations

from collections.abc import Callable

from bench.table import table as table_of

#: What the figures must be.
_SLOWER, _TRANSFERS, _HIT = 1.5, 5000, 1.01
#: Scenes whose others do not ask in peace first.
_WITHOUT_PEACE = {"1,100 slow questions", "search com"}
_MET, _MISSED = "met", "**missed**"

Row = dict


def _share(part: float, whole: float) -> str:
  return f"{100 * part / whole:.0f} %" if whole else "–"


def _key(row: Row) -> tuple[str, str, str]:
  return row["scene"], row["way"], row["place"]


def _verdicts(row: Row) -> list[bool]:
  """Whether a scene's figures are what they must be; a scene in which nothing happened has none that are."""
  scene = row["scene"]
  if "unbound" in scene:
    return []
  if scene.startswith("outage"):
    return [row["within"] == row["asked"] > 0]
  # A hostile question that no provider was asked shows nothing.
  found = [row["asked"] > 0, row["transfers"] > 0, row["localdns"] == 0, row["failed"] == 0]
  if scene == "10,000 random names":
    found.append(row["transfers"] <= _TRANSFERS)
  elif scene not in _WITHOUT_PEACE:
    found.append(0 < row["slower"] <= _SLOWER)
  return found


def _cells(row: Row | None) -> list[str]:
  if row is None:
    return ["–"] * 5
  return [_share(row["localdns"], row["asked"]), _share(row["failed"], row["asked"]),
          f"{row['slower']:.2f}" if row["slower"] else "–", f"{row['transfers']:,}" if row["transfers"] else "–",
          f"{row['hostile_localdns']:,}" if row["slower"] else "–"]


def _after(row: Row | None) -> list[str]:
  if row is None:
    return ["–", "–"]
  return [f"{row['within']} of {row['asked']}", f"{row['last']:.1f} s" if row["last"] is not None else "later"]


def _rows(results: dict, cells_of: Callable[[Row | None], list[str]], *, are_outages: bool) -> tuple[list[list[str]], bool]:
  """The lines of a table, and whether every figure in it is there and is what it must be."""
  before = {_key(row): row for row in results.get("before", {}).get("figures", [])}
  lines, is_met = [], True
  for row in results["now"]["figures"]:
    if row["scene"].startswith("outage") != are_outages:
      continue
    verdicts = _verdicts(row)
    is_met = is_met and all(verdicts)
    cells = cells_of(row)
    if before:
      cells = [f"{cell} ({old})" for cell, old in zip(cells, cells_of(before.get(_key(row))), strict=True)]
    lines.append([*_key(row), *cells, "–" if not verdicts else _MET if all(verdicts) else _MISSED])
  for row in results["now"]["missing"]:
    if row["scene"].startswith("outage") == are_outages:
      is_met = False
      lines.append([*_key(row), *cells_of(None), f"{_MISSED}: not measured"])
  return lines, is_met


def _hit(results: dict) -> tuple[list[str], bool]:
  """What a cached answer costs."""
  now, before = results["now"], results.get("before", {})
  text = (f"A cached answer takes {now['instructions']:,.0f} instructions (callgrind, one query at a time) and "
          f"{abs(now['allocations']):.1f} calls for memory; must be 0")
  # What the two runs do at the start and the end differs by some calls.
  is_met = abs(now["allocations"]) < 0.1
  if old := before.get("instructions"):
    ratio = now["instructions"] / old
    is_met = is_met and ratio <= _HIT
    text += f". Before {old:,.0f} instructions: {ratio:.3f} times; must be at most {_HIT}"
  return ["## Hits", "", f"{text}: {_MET if is_met else _MISSED}.", ""], is_met


def _judged(results: dict) -> tuple[list[str], bool]:
  """The figures with bounds of their own."""
  before = {(row["scene"], row["figure"]): row["value"] for row in results.get("before", {}).get("judged", [])}
  rows = results["now"].get("judged", [])
  if not rows:
    return [], True
  lines = [[row["scene"], row["figure"], f"{row['value']:g}", f"{'≥' if row['is_least'] else '≤'} {row['bound']:g}",
            f"{before[row['scene'], row['figure']]:g}" if (row["scene"], row["figure"]) in before else "–",
            _MET if row["is_met"] else _MISSED] for row in rows]
  header = ["scene", "figure", "now", "must be", "before", "verdict"]
  return ["## Who decides about a name", "", table_of(header, lines), ""], all(row["is_met"] for row in rows)


def compose(results: dict) -> tuple[str, bool]:
  """The report, and whether every figure was measured and is what it must be."""
  lines = ["# Beside a hostile client", "", f"Machine: {results['machine']}.", "",
           "40 names a second, each of them asked for once, beside a hostile client; LocalDNS marks its answers, and `fallback`",
           "has its default. Must be: no answer by LocalDNS, none that failed, median latency at most 1.5 times that of peace,",
           "at most 5,000 transfers for 10,000 random names in 5 s, which this provider does not bill. In parentheses: the program",
           "before. `Benchmarks/run-hostile`.",
           ""]
  scenes, are_met = _rows(results, _cells, are_outages=False)
  if scenes:
    header = ["hostile client asks", "provider", "others are at", "by LocalDNS", "failed", "slower", "hostile transfers",
              "hostile by LocalDNS", "verdict"]
    lines += [table_of(header, scenes), ""]
  outages, is_back = _rows(results, _after, are_outages=True)
  if outages:
    lines += ["## After an outage", "",
              "20 names, none of them cached, each asked once a second throughout and for 20 s after it, beside 20 hostile ones a",
              "second; no LocalDNS.", "",
              table_of(["outage", "provider", "others are at", "answered within 2 s", "last one after", "verdict"], outages), ""]
  judged, is_judged = _judged(results)
  lines += judged
  is_met = are_met and is_back and is_judged and bool(scenes or outages or judged or "instructions" in results["now"])
  if "instructions" in results["now"]:
    hit, is_cheap = _hit(results)
    lines += hit
    is_met = is_met and is_cheap
  lines += [f"Not measured: {', '.join(_key(row))}: {' '.join(row['why'].split())}" for row in results["now"]["missing"]]
  return "\n".join(lines).rstrip() + "\n", is_met
