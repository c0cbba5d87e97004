"""list_sets.py -- what the first answer of a name takes whose address goes into a set of nftables, in a network of its own."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import random
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ours, peers
from .dns import compose_query
from .lab import launch_simulator
from .listed import ADDRESSES, DNSMASQ, OURS, SMARTDNS, zone_text
from .processes import BenchError, die_with_parent, find_program
from .servers import Lab, Server, Spec, start

#: Elements that each set has before the first name.
ELEMENTS = 100_000
#: Names that each server is asked for, one at a time.
NAMES = 1_000
_DOMAIN = "bench.example"
_TABLE = "bench"
_CLONE_NEWNET = 0x40000000
#: Seconds after which an address that was lost must be back by itself, and a little more.
_LOST = 15


@dataclass
class SetCosts:
  """What was measured, in milliseconds."""

  plain: dict[str, list[float]] = field(default_factory=dict)  # first answers by program, without a set
  with_set: dict[str, list[float]] = field(default_factory=dict)
  held: dict[str, int] = field(default_factory=dict)  # names whose address is in the program's set afterwards
  refilled: float = 0  # from the begin of `httpdnsd sets refill` until all addresses are back
  refilled_alone: float = 0  # the same from the flush on, without a command

  def added(self, program: str) -> float:
    """What a set adds to the median."""
    return statistics.median(self.with_set[program]) - statistics.median(self.plain[program])


def measure_sets(lab: Lab, say: Callable[[str], None]) -> SetCosts:
  """Measures in a network namespace, where the sets are that no one else has."""
  if os.geteuid() != 0:
    raise BenchError("only root may make a network and sets")
  return _in_own_network(lambda: _measure(lab, say))


def _in_own_network(action: Callable[[], SetCosts]) -> SetCosts:
  """Runs an action on a thread that has a network namespace of its own, and so have the processes that it starts."""
  results: list[SetCosts | BaseException] = []

  def run() -> None:
    try:
      libc = ctypes.CDLL(None, use_errno=True)
      if libc.unshare(_CLONE_NEWNET) != 0:
        raise BenchError(f"no network namespace: {os.strerror(ctypes.get_errno())}")
      _run("ip", "link", "set", "lo", "up")
      results.append(action())
    except BaseException as error:  # it is raised again where the thread was started
      results.append(error)

  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  if isinstance(results[0], BaseException):
    raise results[0]
  return results[0]


def _run(name: str, *arguments: str, text: str | None = None) -> str:
  path = find_program(name)
  if path is None:
    raise BenchError(f"{name} is missing: run Benchmarks/setup first")
  finished = subprocess.run([path, *arguments], input=text, capture_output=True, text=True, timeout=60,
                            preexec_fn=die_with_parent)
  if finished.returncode != 0:
    raise BenchError(f"{name} failed: {finished.stderr.strip()[:300]}")
  return finished.stdout


def _make_sets(elements: int) -> None:
  """Creates a set for each program."""
  addresses = ", ".join(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255} timeout 1d" for number in range(elements))
  filled = f"elements = {{ {addresses} }}; " if elements else ""
  sets = "".join(f"set {program} {{ type ipv4_addr; flags timeout; {filled}}}\n" for program in (OURS, SMARTDNS, DNSMASQ))
  _run("nft", "-f", "-", text=f"table inet {_TABLE} {{\n{sets}}}\n")


def _held(program: str) -> int:
  """How many names have their address in a set."""
  return _run("nft", "list", "set", "inet", _TABLE, program).count("198.18.")


def _specs() -> dict[str, tuple[Spec, Spec]]:
  """Each program without a set and with one."""
  return {
    OURS: (ours.with_rules(OURS, ""),
           ours.with_rules("httpdnsd with a set", ours.set_rule(_DOMAIN, f"inet#{_TABLE}#{OURS}"))),
    SMARTDNS: (peers.smartdns_with(SMARTDNS),
               peers.smartdns_with("smartdns with a set", "nftset-timeout yes",
                                   f"nftset /{_DOMAIN}/#4:inet#{_TABLE}#{SMARTDNS}")),
    DNSMASQ: (peers.dnsmasq_with(DNSMASQ),
              peers.dnsmasq_with("dnsmasq with a set", f"nftset=/{_DOMAIN}/4#inet#{_TABLE}#{DNSMASQ}")),
  }


def _measure(lab: Lab, say: Callable[[str], None]) -> SetCosts:
  _make_sets(ELEMENTS)
  costs = SetCosts()
  started: list[Server] = []
  try:
    simulator = launch_simulator(lab)
    started.append(simulator.server)
    authority = start(peers.nsd_of_everything(zone_text()), lab)
    started.append(authority)
    lab = dataclasses.replace(lab, json_url=simulator.url, authority_port=authority.port)
    servers: dict[str, tuple[Server, Server]] = {}
    for program, specs in _specs().items():
      servers[program] = (start(specs[0], lab), start(specs[1], lab))
      started += servers[program]
    for program, (plain, with_set) in servers.items():
      costs.plain[program], costs.with_set[program] = _first_answers(plain, with_set)
      costs.held[program] = _held(program)
      say(f"lists: first answers of {program} with a set are measured")
    _lose_set(servers[OURS][1], lab, costs, say)
    return costs
  finally:
    for server in reversed(started):
      server.process.stop()


def _first_answers(plain: Server, with_set: Server) -> tuple[list[float], list[float]]:
  """Asks two servers for names that are new to both, in turns; the times of their answers."""
  times: dict[int, list[float]] = {plain.port: [], with_set.port: []}
  # The first name showed that they answer.
  for number in random.sample(range(1, ADDRESSES), NAMES):
    for port in random.sample(list(times), 2):
      times[port].append(_milliseconds(port, f"n{number}.{_DOMAIN}"))
  return times[plain.port], times[with_set.port]


def _milliseconds(port: int, name: str) -> float:
  query = compose_query(name, random.randrange(65536))
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
    channel.settimeout(5)
    channel.connect(("127.0.0.1", port))
    begin = time.perf_counter()
    try:
      channel.send(query)
      response = channel.recv(4096)
    except OSError as error:
      raise BenchError(f"no answer for {name}: {error}") from error
    took = (time.perf_counter() - begin) * 1000
  if response[3] & 15 != 0 or response[6:8] != b"\0\1":
    raise BenchError(f"no address of {name}")
  return took


def _lose_set(server: Server, lab: Lab, costs: SetCosts, say: Callable[[str], None]) -> None:
  """Loads the rule set again without elements: until the cached addresses are back, by the command and without."""
  held = costs.held[OURS]
  command = [str(lab.httpdnsd), "sets", "refill", "--socket", str(server.folder / ours.SOCKET)]
  for is_commanded in (False, True):
    _run("nft", "flush", "ruleset")
    _make_sets(0)
    begin = time.monotonic()
    if is_commanded:
      subprocess.run(command, capture_output=True, timeout=30, preexec_fn=die_with_parent)
    while _held(OURS) < held:
      if time.monotonic() > begin + _LOST:
        raise BenchError(f"{_held(OURS)} of {held} addresses are back in the set")
      time.sleep(0.01)
    took = (time.monotonic() - begin) * 1000
    if is_commanded:
      costs.refilled = took
    else:
      costs.refilled_alone = took
  say("lists: a lost set is full again")
