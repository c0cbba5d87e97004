"""scenes.py -- what a hostile client does, and what becomes of everybody else meanwhile."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.processes import BenchError

from .clients import Stream, drive
from .lab import GOOD, GOOD_DOMAINS, MARK, Lab, OpenLab, Programs, Simulator

#: The others' queries a second, and the hostile client's.
GOOD_RATE, HOSTILE_RATE = 40.0, 20.0
#: Seconds for which the hostile client asks alone.
_ALONE = 2.0
#: Seconds for which the others go on to ask after an outage.
_AFTER = 20.0
_NXDOMAIN = 3
#: Where the others are.
OTHERS = "127.0.0.1"
#: Where the hostile client is: at the others' address, or at one of its own.
PLACES = {"same address": OTHERS, "different addresses": "127.0.0.9"}
#: How the provider is asked.
WAYS = ("json", "doh")

#: What the hostile client's own zone, or the provider because of it, does to a question.
SPOILS = {
  "late zone (6 s)": "kind=delay&ms=6000",
  "no reply ever": "kind=stall",
  "body too long": "kind=big&octets=900000",
  "invalid UTF-8": "kind=garble",
  "40 aliases": "kind=chain",
  "circular alias": "kind=loop",
  "unreadable name": "kind=bad-name",
  "unreadable RDATA": "kind=bad-rdata",
  "HTTP 400": "kind=status&code=400",
  "HTTP 401": "kind=status&code=401",
  "HTTP 403": "kind=status&code=403",
  "HTTP 404": "kind=status&code=404",
  "HTTP 429": "kind=status&code=429",
  "HTTP 500": "kind=status&code=500",
  "HTTP 503": "kind=status&code=503",
  "a page of HTML": "kind=html",
  "empty body": "kind=big&octets=0",
  "SERVFAIL, EDE 9": "kind=bogus&ede=9",
}


@dataclass
class Figure:
  """What one scene measured."""

  scene: str
  way: str
  place: str
  #: The others' queries, how many of them LocalDNS answered, and how many got no good answer at all.
  asked: int = 0
  localdns: int = 0
  failed: int = 0
  #: Their median latency while the hostile client asks against peace.
  slower: float = 0.0
  #: Questions about the hostile client's zone that reached the provider.
  transfers: int = 0
  #: Hostile questions that LocalDNS answered.
  hostile_localdns: int = 0
  #: Names answered within 2 s after an outage, and when the last one was.
  within: int = 0
  last: float | None = 0.0

  def as_dict(self) -> dict[str, object]:
    """For the JSON file beside the report."""
    return asdict(self)


def good_names(seed: int) -> Iterator[str]:
  """Names of many domains, none twice."""
  numbers = random.Random(seed)
  for count in itertools.count():
    yield f"g{seed}-{count}.good{numbers.randrange(GOOD_DOMAINS)}.example"


def _hostile_names(domain: str) -> Iterator[str]:
  return (f"{random.getrandbits(48):x}-{count}.{domain}" for count in itertools.count())


def _finish(figure: Figure, good: Stream) -> Figure:
  figure.asked = len(good.queries)
  figure.localdns = good.answered(MARK)
  figure.failed = good.failed(GOOD, MARK)
  return figure


def _peace_and_war(lab: Lab, port: int, figure: Figure, hostile: Stream, peace: float, war: float,
                   alone: float = _ALONE) -> Figure:
  """The others alone, then beside the hostile client."""
  before = Stream(OTHERS, GOOD_RATE, good_names(1))
  # The first names pay for the connections.
  drive(port, [Stream(OTHERS, GOOD_RATE, good_names(0))], 1)
  drive(port, [before], peace)
  # A provider is judged most easily while the hostile client is the only one.
  good = Stream(OTHERS, GOOD_RATE, good_names(2), begin=alone)
  drive(port, [good, hostile], war + alone)
  if before.failed(GOOD):
    raise BenchError(f"{before.failed(GOOD)} of {len(before.queries)} names were not answered by the provider in peace")
  figure.slower = good.latency() / before.latency()
  figure.hostile_localdns = hostile.answered(MARK)
  return _finish(figure, good)


def spoiled(programs: Programs, spoil: str, way: str, place: str, seconds: float) -> Figure:
  """20 hostile questions a second beside 40 good ones."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator(f"{SPOILS[spoil]}&below=hostile.example")
    port = lab.daemon(way, simulator.port, _address(lab))
    hostile = Stream(PLACES[place], HOSTILE_RATE, _hostile_names("hostile.example"))
    figure = Figure(spoil, way, place)
    _peace_and_war(lab, port, figure, hostile, seconds / 2, seconds)
    figure.transfers = simulator.transfers("hostile.example")
    return figure


def _address(lab: Lab) -> str:
  return f"127.0.0.1:{lab.plain().port}"


def flood(programs: Programs, way: str, place: str, names: int = 10_000, seconds: float = 5) -> Figure:
  """Random names of one domain, as fast as a script sends them."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator()
    port = lab.daemon(way, simulator.port, _address(lab))
    hostile = Stream(PLACES[place], names / seconds, itertools.islice(_hostile_names("flood.example"), names))
    figure = Figure("10,000 random names", way, place)
    _peace_and_war(lab, port, figure, hostile, seconds, seconds, alone=0)
    figure.transfers = simulator.transfers("flood.example")
    return figure


def slow(programs: Programs, way: str, place: str, names: int = 1_100) -> Figure:
  """One client's slow questions all at once, then another's 20 questions."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator("kind=stall&below=slow.example")
    port = lab.daemon(way, simulator.port, _address(lab))
    drive(port, [Stream(OTHERS, GOOD_RATE, good_names(0))], 1)
    hostile = Stream(PLACES[place], names / 0.4, itertools.islice(_hostile_names("slow.example"), names))
    good = Stream(OTHERS, 10, itertools.islice(good_names(1), 20), begin=0.6)
    drive(port, [hostile, good], 3)
    figure = Figure("1,100 slow questions", way, place, transfers=simulator.transfers("slow.example"))
    return _finish(figure, good)


def search_domain(programs: Programs, way: str) -> Figure:
  """`search com` from the network: 20 public names below it, and 20 that do not exist, are the provider's to answer."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator()
    # A resolver that the network hands out is asked at port 53.
    try:
      plain = lab.plain(host="127.53.66.1", port=53)
    except BenchError as error:
      raise BenchError(f"port 53 of 127.53.66.1 is not ours to take: {error}") from error
    file = lab.folder / "resolv.conf"
    file.write_text(f"search com\nnameserver {plain.host}\n")
    enter = ("unshare", "--mount", "sh", "-c",
             f'mount --bind "{file}" /etc/resolv.conf && exec "$0" "$@"')
    if subprocess.run([*enter, "true"], capture_output=True).returncode != 0:
      raise BenchError("no mount namespace can be made: it takes root")
    port = lab.daemon(way, simulator.port, "system", more='fallback = "never"\n', prefix=enter)
    names = [f"n{number}.www.{'example' if number % 2 else 'public'}.com" for number in range(20)]
    absent = [f"n{number}.nowhere.example.com" for number in range(20)]
    good, denied = Stream(OTHERS, 20, iter(names)), Stream(OTHERS, 20, iter(absent))
    drive(port, [good, denied], 1)
    figure = Figure("search com", way, "same address", transfers=simulator.transfers("com"))
    _finish(figure, good)
    figure.asked += len(denied.queries)
    figure.localdns += denied.answered(MARK)
    figure.failed += sum(query.rcode != _NXDOMAIN and query.address != MARK for query in denied.queries)
    return figure


def outage(programs: Programs, way: str, place: str, seconds: float, *, frozen: bool, has_peer: bool) -> list[Figure]:
  """20 names asked once a second while no upstream answers, beside a hostile client, and the time after that; unbound for
  comparison if it is installed and requested."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator()
    port = lab.daemon(way, simulator.port, None)
    plain = lab.plain(address=GOOD)
    peer = lab.unbound(plain.port) if has_peer else None
    for asked in [port] + ([peer] if peer else []):
      drive(asked, [Stream(OTHERS, GOOD_RATE, good_names(0))], 1)
    _take_away(simulator, plain, frozen)
    names = [f"outage.good{number}.example" for number in range(20)]
    good = Stream(OTHERS, 20, itertools.cycle(names))
    hostile = Stream(PLACES[place], HOSTILE_RATE, _hostile_names("hostile.example"))
    returned = time.monotonic() + seconds
    state = {"is back": False, "at": 0.0}

    def tick(_: float) -> None:
      if not state["is back"] and time.monotonic() >= returned:
        state["is back"] = True
        _give_back(lab, simulator, plain, frozen)
        state["at"] = time.monotonic()

    beside = Stream(OTHERS, 20, itertools.cycle(names))
    # The two would wait for each other in one loop.
    thread = threading.Thread(target=drive, args=(peer, [beside], seconds + _AFTER), daemon=True)
    if peer:
      thread.start()
    drive(port, [good, hostile], seconds + _AFTER, tick)
    title = f"outage of {seconds:.0f} s, {'frozen' if frozen else 'ended'}"
    figures = [_after_outage(Figure(title, way, place), good, state["at"])]
    if peer:
      thread.join()
      figures.append(_after_outage(Figure(f"{title}: unbound", "plain", place), beside, state["at"]))
    return figures


def _take_away(simulator: Simulator, plain: object, frozen: bool) -> None:
  for child in (simulator.child, plain.child):  # type: ignore[attr-defined]
    if frozen:
      os.kill(child.process.pid, signal.SIGSTOP)
    else:
      child.stop()


def _give_back(lab: Lab, simulator: Simulator, plain: object, frozen: bool) -> None:
  if frozen:
    for child in (simulator.child, plain.child):  # type: ignore[attr-defined]
      os.kill(child.process.pid, signal.SIGCONT)
    return
  for server in (simulator, plain):
    server.start()  # type: ignore[attr-defined]
    lab.children.append(server.child)  # type: ignore[attr-defined]


def _after_outage(figure: Figure, stream: Stream, returned: float) -> Figure:
  first: dict[str, float] = {}
  for query in stream.queries:
    if query.address == GOOD and query.latency is not None:
      moment = query.sent + query.latency - returned
      first[query.name] = min(first.get(query.name, float("inf")), moment)
  names = {query.name for query in stream.queries}
  figure.asked = len(names)
  figure.within = sum(first.get(name, float("inf")) <= 2 for name in names)
  figure.failed = sum(name not in first for name in names)
  figure.last = max(first.values()) if len(first) == len(names) else None
  return figure
