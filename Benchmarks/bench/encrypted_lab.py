"""encrypted_lab.py -- what the figures of encrypted listeners need: servers with DNS over TLS and HTTPS, and the client."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import ours, peers
from .lab import build, launch_simulator
from .processes import BenchError, free_port
from .servers import Lab, Server, Spec, start

OURS, UNBOUND, DNSDIST = "httpdnsd", "unbound", "dnsdist"
#: The program that httpdnsd is compared with over TCP, as in the part about lists.
BEFORE = "httpdnsd before"

#: Every name has the same address: also those that are asked for only once.
_ZONE = "$ORIGIN .\n$TTL 86400\n@ SOA ns. hostmaster. 1 3600 600 86400 60\n@ NS ns.\nns. A 127.0.0.1\n* A 192.0.2.1\n"
_SPECS: dict[str, Callable[[str, int, int], Spec]] = {
  OURS: ours.encrypted, UNBOUND: peers.unbound_encrypted, DNSDIST: peers.dnsdist_encrypted}


@dataclass(frozen=True)
class Listeners:
  """A running server, and where it serves DNS over TLS and HTTPS."""

  server: Server
  dot: int
  doh: int

  @property
  def name(self) -> str:
    """Its name in the tables."""
    return self.server.spec.name

  def port(self, protocol: str) -> int:
    """Where it serves "dot" or "doh"."""
    return self.dot if protocol == "dot" else self.doh

  def at(self, port: int) -> Server:
    """The server as one that is asked at another port."""
    return dataclasses.replace(self.server, port=port)


@dataclass(frozen=True)
class Surroundings:
  """What is there before the first server: backends that have every name, and the client."""

  lab: Lab
  client: Path
  programs: list[str]
  before: Path | None

  @property
  def has_ours(self) -> bool:
    """Whether httpdnsd is measured."""
    return OURS in self.programs

  @property
  def peers(self) -> list[str]:
    """The others."""
    return [name for name in self.programs if name != OURS]

  def lab_of(self, name: str) -> Lab:
    """What a server is started with: "before" is another program."""
    if name == BEFORE and self.before is not None:
      return dataclasses.replace(self.lab, httpdnsd=self.before)
    return self.lab

  def spec(self, name: str) -> tuple[Spec, int, int]:
    """A program with encrypted listeners, and their ports."""
    dot, doh = free_port(), free_port()
    return _SPECS[name](name, dot, doh), dot, doh

  def start(self, name: str) -> Listeners:
    """Starts a program with encrypted listeners."""
    spec, dot, doh = self.spec(name)
    return Listeners(start(spec, self.lab), dot, doh)

  @contextmanager
  def started(self, names: Sequence[str]) -> Iterator[list[Listeners]]:
    """Starts several; on leaving, they are ended."""
    servers: list[Listeners] = []
    try:
      for name in names:
        servers.append(self.start(name))
      yield servers
    finally:
      for listeners in servers:
        listeners.server.process.stop()


@contextmanager
def surroundings(lab: Lab, programs: list[str], before: Path | None) -> Iterator[Surroundings]:
  """Starts the backends and builds the client of encrypted listeners; on leaving, the backends are ended."""
  if not programs:
    raise BenchError("no server with encrypted listeners is measured")
  client = build("tlsload.c", lab.folder / "tlsload", "-lssl", "-lcrypto")
  with every_name(lab, OURS in programs) as changed:
    yield Surroundings(changed, client, programs, before)


@contextmanager
def every_name(lab: Lab, has_ours: bool) -> Iterator[Lab]:
  """Starts backends that have every name: nsd, and for httpdnsd the simulator; on leaving, they are ended."""
  backends: dict[str, Server] = {}
  try:
    changed = lab
    if has_ours:
      zone = lab.new_folder("zone") / "zone"
      zone.write_text(_ZONE)
      simulator = launch_simulator(lab, "--zone", str(zone))
      backends["simulator"] = simulator.server
      changed = dataclasses.replace(changed, json_url=simulator.url)
    backends["nsd"] = start(peers.nsd_of_everything(_ZONE), lab)
    yield dataclasses.replace(changed, authority_port=backends["nsd"].port, backends=backends)
  finally:
    for server in backends.values():
      server.process.stop()
