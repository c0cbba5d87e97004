"""quiet.py -- a hostile client in a quiet network: for seconds it is the only client, so that only its own names count.

Each scene gives the figures of `judgement.py`: LocalDNS answers no name of the others, and is asked for none.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial

from .clients import Stream, drive
from .judgement import ACCOUNT, HOSTILE, Judged, bursts, json_provider, local, others, series
from .lab import DYING_DOMAINS, Child, OpenLab, Programs, free_port
from .scenes import OTHERS, good_names

#: When the others' first name comes: the provider has given no verdict for longer than two seconds.
_BEGIN = 3.5


def dead_server(programs: Programs, kind: str) -> list[Judged]:
  """The second of a provider's servers takes connections and says nothing."""
  with OpenLab(programs) as lab:
    simulator, dead = lab.simulator("kind=stall&below=hostile.example", "kind=delay&ms=30"), lab.simulator()
    plain = lab.plain()
    servers = f'"127.0.0.1:{simulator.port}", "127.0.0.1:{dead.port}"'
    provider = (ACCOUNT.replace('"127.0.0.1:{port}"', servers) if kind == "tencent"
                else f'kind = "alidns"\nscheme = "http"\nservers = [{servers}]\n')
    port = lab.daemon_with([provider], local(plain))
    drive(port, [Stream(OTHERS, 20, good_names(0))], 1)
    os.kill(dead.child.process.pid, signal.SIGSTOP)
    good = Stream(OTHERS, 1 / 3, good_names(1), begin=_BEGIN + 1)
    drive(port, [good, *bursts(5, ["hostile.example"], every=1, turns=24)], 24)
    return others(f"a dead server in a quiet network: {kind}", good, plain)


def slow_server(programs: Programs) -> list[Judged]:
  """The second of a provider's servers is slow, and the only one that answers some names of the hostile client."""
  with OpenLab(programs) as lab:
    first = lab.simulator("kind=stall&below=hostile.example", "kind=stall&below=dying0.example", "kind=delay&ms=30")
    second = lab.simulator("kind=stall&below=hostile.example", "kind=delay&ms=600")
    plain = lab.plain()
    port = lab.daemon_with(
      [f'kind = "alidns"\nscheme = "http"\nservers = ["127.0.0.1:{first.port}", "127.0.0.1:{second.port}"]\n'], local(plain))
    drive(port, [Stream(OTHERS, 20, good_names(0))], 1)
    title = "a slow server in a quiet network"
    good = Stream(OTHERS, 1 / 4, good_names(1), begin=_BEGIN + 2)
    hanging = Stream(HOSTILE, 5, series(["hostile.example"], "h"))
    drive(port, [good, hanging, Stream(HOSTILE, 0.5, series(["dying0.example"], "s"), begin=2.6)], 24)
    longest = max(1000 * (query.latency or 9) for query in good.queries)
    return [*others(title, good, plain), Judged(title, "longest wait of the others, ms", round(longest), 500)]


class _Names:
  """A resolver that gives each name these addresses, until the program ends."""

  def __init__(self, addresses: list[str]) -> None:
    self.port = free_port()
    self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._socket.bind(("127.0.0.1", self.port))
    self._records = b"".join(struct.pack(">HHHIH", 0xC00C, 1, 1, 300, 4) + socket.inet_aton(text) for text in addresses)
    self._count = len(addresses)
    threading.Thread(target=self._serve, daemon=True).start()

  def _serve(self) -> None:
    while True:
      query, client = self._socket.recvfrom(4096)
      end = query.index(0, 12) + 5
      has_data = query[end - 4:end - 2] == b"\0\1"
      head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, self._count if has_data else 0, 0, 0)
      self._socket.sendto(head + query[12:end] + (self._records if has_data else b""), client)


def dead_address(programs: Programs, has_answered: bool) -> list[Judged]:
  """The second address of a provider's server takes connections and says nothing, also before the first has answered."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator("kind=stall&below=hostile.example", "kind=delay&ms=30"), lab.plain()
    dead = Child([str(programs.simulator), "--listen", f"127.0.0.2:{simulator.port}"], lab.folder / "dead.log")
    lab.children.append(dead)
    dead.wait_for("listening")
    resolver = _Names(["127.0.0.1", "127.0.0.2"])
    port = lab.daemon_with([
      f'kind = "json"\nurl = "http://provider.test:{simulator.port}/resolve"\nbootstrap = ["127.0.0.1:{resolver.port}"]\n'
    ], local(plain))
    if has_answered:
      drive(port, [Stream(OTHERS, 20, good_names(0))], 1)
    os.kill(dead.process.pid, signal.SIGSTOP)
    good = Stream(OTHERS, 1 / 4, good_names(1), begin=_BEGIN)
    drive(port, [good, *bursts(2, ["hostile.example"], turns=11)], 24)
    return others(f"a dead address in a quiet network, {'later' if has_answered else 'right after a start'}", good, plain)


def page(programs: Programs) -> list[Judged]:
  """100 names at once, over HTTP/1.1, while a client has all connections that it gets."""
  with OpenLab(programs) as lab:
    domains = [f"dying{number}.example" for number in range(DYING_DOMAINS)]
    simulator = lab.simulator(*(f"kind=stall&below={domain}" for domain in domains), "kind=delay&ms=45")
    plain = lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, 20, good_names(0))], 1)
    supply = good_names(1)
    pages = [Stream(OTHERS, 2000, itertools.islice(supply, 100), begin=_BEGIN + 4 * number) for number in range(3)]
    drive(port, [*pages, *bursts(80, domains, turns=6)], 13)
    return _together("a page of 100 names in a quiet network", pages, plain)


def asked_first(programs: Programs, lead: float) -> list[Judged]:
  """The client has all connections that it gets, and asks for the others' names before they do."""
  with OpenLab(programs) as lab:
    hostile = [f"good{number}.example" for number in range(60, 200)]
    simulator = lab.simulator(*(f"kind=stall&below={domain}" for domain in hostile), "kind=delay&ms=30")
    plain = lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, 20, (f"w{number}.good{number}.example" for number in range(20)))], 1)

    def asking(client: str, delay: float) -> list[Stream]:
      return [Stream(client, 1000, iter([f"www.good{number}.example"]), begin=4.6 + 4 * number + delay)
              for number in range(5)]

    wanted = asking(OTHERS, lead)
    drive(port, [*wanted, *asking(HOSTILE, 0), *bursts(140, hostile, every=2, turns=12)], 25)
    # LocalDNS may be asked for them on behalf of the hostile client.
    figures = _together(f"names that a hostile client asks for {lead} s before", wanted, plain)
    return [figure for figure in figures if "is asked" not in figure.figure]


def joined_page(programs: Programs) -> list[Judged]:
  """150 names at once, over HTTP/1.1, which a client that has all connections that it gets asks for as well.

  There is no LocalDNS, so that no names are removed to make room for others.
  """
  with OpenLab(programs) as lab:
    hostile = [f"good{number}.example" for number in range(60, 200)]
    simulator = lab.simulator(*(f"kind=stall&below={domain}" for domain in hostile), "kind=delay&ms=30")
    port = lab.daemon_with([json_provider(simulator.port)], [])
    drive(port, [Stream(OTHERS, 20, (f"w{number}.good{number}.example" for number in range(20)))], 1)

    def pages(client: str, delay: float) -> list[Stream]:
      # The hostile client asks in the other order.
      order = range(150) if client == OTHERS else reversed(range(150))
      names = [f"{number}.good{number % 59}.example" for number in order]
      return [Stream(client, 20_000, iter([f"p{turn}-{name}" for name in names]), begin=4.6 + 3 * turn + delay) for turn in range(5)]

    wanted = pages(OTHERS, 0)
    drive(port, [*wanted, *pages(HOSTILE, 0.006), *bursts(50, hostile, every=2, turns=9)], 19)
    queries = [query for stream in wanted for query in stream.queries]
    title = "a page that a hostile client asks for as well"
    longest = max(1000 * (query.latency or 9) for query in queries)
    return [Judged(title, "names of others without an answer", sum(query.address is None for query in queries), 0),
            Judged(title, "longest wait of the others, ms", round(longest), 700)]


def _together(title: str, streams: list[Stream], plain: object) -> list[Judged]:
  whole = Stream(OTHERS, 1, iter([]))
  whole.queries = [query for stream in streams for query in stream.queries]
  return others(title, whole, plain)


def scenes(programs: Programs) -> Iterator[Callable[[], list[Judged]]]:
  """All of them."""
  yield from (partial(dead_server, programs, kind) for kind in ("alidns", "tencent"))
  yield partial(slow_server, programs)
  yield from (partial(dead_address, programs, has_answered) for has_answered in (True, False))
  yield from (partial(scene, programs) for scene in (page, joined_page))
  yield from (partial(asked_first, programs, lead) for lead in (0.005, 0.5))
