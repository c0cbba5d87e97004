"""holds.py -- how long one input of a hostile server, store, resolver or client holds the resolver's loop.

Each input is a scene: a daemon of its own, and beside it something hostile. What counts is the longest turn of the daemon's loop,
in CPU time of its thread; a client may wait for the rest of one turn and its place in the next. As root all of it
happens in a network and a mount namespace of its own, which some scenes need.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.processes import BenchError

from . import local_holds, store_holds, upstream_holds
from .holding import LeftOut, Scene
from .lab import Lab, OpenLab, Programs
from .watch import Turns, Watch

_ROOT = Path(__file__).resolve().parent.parent.parent
_INSIDE = "HOLDS_INSIDE"
#: Milliseconds of CPU that no input may take.
_MOST = 10.0
#: Seconds after which a daemon has read what it reads at its start, such as the system's certificates.
_SETTLING = 1.0
#: Questions of the watch without which a round shows nothing: a daemon that is well answers a thousand in a scene.
_LEAST_ASKED = 100

_SCENES: dict[str, Scene] = {
  "nothing hostile": local_holds.nothing,
  "HTTP/2: TLS records without content": upstream_holds.http2("answers", "empty records"),
  "HTTP/2: new keys": upstream_holds.http2("answers", "new keys"),
  "HTTP/2: header sections of 112,000 fields": upstream_holds.http2("long headers"),
  "HTTP/2: random frames": upstream_holds.http2("random frames"),
  "HTTP/2: 200 records and a reset": upstream_holds.http2("pings and a reset"),
  "HTTP/2: an octet in each record": upstream_holds.http2("answers", "octets"),
  "HTTP/2 by a proxy: TLS records without content": upstream_holds.http2("answers", "empty records", is_proxied=True),
  "HTTP/2 by a proxy: new keys": upstream_holds.http2("answers", "new keys", is_proxied=True),
  "HTTP/2 by a proxy: header sections of 112,000 fields": upstream_holds.http2("long headers", is_proxied=True),
  "HTTP/2 by a proxy: random frames": upstream_holds.http2("random frames", is_proxied=True),
  "HTTP/2 by a proxy: 200 records and a reset": upstream_holds.http2("pings and a reset", is_proxied=True),
  "HTTP/2 by a proxy: an octet in each record": upstream_holds.http2("answers", "octets", is_proxied=True),
  "HTTP/2: certificates of 12 KiB": upstream_holds.http2("one answer", octets=12_288),
  "HTTP/2: keys that are asked for, and nothing is read": upstream_holds.key_requests,
  "HTTP/1.1: TLS records without content": upstream_holds.http1("answers", "empty records"),
  "HTTP/1.1: new keys": upstream_holds.http1("answers", "new keys"),
  "HTTP/1.1: an octet in each record": upstream_holds.http1("answers", "octets"),
  "HTTP/1.1: header lines without end": upstream_holds.http1("lines without end"),
  "HTTP/1.1: a body of 10 MB": upstream_holds.body,
  "HTTP/1.1: chunks of an octet without end": upstream_holds.endless(
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 20_000),
  "a proxy: 407 and a body without end": upstream_holds.endless(
    b"HTTP/1.1 407 No\r\nContent-Length: 999999999\r\n\r\n", bytes(65_536), is_proxy=True),
  "a proxy: a tunnel that ends, and then 407 without end": upstream_holds.endless(
    b"HTTP/1.1 407 No\r\nContent-Length: 999999999\r\n\r\n", bytes(65_536), is_proxy=True, tunnels=True),
  "a proxy: header lines without end": upstream_holds.endless(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 20_000, is_proxy=True),
  "tables of 4 MiB, replaced and let go": upstream_holds.table,
  "EMAS: lists of servers of 64 KiB": upstream_holds.server_list,
  "a store that lies": store_holds.lies,
  "a store over TLS that lies": store_holds.over_tls(None),
  "a store over TLS: records without content": store_holds.over_tls("empty records"),
  "a store over TLS: new keys": store_holds.over_tls("new keys"),
  "a store over TLS: an octet in each record": store_holds.over_tls("octets"),
  "a store: flushes without end, no secret": store_holds.flushes(are_sealed=False),
  "a store: flushes without end, sealed": store_holds.flushes(are_sealed=True),
  "a resolver: answers of 64 KiB over TCP": upstream_holds.resolver(upstream_holds.full),
  "a resolver: answers of 64 KiB over TCP that are cut off": upstream_holds.resolver(upstream_holds.cut_off),
  "a resolver: 64 KiB of empty frames over TCP": upstream_holds.resolver(upstream_holds.full, bytes(65_536)),
  "a resolver: 2,000 datagrams for a query": upstream_holds.datagrams,
  "echo replies: 2,000 for a request": local_holds.echoes,
  "a client: 2,000 queries in one segment, and a flood": local_holds.client,
  "a client: 200 questions for new names at once": local_holds.new_names,
  "control socket: `cache` at once": local_holds.requests(["/cache?limit=1000", "/cache?limit=0", "/cache?name=n1.good1.example"]),
  "control socket: `stats`, `top`, `providers` at once": local_holds.requests(["/stats", "/stats?top", "/stats?by-name", "/providers"]),
  "web address: `/metrics` at once": local_holds.requests(["/metrics"], is_web=True),
  "links, addresses and routes that come and go": local_holds.links,
  "files that are written and renamed": local_holds.files,
  "a flush of everything": local_holds.command("flush"),
  "a reload with a hosts file of 400,000 names": local_holds.command("reload"),
}


def _enter() -> None:
  """As root, runs the program again in namespaces of its own."""
  outside = os.readlink("/proc/self/ns/net")
  # What is left in an environment must not do for a namespace.
  if os.environ.get(_INSIDE, outside) == outside:
    os.environ[_INSIDE] = outside
    os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, *sys.argv])
  subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def measure(lab: Lab, scene: Scene, turns: Turns) -> tuple[int, int]:
  """Has a scene's daemon attacked. Returns how often it answered meanwhile, and how often something hostile was done.

  Raises BenchError where that shows nothing: the daemon has ended or has hardly been asked, or nothing hostile was done.
  """
  port, attack = scene(lab)
  time.sleep(_SETTLING)
  turns.begin()
  with Watch(port) as watch:
    done = attack()
  if (status := lab.daemon_process.poll()) is not None:
    raise BenchError(f"the daemon has ended with {status}")
  if watch.asked < _LEAST_ASKED:
    raise BenchError(f"the daemon was asked {watch.asked} times, of at least {_LEAST_ASKED}")
  if turns.read()[1] < watch.asked - 1:
    raise BenchError(f"{turns.read()[1]} turns of the loop were seen while the daemon was asked {watch.asked} times")
  if not done:
    raise BenchError("nothing hostile was done")
  return watch.asked, done


def main() -> int:
  """Measures every input, and prints a row for each.

  A row has the longest turn of the loop, that of each round, and of all rounds the turns, the questions of a client that was
  answered, and how often something hostile was done.
  """
  parser = argparse.ArgumentParser(prog="Benchmarks/run-holds", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--only", default="", help="the inputs whose name has this")
  parser.add_argument("--rounds", type=int, default=1, help="how often each is measured: the longest counts")
  options = parser.parse_args()
  if os.geteuid() == 0:
    _enter()
  with tempfile.TemporaryDirectory(prefix="httpdnsd-holds-") as folder:
    return _measure_all(options, Turns(Path(folder)))


def _measure_all(options: argparse.Namespace, turns: Turns) -> int:
  programs = Programs(options.httpdnsd.absolute(), options.simulator.absolute(), turns.starter)
  status = 0
  for name, scene in _SCENES.items():
    if options.only not in name:
      continue
    rounds, count, asked, done = [], 0, 0, 0
    try:
      for _ in range(options.rounds):
        with OpenLab(programs) as lab:
          answers, acts = measure(lab, scene, turns)
        longest, more = turns.read()
        rounds.append(longest)
        count, asked, done = count + more, asked + answers, done + acts
    except LeftOut as reason:
      print(f"| {name} | left out: {reason} |", flush=True)
      continue
    except (BenchError, OSError, subprocess.SubprocessError) as error:
      # What an attack does fails as well where the daemon has ended.
      print(f"holds: {name}: {error}", file=sys.stderr, flush=True)
      status = 1
      continue
    figures = ", ".join(f"{figure:.2f}" for figure in rounds)
    print(f"| {name} | {max(rounds):.1f} ms | {figures} | {count:,} | {asked:,} | {done:,} |", flush=True)
    status = status or int(max(rounds) > _MOST)
  return status
