"""servers.py -- what every server under test has in common: how it is started, and when it is ready."""

from __future__ import annotations

import enum
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .dns import wait_until_answered
from .processes import BenchError, Process, free_port

#: A name that every server resolves through its backend.
FIRST_NAME = "n0.bench.example"
#: A name that httpdnsd answers by itself (RFC 6761).
LOCAL_NAME = "localhost"


class Role(enum.Enum):
  """What a server is measured for."""

  FLOOR = "floor"  # the echo that others are compared with
  OURS = "ours"  # httpdnsd, answering from its cache
  MISS = "miss"  # httpdnsd, asking its provider each time
  PEER = "peer"  # another caching server
  REFERENCE = "reference"  # for information only


@dataclass
class Lab:
  """What all servers of one run share: the folder, the files in it and the ports of the backends."""

  folder: Path
  stack: ExitStack
  echo: Path
  arrivals: Path
  pairs: Path
  counter: Path
  names: Path
  certificate: Path
  key: Path
  httpdnsd: Path
  simulator: Path
  authority_port: int = 0
  doh_url: str = ""
  json_url: str = ""
  json_tls_url: str = ""
  json_ca: str = ""
  backends: dict[str, Server] = field(default_factory=dict)

  def new_folder(self, name: str) -> Path:
    """A folder of its own for one process."""
    folder = Path(tempfile.mkdtemp(dir=self.folder, prefix=name.replace(" ", "-") + "-"))
    folder.chmod(0o755)
    return folder


@dataclass(frozen=True)
class Place:
  """Where one process runs: its folder, its port and what surrounds it."""

  folder: Path
  port: int
  lab: Lab

  def write(self, name: str, text: str) -> str:
    """Writes a file into the folder and returns its path."""
    path = self.folder / name
    path.write_text(text)
    return str(path)


@dataclass(frozen=True)
class Spec:
  """A kind of server: its name in the tables, and how to make its command line (which may write its configuration)."""

  name: str
  role: Role
  command: Callable[[Place], list[str]]
  package: str = ""  # whose version the report names
  backend: str = ""  # the server it must not need while it answers from its cache
  note: str = ""
  ready_name: str = FIRST_NAME


@dataclass
class Server:
  """A running server."""

  spec: Spec
  process: Process
  port: int
  folder: Path


def start(spec: Spec, lab: Lab, environment: dict[str, str] | None = None, limit: float = 15) -> Server:
  """Starts a server and returns once it answers; it is ended with the lab at the latest."""
  server = launch(spec, lab, environment)
  if not wait_until_answered(server.port, spec.ready_name, time.monotonic() + limit, server.process.is_running):
    text = server.process.log_tail()
    server.process.stop()
    raise BenchError(f"{spec.name} does not answer for {spec.ready_name}\n{text}")
  server.process.find_children()
  return server


def launch(spec: Spec, lab: Lab, environment: dict[str, str] | None = None) -> Server:
  """Starts a server and returns at once."""
  place = Place(lab.new_folder(spec.name), free_port(), lab)
  process = Process(spec.command(place), place.folder, environment)
  lab.stack.callback(process.stop)
  return Server(spec, process, place.port, place.folder)
