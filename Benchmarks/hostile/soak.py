"""soak.py -- load, faults, reloads, network changes and hostile clients for hours, judged by a model of the answers."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.dns import compose_query
from bench.processes import BenchError

from .clients import Query, Stream, drive
from .lab import MARK, Adversary, Lab, OpenLab, PlainServer, Programs, Simulator, certificate
from .scenes import SPOILS

_ROOT = Path(__file__).resolve().parent.parent.parent
_INSIDE = "SOAK_INSIDE"

#: The names that are in use, and over how many domains they are spread.
_NAMES, _DOMAINS = 3000, 100
#: Their TTL, which is also how long an answer of the zone before may be given.
_TTL = 60
#: `localdns.max_ttl`: how long LocalDNS's answer may be given after an outage.
_LOCAL_TTL = 5
#: Seconds of one round, and the others' queries a second.
_ROUND, _RATE = 10.0, 200.0
#: Queries a second for names of the provider that breaks all rules.
_CHAOS_RATE = 20.0
#: Rounds from one of these to the next.
_RELOADS, _NETWORKS, _OUTAGES, _ZONES = 2, 3, 11, 30
#: Within a round: when the reload and the change of network come, and from when to when the provider is out.
_RELOAD_AT, _NETWORK_AT, _OUT_FROM, _OUT_TO = 3.0, 5.0, 1.0, 7.0
#: Seconds after an outage, a reload or another network by which everything must be as before.
_GRACE = 2.0
#: A provider that went down is looked at again after 5 s, which may be too early, and then after 10 s more.
_DOWN = 10.0
#: Growth that is allowed from the second fifth of the samples to the last one.
_MEMORY_SHARE, _MEMORY_OCTETS, _DESCRIPTORS, _THREADS = 1.15, 4 << 20, 12, 1
_NXDOMAIN = 3

_THEMES = ["no attack", "flood", "slow", "odd packets", "silent TCP", "odd types", *SPOILS]
#: Rounds that it takes to speak of growth: every theme in each fifth of them.
_LEAST_SAMPLES = 5 * len(_THEMES)
#: Rounds in which each kind of hostile connection and of lie must have come about.
_LEAST_ROUNDS = 30
#: Search lists that the networks hand out in turn: none, top level domains, which have no effect, and a domain whose names
#: go to LocalDNS where the provider denies them.
_INTRANET = "corp.example"
_SEARCH_LISTS = ["", "com example", _INTRANET]
#: Its names: those that the provider denies, those that it knows, and queries a second.
_DENIED, _KNOWN, _INTRANET_RATE = 200, 20, 10.0
#: Seconds for which an answer of the network before may be given: none is kept for longer.
_SEARCH_GRACE = _LOCAL_TTL + _GRACE
#: Seconds after an outage for which LocalDNS may answer in the provider's place.
_LOCAL_AFTER = _DOWN + _LOCAL_TTL + _GRACE
#: What becomes of a query.
FATES = ("right", "of the intranet", "denied", "by LocalDNS", "failed", "lost", "wrong")
_OUTAGE_KINDS = ["kind=status&code=503", "kind=stall", "kind=reset", "killed"]


def _address(number: int, era: int) -> str:
  return f"10.{era % 200}.{number >> 8}.{number & 255}"


def _name(number: int) -> str:
  return f"h{number}.good{number % _DOMAINS}.example"


def _known(number: int) -> str:
  return f"k{number}.{_INTRANET}"


def _zone(era: int) -> str:
  lines = [f"$TTL {_TTL}", "$ORIGIN example.", "@ SOA ns1.example. hostmaster.example. 1 3600 600 604800 60"]
  lines += [f"{_name(number)}. A {_address(number, era)}" for number in range(_NAMES)]
  lines += [f"{_known(number)}. A {_address(number, era)}" for number in range(_KNOWN)]
  lines += [f"*.{name} A 192.0.2.99" for name in ("hostile", "flood", "slow")]
  return "\n".join(lines) + "\n"


@dataclass
class Sample:
  """What the daemon uses at the end of a round."""

  resident: int
  descriptors: int
  threads: int


def growth(samples: list[Sample]) -> tuple[list[str], list[str]]:
  """What the daemon used, in words, and what of it grew beyond what is allowed."""
  lines, found = [], []
  fifth = max(1, len(samples) // 5)
  early, late = samples[fifth:2 * fifth] or samples, samples[-fifth:]
  if is_short := len(samples) < _LEAST_SAMPLES:
    lines.append(f"growth is not judged: {len(samples)} rounds, where {_LEAST_SAMPLES} show every theme in each fifth")
  for what, unit, limit in (("resident", 1 << 20, lambda old: max(old * _MEMORY_SHARE, old + _MEMORY_OCTETS)),
                            ("descriptors", 1, lambda old: old + _DESCRIPTORS),
                            ("threads", 1, lambda old: old + _THREADS)):
    old, new = (median(getattr(sample, what) for sample in part) for part in (early, late))
    most = max(getattr(sample, what) for sample in samples)
    lines.append(f"{what}: {old / unit:.1f} in the second fifth, {new / unit:.1f} in the last, {most / unit:.1f} at most"
                 + (" (MiB)" if unit > 1 else ""))
    if new > limit(old) and not is_short:
      found.append(f"{what}: growth from {old / unit:.1f} to {new / unit:.1f}")
  return lines, found


class Judge:
  """What the answers may be: the zone's at the time, LocalDNS's in an outage and shortly after it, failures only then.

  Below the intranet's domain LocalDNS answers what the provider denies, on the network that hands the domain out.
  """

  def __init__(self) -> None:
    self.fates: Counter[str] = Counter()
    self.violations: list[str] = []
    #: When each era of the zone began.
    self.eras: list[float] = []
    #: When the provider was out.
    self.outages: list[tuple[float, float]] = []
    #: When each network began, and its search list.
    self.networks: list[tuple[float, str]] = []

  def judge(self, query: Query) -> None:
    """One query that is over."""
    number = int(query.name[1:query.name.index(".")])
    end = query.sent + (query.latency or 0)
    if query.latency is None:
      self._note("lost", query, is_allowed=False)
    elif query.name.startswith("i"):
      self._judge_intranet(query, end)
    elif query.address == MARK:
      self._note("by LocalDNS", query, is_allowed=self._was_out(query.sent, end, _LOCAL_AFTER))
    elif query.rcode != 0 or query.address is None:
      self._note("failed", query, is_allowed=self._was_out(query.sent, end, _GRACE))
    elif self._is_right(query.address, number, query.sent, end):
      self._note("right", query, is_allowed=True)
    else:
      self._note("wrong", query, is_allowed=False)

  def _judge_intranet(self, query: Query, end: float) -> None:
    """A name that the provider denies: LocalDNS answers it on the network that hands its domain out; elsewhere it does not exist."""
    begin = query.sent - _SEARCH_GRACE
    later = [moment for moment, _ in self.networks[1:]] + [float("inf")]
    lists = {search for (moment, search), over in zip(self.networks, later, strict=True) if moment <= end and begin <= over}
    if query.address == MARK:
      self._note("of the intranet", query,
                 is_allowed=_INTRANET in lists or self._was_out(query.sent, end, _LOCAL_AFTER))
    elif query.rcode == _NXDOMAIN:
      self._note("denied", query, is_allowed=lists != {_INTRANET})
    else:
      self._note("failed", query, is_allowed=query.address is None and self._was_out(query.sent, end, _GRACE))

  def missing(self) -> list[str]:
    """What never came about, so that nothing was shown of it."""
    return [f"no query was {fate}" for fate in ("right", "of the intranet", "denied") if not self.fates[fate]]

  def _note(self, fate: str, query: Query, *, is_allowed: bool) -> None:
    self.fates[fate] += 1
    if not is_allowed:
      self.fates[f"{fate}, against the model"] += 1
      if len(self.violations) < 20:
        self.violations.append(f"{fate}: {query.name} {query.address} RCODE {query.rcode} after {query.latency}")

  def _was_out(self, begin: float, end: float, grace: float) -> bool:
    return any(first <= end and begin <= last + grace for first, last in self.outages[-3:])

  def _is_right(self, address: str, number: int, begin: float, end: float) -> bool:
    for era in range(len(self.eras) - 1, -1, -1):
      over = self.eras[era + 1] if era + 1 < len(self.eras) else float("inf")
      # Beyond its TTL an answer may be given where the provider was out when it had to be fetched again.
      stale = _ROUND * 2 if self._was_out(over, begin, _TTL + _ROUND) else 0
      if self.eras[era] <= end and begin <= over + _TTL + 1 + stale:
        if address == _address(number, era):
          return True
    return False


class Soak:
  """The whole run."""

  def __init__(self, lab: Lab, seconds: float, seed: int) -> None:
    self._lab, self._seconds = lab, seconds
    self._random = random.Random(seed)
    self._judge = Judge()
    self._samples: list[Sample] = []
    self._events: Counter[str] = Counter()
    self._era = 0
    self._network = 0
    self._weights = list(itertools.accumulate(1 / (rank + 1) ** 0.8 for rank in range(_NAMES)))

  def run(self) -> bool:
    """Soaks, prints the summary, and returns whether all was well."""
    self._simulator = Simulator(self._lab.programs.simulator, self._lab.folder)
    self._lab.children.append(self._simulator.child)
    self._new_zone()
    # In a namespace port 53 is free: the plain resolver is one that the network hands out.
    self._plain = PlainServer(self._lab.folder, host="127.53.66.1", port=53)
    self._lab.children.append(self._plain.child)
    self._resolv_conf = self._lab.folder / "resolv.conf"
    self._write_resolv_conf()
    subprocess.run(["mount", "--bind", str(self._resolv_conf), "/etc/resolv.conf"], check=True)
    # A second provider that breaks all rules is asked for its own names and in an outage, where it says what LocalDNS says.
    authority, key = certificate(self._lab.folder)
    self._chaos = Adversary(self._lab, "http2", str(authority), str(key), f"!{MARK}", str(self._random.getrandbits(31)))
    self._store = Adversary(self._lab, "store", str(self._random.getrandbits(31)))
    providers = [f'kind = "json"\nurl = "http://127.0.0.1:{self._simulator.port}/resolve"\n',
                 f'kind = "doh"\nurl = "https://127.0.0.1:{self._chaos.port}/dns-query"\nca_file = "{authority}"\n'
                 'timeout = "1s"\nattempts_before_switch = 1\n']
    # So few that the cache is full within a minute: what grows afterwards is something else.
    more = (f'max_ttl = "{_LOCAL_TTL}s"\n[cache]\nmax_entries = 2000\nredis = "redis://127.0.0.1:{self._store.port}"\n'
            '[fleet]\nsecret = "0123456789abcdef0123456789abcdef"\n[[rule]]\nnames = ["chaos.example"]\nuse = "p1"\n')
    self._port = self._lab.daemon_with(providers, ["system"], more)
    end = time.monotonic() + self._seconds
    for number in itertools.count():
      if time.monotonic() >= end:
        break
      self._round(number)
    return self._summary()

  # One round

  def _round(self, number: int) -> None:
    theme = _THEMES[number % len(_THEMES)]
    is_outage = number % _OUTAGES == _OUTAGES - 1
    if number % _ZONES == _ZONES - 1:
      self._new_zone()
    good = [Stream(f"127.0.0.{host}", _RATE / 4, self._names()) for host in (1, 2, 3, 4)]
    good.append(Stream("127.0.0.5", _INTRANET_RATE, self._intranet()))
    self._simulator.control("DELETE", "fault")
    hostile = self._hostile(theme)
    # Nothing is promised of what this provider says.
    hostile.append(Stream("127.0.0.10", _CHAOS_RATE, (f"c{self._random.getrandbits(32)}.chaos.example" for _ in itertools.count())))
    pending = []
    if number % _RELOADS == 0:
      pending.append((_RELOAD_AT, self._reload))
    if number % _NETWORKS == 0:
      pending.append((_NETWORK_AT, self._change_network))
    if is_outage:
      kind = _OUTAGE_KINDS[number // _OUTAGES % len(_OUTAGE_KINDS)]
      pending += [(_OUT_FROM, lambda: self._take_away(kind)), (_OUT_TO, lambda: self._give_back(kind))]
    pending.sort(key=lambda event: event[0])

    def tick(elapsed: float) -> None:
      while pending and pending[0][0] <= elapsed:
        pending.pop(0)[1]()

    drive(self._port, [*good, *hostile], _ROUND, tick)
    for stream in good:
      for query in stream.queries:
        self._judge.judge(query)
    for silent in self._silent:
      silent.close()
    self._events[f"hostile: {theme}"] += 1
    self._sample()
    if number % 30 == 29:
      print(f"round {number + 1}: {dict(self._judge.fates)}, {self._samples[-1]}", file=sys.stderr, flush=True)

  def _names(self):
    while True:
      point = self._random.random() * self._weights[-1]
      low, high = 0, _NAMES - 1
      while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if self._weights[middle] >= point else (middle + 1, high)
      yield _name(low)

  def _intranet(self):
    while True:
      yield f"i{self._random.randrange(_DENIED)}.{_INTRANET}"
      yield _known(self._random.randrange(_KNOWN))

  def _hostile(self, theme: str) -> list[Stream]:
    """The hostile client of a round, once at the others' address and once at its own."""
    self._silent: list[socket.socket] = []
    names = (f"{self._random.getrandbits(48):x}" for _ in itertools.count())
    source = self._random.choice(["127.0.0.1", "127.0.0.9"])
    if theme == "flood":
      return [Stream(source, 1000, (f"{name}.flood.example" for name in names), end=4)]
    if theme == "slow":
      self._simulator.control("POST", "fault?kind=stall&below=slow.example")
      return [Stream(source, 1000, (f"{name}.slow.example" for name in names), end=1.1)]
    if theme == "silent TCP":
      for number in range(150):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.settimeout(1)
        client.bind((f"127.0.0.{20 + number % 9}", 0))
        try:
          client.connect(("127.0.0.1", self._port))
        except OSError:
          client.close()
          continue
        self._silent.append(client)
      return []
    if theme in ("odd packets", "odd types"):
      self._send_odd(theme == "odd types")
      return []
    if theme in SPOILS:
      self._simulator.control("POST", f"fault?{SPOILS[theme]}&below=hostile.example")
      return [Stream(source, 20, (f"{name}.hostile.example" for name in names))]
    return []

  def _send_odd(self, are_types: bool) -> None:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind(("127.0.0.9", 0))
    client.connect(("127.0.0.1", self._port))
    client.setblocking(False)
    for number in range(500):
      query = bytearray(compose_query(f"t{number}.hostile.example", number))
      if are_types:
        query[-4:-2] = self._random.randrange(1, 65536).to_bytes(2, "big")
      else:
        for _ in range(self._random.randrange(1, 8)):
          query[self._random.randrange(len(query))] = self._random.randrange(256)
      try:
        client.send(bytes(query[:self._random.randrange(1, len(query) + 1)] if not are_types else query))
      except OSError:
        continue
    client.close()

  # Events

  def _reload(self) -> None:
    """Reloads once, or many times in a row."""
    for _ in range(self._random.choice([1, 1, 1, 30])):
      self._events["reloads"] += 1
      os.kill(self._lab.daemon_process.pid, signal.SIGHUP)
      time.sleep(0.005)

  def _write_resolv_conf(self) -> None:
    search = _SEARCH_LISTS[self._network % len(_SEARCH_LISTS)]
    line = f"search {search}\n" if search else ""
    self._resolv_conf.write_text(f"{line}nameserver {self._plain.host}\n")
    self._judge.networks.append((time.monotonic(), search))
    self._events[f"search list: {search or 'none'}"] += 1

  def _change_network(self) -> None:
    self._events["network changes"] += 1
    self._network += 1
    net = self._network % len(_SEARCH_LISTS)
    for command in (["addr", "flush", "dev", "soak0"], ["addr", "add", f"10.66.{net}.2/24", "dev", "soak0"],
                    ["route", "replace", "default", "via", f"10.66.{net}.1"]):
      subprocess.run(["ip", *command], check=True)
    self._write_resolv_conf()

  def _take_away(self, kind: str) -> None:
    self._events["outages"] += 1
    self._judge.outages.append((time.monotonic(), float("inf")))
    if kind == "killed":
      self._simulator.child.stop()
    else:
      # The first fault that matches counts: what a hostile zone has goes before.
      self._simulator.control("DELETE", "fault")
      self._simulator.control("POST", f"fault?{kind}")

  def _give_back(self, kind: str) -> None:
    if kind == "killed":
      self._simulator.start()
      self._lab.children.append(self._simulator.child)
      self._put_zone()
    else:
      self._simulator.control("DELETE", "fault")
    self._judge.outages[-1] = (self._judge.outages[-1][0], time.monotonic())

  def _new_zone(self) -> None:
    self._era = len(self._judge.eras)
    self._put_zone()
    self._judge.eras.append(time.monotonic())

  def _put_zone(self) -> None:
    self._simulator.control("PUT", "zone", _zone(self._era).encode())

  # The end

  def _sample(self) -> None:
    process = Path(f"/proc/{self._lab.daemon_process.pid}")
    if self._lab.daemon_process.poll() is not None:
      raise BenchError(f"the daemon has ended:\n{(self._lab.folder / 'httpdnsd.log').read_text()[-3000:]}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    # Without pages of files: those of the program come in as parts of it are used for the first time.
    self._samples.append(Sample(int(status["RssAnon"].split()[0]) * 1024, len(list((process / "fd").iterdir())),
                                 int(status["Threads"])))

  def _summary(self) -> bool:
    lines = [f"{sum(self._judge.fates[fate] for fate in FATES):,} queries of "
             f"others: " + ", ".join(f"{count:,} {fate}" for fate, count in sorted(self._judge.fates.items()))]
    used, found = growth(self._samples)
    lines += used
    state = json.loads(subprocess.run(
      [str(self._lab.programs.httpdnsd), "stats", "--json", "--socket", str(self._lab.folder / "control.sock")],
      capture_output=True, check=True, text=True).stdout)
    lines.append(f"the daemon: {state['queries']:,} queries, {state['cache']['entries']:,} entries in the cache, "
                 f"{state['questions_under_way']} questions in flight, {state['waiting_clients']} clients wait")
    if state["waiting_clients"] or state["questions_under_way"] > 8:
      found.append("questions are left over")
    lines.append("events: " + ", ".join(f"{count} {name}" for name, count in sorted(self._events.items())))
    lines += [f"HTTP/2: {self._chaos.done()}", f"store: {self._store.done()}"]
    if len(self._samples) >= _LEAST_ROUNDS:
      found += self._chaos.missing() + self._store.missing()
    found += self._judge.missing() + self._judge.violations
    print("\n".join([*lines, *(f"VIOLATION {violation}" for violation in found)]))
    print("soak: all was well" if not found else "soak: FAILED")
    if found:
      print((self._lab.folder / "httpdnsd.log").read_text()[-2000:], file=sys.stderr)
    return not found


def _arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="Benchmarks/run-soak", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--hours", type=float, default=1)
  parser.add_argument("--minutes", type=float, help="instead of hours")
  parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of names and order; it is printed")
  return parser.parse_args()


def main() -> int:
  """Enters a namespace of its own as root, and soaks there."""
  options = _arguments()
  if os.geteuid() != 0:
    print("soak: must run as root: it makes a network namespace", file=sys.stderr)
    return 2
  # The name of the network that it was started in: what is left in an environment must not do for a namespace.
  outside = os.readlink("/proc/self/ns/net")
  if os.environ.get(_INSIDE, outside) == outside:
    os.environ[_INSIDE] = outside
    os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, *sys.argv])
  for command in (["link", "set", "lo", "up"], ["link", "add", "soak0", "type", "veth", "peer", "name", "soak1"],
                  ["link", "set", "soak1", "up"], ["addr", "add", "10.66.0.2/24", "dev", "soak0"],
                  ["link", "set", "soak0", "up"],
                  ["route", "add", "default", "via", "10.66.0.1"]):
    subprocess.run(["ip", *command], check=True)
  seconds = 60 * options.minutes if options.minutes is not None else 3600 * options.hours
  print(f"soak: {seconds / 60:.0f} minutes, seed {options.seed}", flush=True)
  try:
    with OpenLab(Programs(options.httpdnsd, options.simulator)) as lab:
      return 0 if Soak(lab, seconds, options.seed).run() else 1
  except BenchError as error:
    print(f"soak: {error}", file=sys.stderr)
    return 1
