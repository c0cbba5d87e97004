"""report_encrypted.py -- the part of the report about DNS over TLS and HTTPS."""

from __future__ import annotations

import re
import statistics

from .encrypted import EncryptedCosts
from .encrypted_handshakes import (
  ELSEWHERE,
  FLOOR,
  FULL,
  HANDSHAKES,
  HITS,
  KINDS,
  MISSES,
  RESUMED,
  WITH,
  WITHOUT,
  Handshakes,
  Storm,
)
from .encrypted_hits import LIMITED, LOADS, PACED, EncryptedHits
from .encrypted_idle import CONNECTIONS, OFF, PROTOCOLS, UNSET, IdleCosts, Presence
from .encrypted_lab import BEFORE, DNSDIST, OURS, UNBOUND
from .encrypted_renewal import Renewals
from .load import Load
from .machine import package_version
from .table import NOT_MEASURED, Row, table, verdict

#: Calls that housekeeping may make while the answers are counted.
_HOUSEKEEPING_CALLS = 20
_STORM_FIGURES = ("cpu", "hit", "miss")
_PROTOCOL_NAMES = {"dot": "DoT", "doh": "DoH", "tcp": "TCP", "udp": "UDP"}


def _spread(values: list[float]) -> str:
  return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _load_name(load: Load) -> str:
  return f"{PACED.rate:,} q/s" if load.name == PACED.name else "saturation"


def _counts_over_https() -> list[str]:
  """dnsdist before 1.9 has another HTTP server, which stalls now and then: it is shown and does not count."""
  version = re.match(r"(\d+)\.(\d+)", package_version("dnsdist"))
  is_new = version is not None and (int(version.group(1)), int(version.group(2))) >= (1, 9)
  return [UNBOUND, DNSDIST] if is_new else [UNBOUND]


def _hit_row(hits: EncryptedHits, figure: str, limit_text: str, pairs: list[tuple[str, str, str]], limit: float,
             counted: list[str]) -> Row:
  """Ratios that must hold at both loads: of a program to another over a protocol, where the other one counts."""
  texts, found, is_met = [], set[str](), True
  for protocol, program, other in pairs:
    for load in LOADS:
      ratios = hits.ratios(protocol, program, other, load)
      if not ratios:
        continue
      results = hits.results[protocol]
      is_complete = results.is_complete(program, load) and program not in results.failures
      reference = f" × {other}" if len(pairs) > 1 else ""
      texts.append(f"{_spread(ratios)}{reference} at {_load_name(load)}" + ("" if is_complete else ", with losses"))
      if other in counted:
        found.add(other)
        is_met = is_met and is_complete and statistics.median(ratios) <= limit
  if not texts:
    return Row(figure, limit_text)
  if not found.issuperset(counted):
    return Row(figure, limit_text, "; ".join(texts), "not fully measured" if is_met else verdict(False))
  return Row(figure, limit_text, "; ".join(texts), verdict(is_met))


def _allocation_row(hits: EncryptedHits) -> Row:
  figure, limit = "`malloc` calls per hit, without those of OpenSSL and nghttp2, over DoT and DoH, and over UDP with `rate_limit`", "0"
  if not hits.allocations:
    return Row(figure, limit)
  text = "; ".join(f"{_PROTOCOL_NAMES[protocol]} {count.calls:,} calls in {count.answers:,} answers"
                   for protocol, count in hits.allocations.items())
  is_met = all(count.calls <= _HOUSEKEEPING_CALLS for count in hits.allocations.values())
  is_whole = hits.allocations.keys() >= {"dot", "doh", "udp"}
  return Row(figure, limit, text, verdict(is_met) if is_whole or not is_met else "not fully measured")


def _handshake_row(handshakes: Handshakes | None) -> Row:
  figure, limit = f"CPU of a handshake, P-256, full / resumed, ratio to `{FLOOR}`'s in the same round", "≤ 1.3"
  ratios = [handshakes.ratios(OURS, kind) for kind in KINDS] if handshakes else []
  if not ratios or not all(ratios):
    return Row(figure, limit)
  is_met = all(statistics.median(values) <= 1.3 for values in ratios)
  return Row(figure, limit, " / ".join(map(_spread, ratios)), verdict(is_met))


def _memory_row(idle: IdleCosts | None) -> Row:
  figure, limit = f"memory of an idle connection, {CONNECTIONS} of them, DoT / DoH", "≤ 1.0 × unbound"
  if idle is None or (OURS, "dot") not in idle.kibibytes:
    return Row(figure, limit)
  of = {place: statistics.median(values) for place, values in idle.kibibytes.items()}
  names = [name for name in (OURS, UNBOUND, DNSDIST) if (name, "dot") in of]
  text = "; ".join(f"{name} {of[name, 'dot']:.1f} / {of[name, 'doh']:.1f} KiB" for name in names)
  if UNBOUND not in names:
    return Row(figure, limit, text, "not fully measured")
  return Row(figure, limit, text, verdict(all(of[OURS, protocol] <= of[UNBOUND, protocol] for protocol in PROTOCOLS)))


def _storm_row(storms: dict[str, Storm] | None) -> Row:
  figure = (f"{HANDSHAKES} handshakes/s of many clients beside {HITS:,} hits/s and {MISSES} misses/s over UDP, against without: "
            "CPU of the listener's thread / median of hits / of misses")
  limit = "≤ 1.05 / ≤ 1.1 / ≤ 1.1"
  if storms is None or OURS not in storms:
    return Row(figure, limit)
  storm = storms[OURS]
  if not storm.samples:
    return Row(figure, limit)
  ratios, elsewhere = ([statistics.median(storm.ratios(name, condition)) for name in _STORM_FIGURES]
                       for condition in (WITH, ELSEWHERE))
  is_met = all(ratio <= most for ratio, most in zip(ratios, (1.05, 1.1, 1.1), strict=True)) and storm.failed == 0
  failed = f"; {storm.failed:,} handshakes failed" if storm.failed else ""
  texts = [" / ".join(f"{ratio:.2f}" for ratio in values) for values in (ratios, elsewhere)]
  return Row(figure, limit, f"{texts[0]}; {texts[1]} beside those of `{FLOOR}`{failed}", verdict(is_met))


def _renewal_row(renewals: Renewals | None) -> Row:
  figure, limit = "renewed certificate in use after, the slowest / connections of before that no longer answer", "≤ 5 s / 0"
  if renewals is None or not renewals.seconds:
    return Row(figure, limit)
  slowest = max(renewals.seconds)
  text = f"{slowest:.2f} s of {len(renewals.seconds)} / {renewals.lost} of {renewals.kept + renewals.lost}"
  return Row(figure, limit, text, verdict(slowest <= 5 and renewals.lost == 0))


def _presence_row(presence: dict[str, Presence] | None) -> Row:
  figure, limit = "threads and sockets without encrypted listeners", "as without the section, and as before"
  if presence is None:
    return Row(figure, limit)
  text = "; ".join(f"{count.threads} and {count.sockets} {name}" for name, count in presence.items())
  alike = [presence[name] for name in (OFF, UNSET, BEFORE) if name in presence]
  return Row(figure, limit, text, verdict(all(count == alike[0] for count in alike)))


def encrypted_rows(costs: EncryptedCosts | None) -> list[Row]:
  """The requirements in their order."""
  found = costs or EncryptedCosts()
  hits = found.hits
  return [
    _hit_row(hits, "CPU of a hit over DoT, ratio in the same rounds", "≤ 1.0 × unbound and dnsdist",
             [("dot", OURS, UNBOUND), ("dot", OURS, DNSDIST)], 1.0, [UNBOUND, DNSDIST]),
    _hit_row(hits, "CPU of a hit over DoH and HTTP/2, ratio in the same rounds", "≤ 1.0 × unbound and dnsdist from 1.9 on",
             [("doh", OURS, UNBOUND), ("doh", OURS, DNSDIST)], 1.0, _counts_over_https()),
    _allocation_row(hits),
    _handshake_row(found.handshakes),
    _memory_row(found.idle),
    _storm_row(found.storms),
    _hit_row(hits, "CPU of a hit over TCP, ratio to the program of before", "≤ 1.02", [("tcp", OURS, BEFORE)], 1.02, [BEFORE]),
    _hit_row(hits, "CPU of a hit over UDP with `rate_limit`, ratio to without", "≤ 1.03", [("udp", LIMITED, OURS)], 1.03,
             [OURS]),
    _renewal_row(found.renewals),
    _presence_row(found.presence),
  ]


def _hit_table(hits: EncryptedHits) -> list[str]:
  rows = []
  for protocol, results in hits.results.items():
    for name in (OURS, LIMITED, BEFORE, UNBOUND, DNSDIST):
      cells = []
      for load in LOADS:
        microseconds, rate = results.microseconds(name, load), results.rate(name, load)
        if microseconds is None or rate is None:
          continue
        lost = "" if results.is_complete(name, load) else ", with losses"
        cells += [f"{microseconds:.2f}{lost}", f"{rate:,.0f}"]
      if cells:
        rows.append([f"{name}, {_PROTOCOL_NAMES[protocol]}", *cells])
  if not rows:
    return []
  header = [text for load in LOADS for text in (f"µs at {_load_name(load)}", "answers/s")]
  return ["## Encrypted: CPU of a hit", table(["server", *header], rows)]


def _handshake_table(handshakes: Handshakes) -> list[str]:
  names = dict.fromkeys(name for name, _ in handshakes.microseconds)
  rows = []
  for name in sorted(names, key=lambda name: (name == FLOOR, name)):
    cells = [name]
    for kind in (FULL, RESUMED):
      ratios = handshakes.ratios(name, kind)
      cells += [f"{statistics.median(handshakes.microseconds[name, kind]):.0f}", _spread(ratios) if ratios else NOT_MEASURED]
    rows.append(cells)
  return ["## Encrypted: CPU of a handshake, TLS 1.3, a certificate with P-256",
          table(["server", "µs, full", f"ratio to {FLOOR}", "µs, resumed", f"ratio to {FLOOR}"], rows)]


def _idle_table(idle: IdleCosts) -> list[str]:
  names = dict.fromkeys(name for name, _ in idle.kibibytes)
  rows = [[name, *(f"{statistics.median(idle.kibibytes[name, protocol]):.1f}" for protocol in PROTOCOLS)] for name in names]
  return [f"## Encrypted: memory of an idle connection, {CONNECTIONS} of them, in KiB", table(["server", "DoT", "DoH"], rows)]


def _storm_table(storms: dict[str, Storm]) -> list[str]:
  rows = []
  for name, storm in storms.items():
    for condition in (WITHOUT, WITH, ELSEWHERE):
      if not storm.samples:
        continue
      whose = {WITH: f"{storm.made:,}, {storm.failed:,} failed", ELSEWHERE: f"with {FLOOR}", WITHOUT: "none"}[condition]
      cells = [name, whose]
      for figure, unit in zip(_STORM_FIGURES, (1e-3, 1e3, 1e3), strict=True):
        cells.append(f"{statistics.median(storm.of(figure, condition)) * unit:.3f}")
        cells.append(_spread(storm.ratios(figure, condition)) if condition != WITHOUT else NOT_MEASURED)
      rows.append(cells)
  header = ["server", "handshakes", "CPU of an answer in µs", "ratio to none", "median of hits in ms", "ratio to none",
            "of misses", "ratio to none"]
  return [f"## Encrypted: {HANDSHAKES} handshakes/s of many clients beside {HITS:,} hits/s and {MISSES} misses/s over UDP",
          table(header, rows)]


def encrypted_parts(costs: EncryptedCosts | None) -> list[str]:
  """The tables behind the requirements, each with its title."""
  if costs is None:
    return []
  return [*_hit_table(costs.hits), *(_handshake_table(costs.handshakes) if costs.handshakes else []),
          *(_idle_table(costs.idle) if costs.idle else []), *(_storm_table(costs.storms) if costs.storms else [])]
