"""listed.py -- what the figures of lists need: the lists, the names that are asked for, and servers with and without them."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import ours, peers
from .lab import launch_simulator
from .processes import BenchError, die_with_parent
from .servers import Lab, Spec, start

#: Names of the two lists: those of a block list, and of the largest list that is published for splitting.
MANY, FEW = 1_000_000, 110_769
#: Names that are in use, half of them of the list.
USED = 10_000
#: Classes of clients.
CLASSES = 16
#: Names of bench.example, each with an address of its own. The simulator computes them.
ADDRESSES = 5_000

_SCRIPT = Path(__file__).resolve().parent.parent / "lists"

OURS, SMARTDNS, DNSMASQ = "httpdnsd", "smartdns", "dnsmasq"
#: httpdnsd whose rule blocks, for which it tells public suffixes apart; and the program that it is compared with.
BLOCKING, BEFORE = "httpdnsd, blocking", "httpdnsd before"
#: Beside these names: the server has the long list, or rules for classes of clients.
LISTED, CLASSED = "{}, list", "{}, classes"


@dataclass(frozen=True)
class NameList:
  """A list of that many names, one a line, and as lines of dnsmasq's configuration."""

  names: int
  plain: Path
  dnsmasq: Path


@dataclass(frozen=True)
class Surroundings:
  """What is there before the first server: backends that have all names, and the lists."""

  lab: Lab
  many: NameList
  few: NameList
  #: Those of the names in use that are not in the list.
  others: Path
  before: Path | None

  def lab_of(self, spec: Spec) -> Lab:
    """What a server is started with: "before" is another program."""
    is_before = spec.name == BEFORE and self.before is not None
    return dataclasses.replace(self.lab, httpdnsd=self.before) if is_before else self.lab

  def spec(self, program: str, names: NameList | None = None) -> Spec:
    """A program with a list, or without; what is listed has an upstream of its own."""
    name = program if names is None else LISTED.format(program)
    if program == SMARTDNS:
      lines = [] if names is None else [f"domain-set -name listed -file {names.plain}", "nameserver /domain-set:listed/listed"]
      return peers.smartdns_with(name, *lines)
    if program == DNSMASQ:
      return peers.dnsmasq_with(name, *([] if names is None else [f"conf-file={names.dnsmasq}"]))
    use = "nxdomain" if program == BLOCKING else "listed"
    return ours.with_rules(name, "" if names is None else ours.list_rule(names.plain, use))


def zone_text() -> str:
  """Every name has an address; those of bench.example have one each."""
  records = "".join(f"n{number}.bench.example. A 198.18.{number >> 8}.{number & 255}\n" for number in range(ADDRESSES))
  return ("$ORIGIN .\n$TTL 86400\n@ SOA ns. hostmaster. 1 3600 600 86400 60\n@ NS ns.\nns. A 127.0.0.1\n* A 192.0.2.1\n"
          + records)


def make_list(lab: Lab, names: int, server: str) -> NameList:
  """Writes a list; `server` is where dnsmasq asks for its names."""
  folder = lab.new_folder("list")
  texts = NameList(names, folder / "plain", folder / "dnsmasq")
  with open(texts.plain, "wb") as file:
    finished = subprocess.run([sys.executable, str(_SCRIPT), "plain", str(names)], stdout=file, timeout=60,
                              preexec_fn=die_with_parent)
  if finished.returncode != 0:
    raise BenchError("the script of lists failed")
  with open(texts.dnsmasq, "w") as file:
    file.writelines(f"server=/{name}/{server}\n" for name in listed_names(texts))
  return texts


def listed_names(texts: NameList) -> list[str]:
  """The names of a list."""
  return [line for line in texts.plain.read_text().splitlines() if not line.startswith("#")]


def _names_in_use(names: NameList) -> tuple[list[str], list[str]]:
  """Names of the list, every second one of them below a line of it, and names of the same domains that are not."""
  half = USED // 2
  chosen = random.sample(listed_names(names), half)
  listed = [f"www.{name}" if number % 2 else name for number, name in enumerate(chosen)]
  others = [f"www.other{number}.{name.rpartition('.')[2]}" for number, name in enumerate(chosen)]
  return listed, others


def _write(path: Path, names: list[str]) -> Path:
  path.write_text("".join(f"{name} A\n" for name in names))
  return path


@contextmanager
def surroundings(lab: Lab, before: Path | None) -> Iterator[Surroundings]:
  """Starts the backends and writes the lists; on leaving, the backends are ended."""
  zone = lab.new_folder("zone") / "zone"
  zone.write_text(zone_text())
  simulator = launch_simulator(lab, "--zone", str(zone))
  authority = start(peers.nsd_of_everything(zone_text()), lab)
  try:
    many, few = (make_list(lab, names, f"127.0.0.1#{authority.port}") for names in (MANY, FEW))
    listed, others = _names_in_use(many)
    folder = lab.new_folder("used")
    used = _write(folder / "used", random.sample(listed + others, USED))
    backends = {"simulator": simulator.server, "nsd": authority}
    yield Surroundings(
      dataclasses.replace(lab, names=used, json_url=simulator.url, authority_port=authority.port, backends=backends),
      many, few, _write(folder / "others", others), before)
  finally:
    simulator.server.process.stop()
    authority.process.stop()
