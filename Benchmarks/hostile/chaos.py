"""chaos.py -- everything that is hostile at once, for a daemon that a sanitizer watches: it must neither end nor be reported.

Providers that break the rules of HTTP/2, or spoil their replies; a store that lies; clients that break those of TLS and HTTP;
reloads with other settings; odd packets and commands of people beside queries. Afterwards, with an honest provider, names must resolve again.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bench.dns import compose_query
from bench.processes import BenchError

from .clients import Stream, drive
from .encrypted import EncryptedClients
from .lab import Adversary, Lab, OpenLab, Programs, Simulator, certificate
from .scenes import SPOILS

_ROOT = Path(__file__).resolve().parent.parent.parent
_REPORT = re.compile(r"(?:ERROR|WARNING): (?:Address|Thread|Leak)Sanitizer.*|Fatal error.*|.*Program crashed.*")
#: Seconds of one round, and queries a second.
_ROUND, _RATE = 5.0, 60.0
#: Seconds within which an honest provider's names must resolve at the end.
_GRACE = 30.0
#: Seconds in which everything that is hostile must have come about.
_LEAST = 60.0
_COMMANDS = (["stats"], ["providers"], ["cache"], ["fleet"], ["top", "--once"], ["flush", "hostile.example"], ["flush"],
             ["cache", "www.good1.example"], ["query", "www.good2.example"])
#: EX_USAGE: a mistake on the command line.
_USAGE = 64


class Chaos:
  """The whole run."""

  def __init__(self, lab: Lab, seconds: float, seed: int) -> None:
    self._lab, self._seconds, self._seed = lab, seconds, seed
    self._random = random.Random(seed)
    self._events = Counter({"reloads": 0, "commands": 0, "bursts of odd packets": 0})
    self._fates: Counter[str] = Counter()
    self._commands: list[tuple[str, subprocess.Popen[bytes]]] = []

  def run(self) -> bool:
    """Runs, prints the summary, and returns whether all was well."""
    lab = self._lab
    self._simulator = Simulator(lab.programs.simulator, lab.folder)
    lab.children.append(self._simulator.child)
    self._plain = lab.plain()
    self._authority, key = certificate(lab.folder)
    self._http2 = Adversary(lab, "http2", str(self._authority), str(key), "192.0.2.80", str(self._seed))
    self._store = Adversary(lab, "store", str(self._seed + 1))
    self._encrypted = EncryptedClients(lab.folder, self._authority, key)
    providers, more = self._configuration()
    port = lab.daemon_with(providers, [f"127.0.0.1:{self._plain.port}"], more, patience=120)
    self._path = lab.folder / "httpdnsd.toml"
    self._text = self._path.read_text()
    end = time.monotonic() + self._seconds
    for number in itertools.count():
      if time.monotonic() >= end:
        break
      self._round(port)
      if number % 12 == 11:
        print(f"chaos: {dict(self._fates)}", file=sys.stderr, flush=True)
    return self._summary(port)

  def _configuration(self) -> tuple[list[str], str]:
    h2 = (f'kind = "doh"\nurl = "https://127.0.0.1:{self._http2.port}/dns-query"\nca_file = "{self._authority}"\n'
          'timeout = "1s"\nattempts_before_switch = 1\n')
    json = f'kind = "json"\nurl = "http://127.0.0.1:{self._simulator.port}/resolve"\ntimeout = "1s"\n'
    more = f"""
[cache]
redis = "redis://127.0.0.1:{self._store.port}"
max_entries = 1000
[fleet]
secret = "0123456789abcdef0123456789abcdef"
timeout = "20ms"
[refresh]
keep = ["www.good1.example", "www.good2.example"]
{self._encrypted.configuration}"""
    return [h2, json], more

  def _round(self, port: int) -> None:
    draw = self._random
    self._simulator.control("DELETE", "fault")
    spoil = draw.choice([None, *SPOILS])
    if spoil:
      self._simulator.control("POST", f"fault?{SPOILS[spoil]}&probability=0.5")
    pending = [(draw.uniform(0, _ROUND), self._reload) for _ in range(draw.randrange(8))]
    pending += [(draw.uniform(0, _ROUND), self._command) for _ in range(2)]
    pending += [(draw.uniform(0, _ROUND), lambda: self._send_odd(port))]
    pending += [(draw.uniform(0, _ROUND), lambda: self._encrypted.attack(draw)) for _ in range(60)]
    pending.sort(key=lambda event: event[0])

    def tick(elapsed: float) -> None:
      while pending and pending[0][0] <= elapsed:
        pending.pop(0)[1]()

    streams = [Stream(f"127.0.0.{host}", _RATE / 3, self._names()) for host in (1, 2, 3)]
    drive(port, streams, _ROUND, tick)
    for stream in streams:
      for query in stream.queries:
        fate = "lost" if query.latency is None else "answered" if query.address else "failed"
        self._fates[fate] += 1
    if self._lab.daemon_process.poll() is not None:
      raise BenchError("the daemon has ended:\n" + self._log()[-4000:])

  def _names(self):
    while True:
      yield f"n{self._random.randrange(3000)}.good{self._random.randrange(100)}.example"

  def _reload(self) -> None:
    """Reloads once, or many times in a row."""
    for _ in range(self._random.choice([1, 1, 1, 30])):
      self._change_settings()
      os.kill(self._lab.daemon_process.pid, signal.SIGHUP)
      self._events["reloads"] += 1
      time.sleep(0.005)

  def _change_settings(self) -> None:
    """Writes other settings: any mixture is a configuration."""
    draw = self._random
    text = self._text
    if draw.random() < 0.3:
      text = re.sub(r'redis = "[^"]*"', 'redis = ""', text)
    if draw.random() < 0.3:
      text = text.replace('attempts_before_switch = 1', 'attempts_before_switch = 3\nrequests_per_second = 20')
    if draw.random() < 0.3:
      text = text.replace('name = "p1"', 'name = "p2"')
    if draw.random() < 0.3:
      text += '[ranking]\nprobe = ["tcp:443"]\n'
    if draw.random() < 0.3:
      text += '[log]\nqueries = true\n'
    if draw.random() < 0.3:
      text += '[stale]\nmode = "on"\n'
    if draw.random() < 0.1:
      text += "nonsense = \n"
    self._path.write_text(text)

  def _command(self) -> None:
    words = self._random.choice(_COMMANDS)
    # This one asks the upstreams itself.
    where = ["--config", str(self._path)] if words[0] == "query" else ["--socket", str(self._lab.folder / "control.sock")]
    self._commands.append((" ".join(words), subprocess.Popen(
      [str(self._lab.programs.httpdnsd), *words, *where], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
    self._events["commands"] += 1

  def _send_odd(self, port: int) -> None:
    """Packets that hardly are queries, over UDP and TCP."""
    draw = self._random
    packets = []
    for number in range(100):
      query = bytearray(compose_query(f"t{number}.hostile.example", number))
      for _ in range(draw.randrange(1, 8)):
        query[draw.randrange(len(query))] = draw.randrange(256)
      packets.append(bytes(query[:draw.randrange(1, len(query) + 1)]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
      client.connect(("127.0.0.1", port))
      for packet in packets:
        try:
          client.send(packet)
        except OSError:
          continue
    try:
      with socket.create_connection(("127.0.0.1", port), 1) as client:
        client.sendall(b"".join(len(packet).to_bytes(2, "big") + packet for packet in packets[:20]))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError:
      pass
    self._events["bursts of odd packets"] += 1

  def _log(self) -> str:
    return (self._lab.folder / "httpdnsd.log").read_text(errors="replace")

  def _summary(self, port: int) -> bool:
    found = []
    self._simulator.control("DELETE", "fault")
    self._path.write_text(self._text)
    os.kill(self._lab.daemon_process.pid, signal.SIGHUP)
    end = time.monotonic() + _GRACE
    names = (f"honest{number}.good3.example" for number in itertools.count())
    while True:
      stream = Stream("127.0.0.1", 5, names)
      drive(port, [stream], 2)
      if all(query.address for query in stream.queries):
        break
      if time.monotonic() >= end:
        found.append("names did not resolve after all was over")
        break
    self._lab.daemon_process.send_signal(signal.SIGTERM)
    try:
      if (code := self._lab.daemon_process.wait(60)) != 0:
        found.append(f"the daemon ended with {code}")
    except subprocess.TimeoutExpired:
      found.append("the daemon does not end")
    reports = _REPORT.findall(self._log())
    found += reports[:20]
    found += sorted({f"'{words}' is not a command" for words, process in self._commands if process.poll() == _USAGE})
    if self._seconds >= _LEAST:
      found += [f"no {event}" for event, count in self._events.items() if not count]
      found += self._http2.missing() + self._store.missing()
      found += [f"no attack of encrypted listeners: {attack}" for attack, count in self._encrypted.done.items() if not count]
    else:
      print(f"what the adversaries did is not judged: {self._seconds:.0f} seconds, where {_LEAST:.0f} show everything")
    print(f"{sum(self._fates.values()):,} queries: " + ", ".join(f"{count:,} {fate}" for fate, count in self._fates.items()))
    print("events: " + ", ".join(f"{count} {event}" for event, count in sorted(self._events.items())))
    print(f"HTTP/2: {self._http2.done()}\nstore: {self._store.done()}")
    print("encrypted: " + ", ".join(f"{count} {attack}" for attack, count in sorted(self._encrypted.done.items())))
    for line in found:
      print(f"VIOLATION {line}")
    if found:
      print(self._log()[-6000:], file=sys.stderr)
    print("chaos: all was well" if not found else "chaos: FAILED")
    return not found


def main() -> int:
  """Runs the chaos that was asked for."""
  parser = argparse.ArgumentParser(prog="Benchmarks/run-chaos", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--seconds", type=float, default=60)
  parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of all that is drawn; it is printed")
  options = parser.parse_args()
  print(f"chaos: {options.seconds:.0f} seconds, seed {options.seed}", flush=True)
  try:
    with OpenLab(Programs(options.httpdnsd, options.simulator)) as lab:
      return 0 if Chaos(lab, options.seconds, options.seed).run() else 1
  except BenchError as error:
    print(f"chaos: {error}", file=sys.stderr)
    return 1
