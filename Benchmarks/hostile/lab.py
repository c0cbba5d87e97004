"""lab.py -- what a scene of the hostile benchmark runs: simulator, a LocalDNS that marks its answers, and the daemon."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import BenchError, die_with_parent, find_program, free_port

#: The address that LocalDNS, and no other server, gives for every name.
MARK = "203.0.113.66"
#: Domains of the others' names: each name is asked for once, so that every one is a miss.
GOOD_DOMAINS = 200
#: Domains of the hostile client's that die.
DYING_DOMAINS = 9
#: What the simulator says about the others' names.
GOOD = "192.0.2.80"

_KINDS = {"json": "/resolve", "doh": "/dns-query"}


@dataclass(frozen=True)
class Programs:
  """The programs that are measured with, and what the daemon is started by, such as env(1)."""

  httpdnsd: Path
  simulator: Path
  starter: tuple[str, ...] = ()


def zone_text() -> str:
  """A zone with wildcards: the others' domains, and `hostile.example` for what the simulator spoils."""
  lines = ["$TTL 300", "$ORIGIN example.", "@ SOA ns1.example. hostmaster.example. 1 3600 600 604800 60"]
  lines += [f"*.good{number} A {GOOD}" for number in range(GOOD_DOMAINS)]
  lines += [f"*.{name} A 192.0.2.99" for name in ("hostile", "flood", "slow")]
  lines += [f"*.dying{number} A 192.0.2.99" for number in range(DYING_DOMAINS)]
  lines += [f"zero 0 A {GOOD}"]
  return "\n".join(lines) + "\n" + (
    f"$ORIGIN com.\n@ SOA ns1.example. hostmaster.example. 1 3600 600 604800 60\n"
    f"*.www.example A {GOOD}\n*.www.public A {GOOD}\n")


class Child:
  """A child process whose output goes to a file."""

  def __init__(self, arguments: list[str], log: Path) -> None:
    self.log = log
    with open(log, "ab") as output:
      self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                      start_new_session=True, preexec_fn=die_with_parent)

  def wait_for(self, text: str, seconds: float = 10) -> str:
    """Waits until the process has written something, and returns all that it has written."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      written = self.log.read_text(errors="replace")
      if text in written:
        return written
      if self.process.poll() is not None:
        break
      time.sleep(0.02)
    raise BenchError(f"no '{text}' from {self.log.name}:\n{self.log.read_text(errors='replace')[-800:]}")

  def stop(self) -> None:
    """Ends the process."""
    if self.process.poll() is not None:
      return
    self.process.send_signal(signal.SIGCONT)
    self.process.terminate()
    try:
      self.process.wait(5)
    except subprocess.TimeoutExpired:
      self.process.kill()
      self.process.wait()


class Simulator:
  """The provider."""

  def __init__(self, program: Path, folder: Path, faults: tuple[str, ...] = (), seed: int = 1) -> None:
    self._folder, self._program, self._faults, self._seed = folder, program, faults, seed
    self.port, self._control = free_port(), free_port()
    (folder / "hostile.zone").write_text(zone_text())
    self.start()

  def start(self) -> None:
    """Starts it, also once more at the same port."""
    arguments = [str(self._program), "--listen", f"127.0.0.1:{self.port}", "--control", f"127.0.0.1:{self._control}",
                 "--record-limit", "0", "--seed", str(self._seed), "--zone", str(self._folder / "hostile.zone")]
    for fault in self._faults:
      arguments += ["--fault", fault]
    log = self._folder / "simulator.log"
    log.unlink(missing_ok=True)
    self.child = Child(arguments, log)
    self.child.wait_for("listening control")

  def control(self, method: str, path: str, body: bytes = b"") -> bytes:
    """Speaks with its control paths."""
    connection = http.client.HTTPConnection("127.0.0.1", self._control, timeout=20)
    connection.request(method, f"/_simulator/{path}", body=body, headers={"Connection": "close"})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status >= 300:
      raise BenchError(f"simulator: {method} {path}: {response.status} {body[:200]!r}")
    return body

  def fault(self, parameters: str) -> None:
    """Adds a fault."""
    self.control("POST", f"fault?{parameters}")

  def questions(self) -> dict[str, int]:
    """How often each question has come in, by its name."""
    counts: dict[str, int] = {}
    for question, count in json.loads(self.control("GET", "count"))["questions"].items():
      name = question.split(" ")[0].lower().rstrip(".")
      counts[name] = counts.get(name, 0) + count
    return counts

  def requests(self) -> int:
    """How many requests have come in."""
    return json.loads(self.control("GET", "count"))["transfers"]

  def transfers(self, below: str = "") -> int:
    """How many questions about names at and below one have come in."""
    questions = json.loads(self.control("GET", "count"))["questions"]
    return sum(count for question, count in questions.items()
               if not below or question.split(" ")[0].lower().endswith(f"{below}."))


class PlainServer:
  """A plain resolver that says `address` about every name, in a process of its own."""

  def __init__(self, folder: Path, *, address: str = MARK, host: str = "127.0.0.1", port: int | None = None,
               habit: str = "") -> None:
    self.host, self.port = host, port or free_port()
    self._arguments = [sys.executable, "-B", str(Path(__file__).with_name("plain.py")), host, str(self.port), address, habit]
    self._log = folder / f"plain-{self.port}.log"
    self.start()

  def start(self) -> None:
    """Starts it, also once more at the same port."""
    self._log.unlink(missing_ok=True)
    self.child = Child(self._arguments, self._log)
    self.child.wait_for("listening")

  def asked(self) -> list[tuple[str, float]]:
    """The names that it was asked for, and when (monotonic seconds)."""
    lines = [line.split(" ") for line in self._log.read_text().splitlines()]
    return [(line[0], float(line[2])) for line in lines if len(line) == 3]


def certificate(folder: Path) -> tuple[Path, Path]:
  """A certificate for 127.0.0.1 that signs itself, and its key."""
  authority, key = folder / "h2.pem", folder / "h2.key"
  if not authority.exists():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out",
                    str(authority)], check=True, capture_output=True)
  return authority, key


def chain(authority: Path, octets: int) -> Path:
  """Copies of a certificate that together take `octets` in a handshake (RFC 8446 section 4.4.2)."""
  text = authority.read_text()
  path = authority.with_name("chain.pem")
  path.write_text(text * ((octets - 4) // (len(ssl.PEM_cert_to_DER_cert(text)) + 5)))
  return path


class HTTP2Proxy:
  """nghttpx, which speaks HTTP/2 over TLS for the simulator."""

  def __init__(self, folder: Path, backend: int) -> None:
    program = find_program("nghttpx")
    if program is None:
      raise BenchError("nghttpx is not installed")
    self.port = free_port()
    self.authority, key = certificate(folder)
    log = folder / f"nghttpx-{self.port}.log"
    self.child = Child([program, "--conf=/dev/null", "--single-thread", "--single-process", "--no-ocsp",
                        f"--frontend=127.0.0.1,{self.port}", f"--backend=127.0.0.1,{backend}", str(key),
                        str(self.authority)], log)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
      try:
        socket.create_connection(("127.0.0.1", self.port), 1).close()
        return
      except OSError:
        time.sleep(0.05)
    raise BenchError("nghttpx does not listen")


@dataclass
class Lab:
  """One scene's programs; ended together."""

  programs: Programs
  folder: Path
  children: list[Child] = field(default_factory=list)

  def simulator(self, *faults: str, seed: int = 1) -> Simulator:
    """Starts the provider, with faults; `seed` is that of their dice."""
    simulator = Simulator(self.programs.simulator, self.folder, faults, seed)
    self.children.append(simulator.child)
    return simulator

  def plain(self, **options: object) -> PlainServer:
    """Starts a plain resolver."""
    server = PlainServer(self.folder, **options)  # type: ignore[arg-type]
    self.children.append(server.child)
    return server

  def proxy(self, backend: int) -> HTTP2Proxy:
    """Starts a program that speaks HTTP/2 for the simulator at a port."""
    proxy = HTTP2Proxy(self.folder, backend)
    self.children.append(proxy.child)
    return proxy

  def daemon(self, kind: str, provider: int, local: str | None, more: str = "", prefix: tuple[str, ...] = ()) -> int:
    """Starts the daemon with its defaults and a provider over http, and returns its port."""
    text = f'kind = "{kind}"\nurl = "http://127.0.0.1:{provider}{_KINDS[kind]}"\n'
    return self.daemon_with([text], [local] if local else [], more, prefix)

  def daemon_with(self, providers: list[str], local: list[str], more: str = "", prefix: tuple[str, ...] = (),
                  patience: float = 10) -> int:
    """Starts the daemon with these providers and plain resolvers, and returns its port."""
    port = free_port()
    servers = json.dumps(local)
    path = self.folder / "httpdnsd.toml"
    tables = "\n".join(f'[[provider]]\nname = "p{number}"\n{text}' for number, text in enumerate(providers))
    path.write_text(f"""state_directory = "{self.folder}"
[listen]
addresses = ["127.0.0.1:{port}"]
{tables}
[names]
hosts_file = ""
[control]
socket = "{self.folder}/control.sock"
[localdns]
servers = {servers}
{more}
""")
    child = Child([*prefix, *self.programs.starter, str(self.programs.httpdnsd), "run", "--config", str(path)],
                  self.folder / "httpdnsd.log")
    self.children.append(child)
    child.wait_for(" ready\n", patience)
    self.daemon_process = child.process
    return port

  def unbound(self, forward: int) -> int | None:
    """Starts unbound in front of a plain resolver; None where it is not installed."""
    program = find_program("unbound")
    if program is None:
      return None
    port = free_port()
    path = self.folder / "unbound.conf"
    path.write_text(f"""server:
  interface: 127.0.0.1@{port}
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "{self.folder}"
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
remote-control:
  control-enable: no
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@{forward}
""")
    child = Child([program, "-d", "-c", str(path)], self.folder / "unbound.log")
    self.children.append(child)
    child.wait_for("start of service")
    return port

  def end(self) -> None:
    """Ends everything, the last one first."""
    for child in reversed(self.children):
      child.stop()


class Adversary:
  """A server of adversaries.py, or of another program beside it."""

  def __init__(self, lab: Lab, *words: str, program: str = "adversaries.py") -> None:
    self.name, self.port = words[0], free_port()
    self._log = lab.folder / f"{self.name}.log"
    arguments = [sys.executable, "-B", str(Path(__file__).with_name(program)), words[0], "127.0.0.1", str(self.port)]
    self.child = Child([*arguments, *words[1:]], self._log)
    self.child.wait_for("listening")
    lab.children.append(self.child)

  def counts(self) -> dict[str, int]:
    """The count of each action in its latest report, at most a second old."""
    lines = self._log.read_text(errors="replace").splitlines()
    return json.loads(next((line for line in reversed(lines) if line.startswith("{") and line.endswith("}")), "{}"))

  def count(self, what: str) -> int:
    """How often it has done something: a second later, so that all is in its report."""
    time.sleep(1.2)
    return self.counts().get(what, 0)

  def done(self) -> str:
    """What it has done, in words."""
    return ", ".join(f"{count} {what}" for what, count in self.counts().items()) or "nothing"

  def missing(self) -> list[str]:
    """What it has not done at all, of all that it may do."""
    counts = self.counts()
    return [f"{self.name}: no {what}" for what, count in counts.items() if not count] or ([] if counts else [f"{self.name}: nothing"])


class OpenLab:
  """A lab in a folder of its own: `with OpenLab(programs) as lab`."""

  def __init__(self, programs: Programs) -> None:
    self._programs = programs

  def __enter__(self) -> Lab:
    self._folder = tempfile.TemporaryDirectory(prefix="httpdnsd-hostile-")
    self._lab = Lab(self._programs, Path(self._folder.name))
    return self._lab

  def __exit__(self, *_: object) -> None:
    self._lab.end()
    self._folder.cleanup()
