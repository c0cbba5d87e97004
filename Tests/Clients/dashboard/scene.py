"""scene.py -- a daemon with its dashboard, three providers, a store and a steady load of queries, all on loopback."""

import http.client
import itertools
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import urllib.request

from authority import Authority
from machine import BINARIES, wait_for
from parts import Programs, control, is_open, question

# In the order of the configuration; the first one counts units.
PROVIDERS = ("alidns", "tencent", "spare")
PORTS = ("dns", "dot", "web", "proxy", "store", *PROVIDERS)
UNITS_PER_DAY = 50_000
BUSY, BLOCKED, FAILING = "www.example.com", "ads.blocked.example", "servfail.example"
# The daemon's name over TLS, and behind a proxy.
NAME = "dns.lab.example"
# Queries of the load in a second.
RATE = 60
NAMES = 40

CONFIGURATION = """state_directory = "{folder}"
[listen]
addresses = ["127.0.0.1:{dns}"]
misses_per_client = 0
misses_per_domain = 0
[encrypted]
dot = ["127.0.0.1:{dot}"]
name = "{name}"
certificate_file = "{authority.chain}"
key_file = "{authority.key}"
[[provider]]
name = "alidns"
kind = "alidns"
scheme = "http"
servers = ["127.0.0.1:{alidns}"]
account_id = "999999"
access_key_id = "demo-id"
access_key_secret = "demo-secret"
units_per_day = {units}
[[provider]]
name = "tencent"
kind = "json"
url = "http://127.0.0.1:{tencent}/resolve"
[[provider]]
name = "spare"
kind = "json"
url = "http://127.0.0.1:{spare}/resolve"
[[rule]]
names = ["blocked.example"]
use = "nxdomain"
[localdns]
servers = []
[names]
hosts_file = ""
[cache]
redis = "{store}"
[refresh]
keep = ["{busy}"]
[ranking]
probe = "tcp:443"
[control]
socket = "{folder}/control.sock"
[web]
address = "127.0.0.1:{web}"
dashboard = true
hosts = ["{name}"]
"""


class Scene(Programs):
  """The programs; `end` ends them and the load."""

  def __init__(self, folder: pathlib.Path, load=None, faults: tuple[str, ...] = (), zone: str = "", has_store: bool = True):
    """Makes nothing yet; `load` gives a name for each query, `faults` and `zone` are the simulators'."""
    super().__init__(folder)
    self.faults = faults
    self.zone = zone
    self.has_store = has_store
    self.ports = dict(zip(PORTS, _free_ports(len(PORTS))))
    self.origin = f"http://127.0.0.1:{self.ports['web']}"
    self.url = f"{self.origin}/dashboard"
    self.socket = folder / "control.sock"
    self.simulators: dict[str, subprocess.Popen] = {}
    self.daemon: subprocess.Popen | None = None
    self.load = Load(self.ports["dns"], load)

  def start(self) -> None:
    """Starts everything but the load, and waits until it serves."""
    self.authority = Authority(self.folder / "tls", [f"DNS:{NAME}", "IP:127.0.0.1"])
    store = ""
    if self.has_store:
      # Debian's package of tools has the server under another name.
      server = self.folder / "redis-server"
      server.symlink_to("/usr/bin/redis-check-rdb")
      self.run(server, "--port", str(self.ports["store"]), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder))
      store = f"redis://127.0.0.1:{self.ports['store']}"
    for name in PROVIDERS:
      self.start_simulator(name)
    (self.folder / "httpdnsd.toml").write_text(CONFIGURATION.format(
      folder=self.folder, authority=self.authority, name=NAME, units=UNITS_PER_DAY, busy=BUSY, **{**self.ports, "store": store}))
    self.start_daemon()

  def start_simulator(self, name: str) -> None:
    """Starts a provider's simulator, the first time or again."""
    port = self.ports[name]
    self.simulators[name] = self.run(
      BINARIES / "httpdns-simulator", "--listen", f"127.0.0.1:{port}", "--account", "999999", "--access-key-id", "demo-id",
      "--access-key-secret", "demo-secret", *self._zone_and_faults(name))
    wait_for(f"the simulator of {name}", lambda: is_open(port))

  def _zone_and_faults(self, name: str) -> list[str]:
    """Each provider is slower than the one before."""
    slowness = f"kind=delay&ms={8 + 5 * PROVIDERS.index(name)}"
    arguments = [word for fault in (*self.faults, slowness) for word in ("--fault", fault)]
    if self.zone:
      path = self.folder / "zone"
      path.write_text(self.zone)
      arguments += ["--zone", str(path)]
    return arguments

  def stop_simulator(self, name: str) -> None:
    """Takes a provider down."""
    self.simulators[name].terminate()
    self.simulators[name].wait(10)

  def start_daemon(self) -> None:
    """Starts the daemon, and waits until it answers at its sockets."""
    self.daemon = self.run(BINARIES / "httpdnsd", "run", "--config", self.folder / "httpdnsd.toml")

    def serves() -> bool:
      if self.daemon.poll() is not None:
        raise RuntimeError(f"httpdnsd has exited with {self.daemon.returncode}")
      return is_open(self.ports["web"]) and is_open(self.ports["dns"]) and self.socket.exists()

    wait_for("the daemon", serves)

  def stop_daemon(self, number: int = signal.SIGTERM) -> int:
    """Ends the daemon by a signal; its exit status."""
    self.daemon.send_signal(number)
    return self.daemon.wait(15)

  def ask_control(self, *arguments: str):
    """The JSON that a control command prints."""
    return json.loads(control(self.socket, *arguments, "--json"))

  def command(self, *arguments: str) -> str:
    """What a control command prints."""
    return control(self.socket, *arguments)

  def sign_in_url(self) -> str:
    """The address that `httpdnsd dashboard` prints."""
    return self.command("dashboard").strip()

  def provider(self, name: str) -> dict:
    """What `httpdnsd providers` reports of a provider."""
    return next(each for each in self.ask_control("providers")["providers"] if each["name"] == name)

  def simulator(self, name: str, path: str):
    """What a provider's simulator has recorded."""
    with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/_simulator/{path}", timeout=20) as reply:
      return json.load(reply)

  def history(self) -> dict:
    """What the page gets for its span of ten minutes."""
    with urllib.request.urlopen(f"{self.url}/history?span=10m", timeout=20) as reply:
      return json.load(reply)

  def sample_number(self) -> int:
    """How many samples the daemon has taken while pages looked."""
    return self.history()["number"]

  def now(self) -> dict:
    """The gauges that the page gets."""
    return self.history()["now"]

  def open_stream(self) -> http.client.HTTPResponse | None:
    """Another page's stream of events, once it has begun; None if there are too many, such as one that has just ended."""
    connection = http.client.HTTPConnection("127.0.0.1", self.ports["web"], timeout=10)
    connection.request("GET", "/dashboard/events")
    stream = connection.getresponse()
    return stream if stream.status == 200 else None

  def connections(self) -> int:
    """Connections of browsers to the daemon's web address."""
    said = subprocess.run(["ss", "-Htn", "state", "established", f"( dport = :{self.ports['web']} )"], check=True,
                          stdout=subprocess.PIPE, text=True, timeout=10).stdout
    return len(said.splitlines())

  def ask(self, *names: str | bytes) -> None:
    """Asks for names, once, and waits for the answers; octets are a name in wire format."""
    for number, name in enumerate(names):
      with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(("127.0.0.1", self.ports["dns"]))
        client.send(query(name, number))
        client.recv(65_535)

  def ask_by_tls(self, name: str) -> None:
    """Asks by DNS over TLS, once."""
    subprocess.run(["kdig", "@127.0.0.1", "-p", str(self.ports["dot"]), "+tls", "+retry=0", name], check=True, timeout=20,
                   stdout=subprocess.DEVNULL)

  def logged(self, pattern: str) -> list[str]:
    """The lines of the log that contain a pattern."""
    return [line for line in self.log.read_text(errors="replace").splitlines() if re.search(pattern, line)]

  def end(self) -> None:
    """Ends the load and the programs."""
    self.load.end()
    super().end()


class Load:
  """Queries at a steady rate from a thread."""

  def __init__(self, port: int, name_of=None):
    """By default mostly hits, some misses, a blocked name, now and then one that fails. No name is no query."""
    self.port = port
    self.name_of = name_of or _steady(random.Random(1))
    self.is_paused = threading.Event()
    self.has_ended = threading.Event()
    self.thread: threading.Thread | None = None

  def start(self) -> None:
    """Starts, or goes on after a pause."""
    self.is_paused.clear()
    if not self.thread:
      self.thread = threading.Thread(target=self._run, daemon=True)
      self.thread.start()

  def pause(self) -> None:
    """Sends no further query."""
    self.is_paused.set()

  def end(self) -> None:
    """Ends the thread."""
    self.has_ended.set()
    if self.thread:
      self.thread.join()

  def _run(self) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
      client.setblocking(False)
      client.bind(("127.0.0.1", 0))
      for number in itertools.count():
        if self.has_ended.wait(1 / RATE):
          return
        name = None if self.is_paused.is_set() else self.name_of(number)
        if name:
          # While the daemon is down, the kernel reports it.
          try:
            client.sendto(question(name, number & 0xffff), ("127.0.0.1", self.port))
            client.recv(65_535)
          except OSError:
            pass


def _steady(dice: random.Random):
  """The names of the load, by the number of the query."""
  fresh = itertools.count()

  def name_of(number: int) -> str:
    if number % 10 == 0:
      return f"fresh{next(fresh)}.bench.example"
    if number % 40 == 1:
      return FAILING
    if number % 40 == 2:
      return BLOCKED
    return BUSY if number % 5 == 3 else f"n{min(int(dice.expovariate(0.15)), NAMES)}.bench.example"

  return name_of


def query(name: str | bytes, number: int = 1) -> bytes:
  """A query for A, also for a name in wire format."""
  if isinstance(name, str):
    return question(name, number)
  return question("", number)[:12] + name + b"\x00\x01\x00\x01"


def _free_ports(count: int) -> list[int]:
  """Ports that are free for TCP and UDP now."""
  sockets = []
  while len(sockets) < 2 * count:
    pair = [socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
    pair[0].bind(("127.0.0.1", 0))
    try:
      pair[1].bind(pair[0].getsockname())
      sockets += pair
    except OSError:
      pass
  ports = [each.getsockname()[1] for each in sockets[::2]]
  for each in sockets:
    each.close()
  return ports
