"""report.py -- the report of the hostile benchmark, and which figure is what it must be."""

from __future__ import annotations

from bench.table import table as table_of

#: What the figures must be.
_SLOWER, _TRANSFERS, _HIT = 1.5, 500, 1.01

Row = dict


def _share(part: float, whole: float) -> str:
  return f"{100 * part / whole:.0f} %" if whole else "–"


def _key(row: Row) -> tuple[str, str, str]:
  return row["scene"], row["way"], row["place"]


def _verdicts(row: Row) -> list[bool]:
  """Whether a scene's figures are what they must be."""
  scene = row["scene"]
  if "unbound" in scene:
    return []
  if scene.startswith("outage"):
    return [row["within"] == row["asked"] > 0]
  found = [row["localdns"] == 0, row["failed"] == 0]
  if scene == "10,000 random names":
    found.append(row["transfers"] <= _TRANSFERS)
  elif row["slower"]:
    found.append(row["slower"] <= _SLOWER)
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


def compose(results: dict) -> tuple[str, bool]:
  """The report, and whether every figure is what it must be."""
  now = results["now"]
  before = {_key(row): row for row in results.get("before", {}).get("figures", [])}
  lines = ["# Beside a hostile client", "", f"Machine: {results['machine']}.", "",
           "40 names a second, each of them asked for once, beside a hostile client; LocalDNS marks its answers, and `fallback`",
           "has its default. Must be: no answer by LocalDNS, none that failed, median latency at most 1.5 times that of peace,",
           "at most 500 transfers for 10,000 random names in 5 s. In parentheses: the program before. `Benchmarks/run-hostile`.",
           ""]
  header = ["hostile client asks", "provider", "others are at", "by LocalDNS", "failed", "slower", "hostile transfers",
            "hostile by LocalDNS", "verdict"]
  table = []
  is_met = True
  for row in now["figures"]:
    if row["scene"].startswith("outage"):
      continue
    verdicts = _verdicts(row)
    is_met = is_met and all(verdicts)
    cells = _cells(row)
    if before:
      cells = [f"{cell} ({old})" for cell, old in zip(cells, _cells(before.get(_key(row))), strict=True)]
    table.append([row["scene"], row["way"], row["place"], *cells, "met" if all(verdicts) else "**missed**"])
  if table:
    lines += [table_of(header, table), ""]
  table = []
  for row in now["figures"]:
    if row["scene"].startswith("outage"):
      verdicts = _verdicts(row)
      is_met = is_met and all(verdicts)
      cells = _after(row)
      if before:
        cells = [f"{cell} ({old})" for cell, old in zip(cells, _after(before.get(_key(row))), strict=True)]
      table.append([row["scene"], row["way"], *cells, "–" if not verdicts else "met" if all(verdicts) else "**missed**"])
  if table:
    lines += ["## After an outage", "", "20 names, none of them cached, each asked once a second throughout and for 20 s after it; no LocalDNS.", "",
              table_of(["outage", "provider", "answered within 2 s", "last one after", "verdict"], table), ""]
  if now["instructions"]:
    text = f"A cached answer takes {now['instructions']:,.0f} instructions (callgrind, one query at a time)"
    old = results.get("before", {}).get("instructions")
    if old:
      ratio = now["instructions"] / old
      is_met = is_met and ratio <= _HIT
      text += f", before {old:,.0f}: {ratio:.3f} times; must be at most {_HIT}"
    lines += ["## Hits", "", f"{text}.", ""]
  for result, name in ((now, ""), (results.get("before", {}), " (before)")):
    lines += [f"Note{name}: {' '.join(note.split())}" for note in result.get("notes", [])]
  return "\n".join(lines).rstrip() + "\n", is_met
