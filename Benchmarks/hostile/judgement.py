"""judgement.py -- who decides about a name while something fails: the provider that answers it, LocalDNS where none does.

Each scene measures figures with a bound. LocalDNS marks its answers and writes what it was asked.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median, quantiles

from bench.processes import BenchError

from .clients import Stream, drive
from .lab import DYING_DOMAINS, GOOD, MARK, Lab, OpenLab, PlainServer, Programs, Simulator
from .scenes import OTHERS, good_names

#: Where the hostile client is.
HOSTILE = "127.0.0.9"
#: The others' queries a second.
_RATE = 20.0
#: What makes a question end without a verdict at once.
_AT_ONCE = {
  "HTTP 403": "kind=status&code=403",
  "HTTP 500": "kind=status&code=500",
  "a page of HTML": "kind=html",
  "10 MB": "kind=big",
  "not JSON": "kind=garble",
}
#: What happens to the names of zones that die.
_DEATHS = {"SERVFAIL": "kind=bogus&ede=22", "no reply": "kind=stall", "HTTP 500": "kind=status&code=500",
           "HTTP 403": "kind=status&code=403", "unreadable": "kind=garble"}
#: An account that the simulator knows, billed by the transfer.
ACCOUNT = 'kind = "tencent"\ncipher = "aes"\nid = "1234"\nkey = "AesKey0123456789"\nscheme = "http"\nservers = ["127.0.0.1:{port}"]\n'


@dataclass(frozen=True)
class Judged:
  """A figure of a scene, and the most that it may be; with `is_least`, the least."""

  scene: str
  figure: str
  value: float
  bound: float
  is_least: bool = False

  @property
  def is_met(self) -> bool:
    """Whether it is what it must be."""
    return self.value >= self.bound if self.is_least else self.value <= self.bound

  def as_dict(self) -> dict[str, object]:
    """For the JSON file beside the report."""
    return asdict(self) | {"is_met": self.is_met}


def json_provider(port: int) -> str:
  """The table of a provider at a port."""
  return f'kind = "json"\nurl = "http://127.0.0.1:{port}/resolve"\n'


def local(plain: PlainServer) -> list[str]:
  """The address of a LocalDNS server."""
  return [f"127.0.0.1:{plain.port}"]


def others(title: str, good: Stream, plain: PlainServer) -> list[Judged]:
  """The others' names: LocalDNS answers none, and is asked for none."""
  wanted = {query.name for query in good.queries}
  asked = {name for name, _ in plain.asked()} & wanted
  return [Judged(title, "names of others that LocalDNS answers", good.answered(MARK), 0),
          Judged(title, "names of others that LocalDNS is asked for", len(asked), 0),
          Judged(title, "names of others without an answer", good.failed(GOOD, MARK), 0)]


def series(domains: list[str], tag: str) -> Iterator[str]:
  """Names of these domains in turn, none twice."""
  return (f"{tag}{count}.{domains[count % len(domains)]}" for count in itertools.count())


def dying(programs: Programs, death: str, has_account: bool) -> list[Judged]:
  """A client asks for names of nine domains of its own, lets these die, and asks on."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(), lab.plain()
    provider = ACCOUNT.format(port=simulator.port) if has_account else json_provider(simulator.port)
    port = lab.daemon_with([provider], local(plain))
    domains = [f"dying{number}.example" for number in range(DYING_DOMAINS)]
    drive(port, [Stream(OTHERS, 40, good_names(0)), Stream(HOSTILE, 40, series(domains, "a"))], 1)
    for domain in domains:
      simulator.fault(f"{_DEATHS[death]}&below={domain}")
    drive(port, [Stream(HOSTILE, 20, series(domains, "b"))], 3)
    good = Stream(OTHERS, _RATE, good_names(1))
    drive(port, [good, Stream(HOSTILE, 20, series(domains, "c"))], 4)
    account = ", with an account" if has_account else ""
    return others(f"nine domains die: {death}{account}", good, plain)


def lame(programs: Programs, death: str, has_account: bool) -> list[Judged]:
  """Right after the start four names of one zone fail."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(f"{_DEATHS[death]}&below=hostile.example"), lab.plain()
    provider = ACCOUNT.format(port=simulator.port) if has_account else json_provider(simulator.port)
    port = lab.daemon_with([provider], local(plain))
    good = Stream(OTHERS, _RATE, good_names(1), begin=0.3)
    drive(port, [Stream(HOSTILE, 40, itertools.islice(series(["hostile.example"], "x"), 4)), good], 4)
    return others(f"four lame names after the start: {death}, {'account' if has_account else 'no account'}", good, plain)


def without_verdict(programs: Programs, fault: str) -> list[Judged]:
  """The provider gives no name a verdict, and says so at once."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(_AT_ONCE[fault]), lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    good = Stream(OTHERS, 10, itertools.islice(good_names(1), 40))
    drive(port, [good], 4)
    slowest = max((query.latency or 99 for query in good.queries), default=99)
    title = f"no verdict: {fault}"
    return [Judged(title, "share of names that LocalDNS answers at the first query", good.answered(MARK) / 40, 1, is_least=True),
            Judged(title, "longest wait in seconds", round(slowest, 3), 0.5)]


class _Swallower:
  """Drops all packets to and from ports: nftables, as root."""

  def __init__(self, ports: list[int]) -> None:
    self._run = partial(subprocess.run, check=True, capture_output=True)
    self._table = f"httpdnsd_hostile_{os.getpid()}_{ports[0]}"
    if os.geteuid() != 0 or shutil.which("nft", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
      raise BenchError("packets can be dropped only as root, and with nftables")
    numbers = ", ".join(map(str, ports))
    self._run(["nft", "-f", "-"], input=f"""table inet {self._table} {{
  chain input {{
    type filter hook input priority 0
    tcp dport {{ {numbers} }} drop
    tcp sport {{ {numbers} }} drop
  }}
}}
""".encode())

  def end(self) -> None:
    """Lets them through again."""
    self._run(["nft", "delete", "table", "inet", self._table])


def silent(programs: Programs, count: int, http2: bool, swallows: bool) -> list[Judged]:
  """Providers with a usual time of 30 ms take connections and say nothing, or all packets to them are lost."""
  with OpenLab(programs) as lab:
    plain = lab.plain()
    simulators = [lab.simulator("kind=delay&ms=30") for _ in range(count)]
    proxies = [lab.proxy(simulator.port) for simulator in simulators] if http2 else []
    texts = ([f'kind = "doh"\nurl = "https://127.0.0.1:{proxy.port}/dns-query"\nca_file = "{proxy.authority}"\n'
              for proxy in proxies] if http2 else [json_provider(simulator.port) for simulator in simulators])
    port = lab.daemon_with(texts, local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 2)
    fronts = proxies or simulators
    swallower = None
    if swallows:
      swallower = _Swallower([front.port for front in fronts])
    else:
      for front in fronts:
        os.kill(front.child.process.pid, signal.SIGSTOP)
    try:
      good = Stream(OTHERS, _RATE, good_names(1))
      drive(port, [good], 14)
    finally:
      if swallower:
        swallower.end()
    begin = good.queries[0].sent
    waits = [1000 * (query.latency or 9) for query in good.queries if query.sent - begin >= 3]
    more = 150 * (count - 1)
    title = (f"{'swallows packets' if swallows else 'says nothing'}: {count} provider{'s' if count > 1 else ''}, "
             f"HTTP/{2 if http2 else 1.1}")
    return [Judged(title, "median of a new name from the third second on, ms", round(median(waits)), 200 + more),
            Judged(title, "99 % of them, ms", round(quantiles(waits, n=100)[98]), 400 + more),
            Judged(title, "names without an answer", good.failed(MARK, GOOD), 0)]


def impatient(programs: Programs, milliseconds: int) -> list[Judged]:
  """A client asks for names that get no reply, beside a provider in its usual time."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator("kind=stall&below=hostile.example", f"kind=delay&ms={milliseconds}")
    plain = lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 2)
    good = Stream(OTHERS, _RATE, good_names(1))
    drive(port, [good, Stream(HOSTILE, 10, series(["hostile.example"], "x"))], 10)
    return others(f"patience kept short, usual time {milliseconds} ms", good, plain)


def bursts(count: int, domains: list[str], address: str = HOSTILE, *, every: float = 2.1, turns: int = 5) -> list[Stream]:
  """`count` names at once, repeated `turns` times; by default after the previous ones have timed out."""
  return [Stream(address, 1000, itertools.islice(series(domains, f"x{address.rpartition('.')[2]}-{turn}-"), count), begin=every * turn)
          for turn in range(turns)]


def holding(programs: Programs) -> list[Judged]:
  """Three clients hold all connections of HTTP/1.1 that they get, with names that get no reply."""
  with OpenLab(programs) as lab:
    domains = [f"dying{number}.example" for number in range(DYING_DOMAINS)]
    simulator = lab.simulator(*(f"kind=stall&below={domain}" for domain in domains), "kind=delay&ms=30")
    plain = lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 2)
    good = Stream(OTHERS, _RATE, good_names(1))
    drive(port, [good, *(burst for number in range(3) for burst in bursts(80, domains, f"127.0.0.{9 + number}"))], 12)
    title = "three clients hold connections"
    longest = max(1000 * (query.latency or 9) for query in good.queries)
    return [*others(title, good, plain), Judged(title, "longest wait of the others, ms", round(longest), 500)]


def half_dead(programs: Programs) -> list[Judged]:
  """The second of a provider's servers takes connections and says nothing, and names of a client get no reply."""
  with OpenLab(programs) as lab:
    simulator, dead = lab.simulator("kind=stall&below=hostile.example", "kind=delay&ms=30"), lab.simulator()
    plain = lab.plain()
    servers = f'127.0.0.1:{simulator.port}", "127.0.0.1:{dead.port}'
    port = lab.daemon_with([ACCOUNT.replace("127.0.0.1:{port}", servers)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 2)
    os.kill(dead.child.process.pid, signal.SIGSTOP)
    good = Stream(OTHERS, 5, good_names(1))
    drive(port, [good, *bursts(8, ["hostile.example"])], 12)
    return others("a dead server beside a live one", good, plain)


def back(programs: Programs, seconds: float, *, frozen: bool) -> list[Judged]:
  """After an outage all names are the provider's again; nothing was sent only to find that out."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(), lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 2)
    _take(simulator, frozen)
    good = Stream(OTHERS, 5, good_names(1))
    drive(port, [good], seconds)
    _give(lab, simulator, frozen)
    returned = time.monotonic()
    after = Stream(OTHERS, _RATE, good_names(2))
    drive(port, [after], 8)
    last = max((at for _, at in plain.asked()), default=returned) - returned
    title = f"outage of {seconds:.0f} s, {'frozen' if frozen else 'ended'}"
    figures = [Judged(title, "last name that LocalDNS is asked for, s after its end", round(max(0.0, last), 2), 2),
               Judged(title, "names without an answer", good.failed(MARK) + after.failed(GOOD, MARK), 0)]
    if not frozen:
      # A simulator that has started again counts from zero.
      names = {query.name for query in itertools.chain(good.queries, after.queries)}
      extra = sum(count - (name in names) for name, count in simulator.questions().items())
      figures.append(Judged(title, "transfers that no client's question asked for", extra, 0))
    return figures


def _take(simulator: Simulator, frozen: bool) -> None:
  if frozen:
    os.kill(simulator.child.process.pid, signal.SIGSTOP)
  else:
    simulator.child.stop()


def _give(lab: Lab, simulator: Simulator, frozen: bool) -> None:
  if frozen:
    os.kill(simulator.child.process.pid, signal.SIGCONT)
    return
  simulator.start()
  lab.children.append(simulator.child)


def gone(programs: Programs, seconds: float) -> list[Judged]:
  """The server is gone for good, and names are asked for ten seconds apart."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(), lab.plain()
    port = lab.daemon_with([json_provider(simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 1)
    simulator.child.stop()
    good = Stream(OTHERS, 0.1, good_names(1))
    drive(port, [good], seconds)
    waits = [1000 * (query.latency or 9) for query in good.queries[1:]]
    title = "gone for good, a question each 10 s"
    return [Judged(title, "longest wait of the second name and later ones, ms", round(max(waits), 1), 10),
            Judged(title, "names that LocalDNS does not answer", good.failed(MARK), 0)]


def lan(programs: Programs, seconds: float) -> list[Judged]:
  """The router knows the LAN's names and leaves a question a second unanswered; the ISP's resolver denies them."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator()
    router, isp = lab.plain(habit="forgets"), lab.plain(address="192.0.2.1", habit="denies")
    port = lab.daemon_with([json_provider(simulator.port)], [f"127.0.0.1:{server.port}" for server in (router, isp)])
    streams = [Stream(OTHERS, 2, itertools.cycle([f"host{number}.lan" for number in range(8)]), kind=kind) for kind in (1, 28, 65)]
    drive(port, streams, seconds)
    return [Judged(f"LAN names beside two resolvers, {seconds:.0f} s", "wrong answers", streams[0].failed(MARK), 0)]


def zero(programs: Programs) -> list[Judged]:
  """A name with TTL 0 that is asked for 460 times a second."""
  with OpenLab(programs) as lab:
    simulator = lab.simulator("kind=delay&ms=1")
    port = lab.daemon_with([json_provider(simulator.port)], [])
    stream = Stream(OTHERS, 460, itertools.repeat("zero.example"))
    drive(port, [stream], 5)
    return [Judged("a name with TTL 0 at 460 queries a second", "queries without an answer", stream.failed(GOOD), 0)]


def billed(programs: Programs, names: int = 10_000, seconds: float = 5) -> list[Judged]:
  """Random names of one domain, where the provider bills."""
  with OpenLab(programs) as lab:
    simulator, plain = lab.simulator(), lab.plain()
    port = lab.daemon_with([ACCOUNT.format(port=simulator.port)], local(plain))
    drive(port, [Stream(OTHERS, _RATE, good_names(0))], 1)
    hostile = Stream(HOSTILE, names / seconds, itertools.islice(series(["flood.example"], "x"), names))
    good = Stream(OTHERS, _RATE, good_names(1))
    drive(port, [good, hostile], seconds)
    title = "10,000 random names, billed"
    return [Judged(title, "transfers", simulator.transfers("flood.example"), 500), *others(title, good, plain)]


def scenes(programs: Programs, outage: float) -> list[Callable[[], list[Judged]]]:
  """All of them."""
  chosen: list[Callable[[], list[Judged]]] = []
  chosen += [partial(dying, programs, death, account) for death in _DEATHS for account in (False, True)]
  chosen += [partial(lame, programs, death, has_account) for death in _DEATHS for has_account in (False, True)]
  chosen += [partial(without_verdict, programs, fault) for fault in _AT_ONCE]
  chosen += [partial(silent, programs, count, http2, swallows)
             for swallows in (False, True) for http2 in (False, True) for count in (1, 2)]
  chosen += [partial(impatient, programs, milliseconds) for milliseconds in (30, 140)]
  chosen += [partial(holding, programs), partial(half_dead, programs)]
  chosen += [partial(back, programs, outage, frozen=frozen) for frozen in (False, True)]
  chosen += [partial(gone, programs, 61), partial(lan, programs, 40), partial(zero, programs), partial(billed, programs)]
  return chosen
