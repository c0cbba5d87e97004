"""lab.py -- prepares what a run needs: the C programs, a certificate, the questions and the backends."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import ours, peers
from .load import write_names
from .processes import BenchError, free_port
from .servers import Lab, Place, Role, Server, Spec, launch, start

_NATIVE = Path(__file__).resolve().parent.parent / "native"
_FLAGS = ["-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror"]


def _run(arguments: list[str], what: str) -> None:
  try:
    finished = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
  except (FileNotFoundError, subprocess.TimeoutExpired) as error:
    raise BenchError(f"{what}: {error}") from error
  if finished.returncode != 0:
    raise BenchError(f"{what}: {finished.stderr.strip()[-1000:]}")


def build(source: str, output: Path, *options: str) -> Path:
  """Compiles a C program of `native`. Raises BenchError where that fails."""
  _run(["gcc", *_FLAGS, "-o", str(output), str(_NATIVE / source), *options], f"{source} does not compile")
  return output


def make_certificate(folder: Path) -> tuple[Path, Path]:
  """A certificate for the servers of all parts that signs itself, and its key. Each call makes another pair."""
  certificate, key = folder / "certificate.pem", folder / "key.pem"
  names = f"subjectAltName=IP:127.0.0.1,IP:{peers.DOH_ADDRESS},DNS:localhost,DNS:{peers.DOH_NAME}"
  _run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", names, "-keyout", str(key), "-out", str(certificate)],
       "openssl makes no certificate")
  return certificate, key


@contextmanager
def open_lab(httpdnsd: Path, simulator: Path) -> Iterator[Lab]:
  """A temporary folder with all that every server needs; on leaving, all processes are ended and the folder is gone."""
  with ExitStack() as stack:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="httpdnsd-bench-")))
    # A server that gives up its privileges must still reach its files.
    folder.chmod(0o755)
    certificate, key = make_certificate(folder)
    lab = Lab(
      folder=folder, stack=stack,
      echo=build("echo.c", folder / "echo"),
      arrivals=build("arrivals.c", folder / "arrivals", "-lm"),
      pairs=build("pairs.c", folder / "pairs", "-lcurl"),
      counter=build("countmalloc.c", folder / "countmalloc.so", "-shared", "-fPIC", "-fno-builtin"),
      names=write_names(folder / "names", peers.ZONE_NAMES),
      certificate=certificate, key=key, httpdnsd=httpdnsd, simulator=simulator)
    authority = start(peers.NSD, lab)
    lab.authority_port = authority.port
    lab.backends["nsd"] = authority
    yield lab


def wait_for_tcp(server: Server, port: int, limit: float) -> None:
  """Returns when a server accepts connections at a port."""
  deadline = time.monotonic() + limit
  while time.monotonic() < deadline and server.process.is_running():
    try:
      socket.create_connection(("127.0.0.1", port), timeout=1).close()
      return
    except OSError:
      time.sleep(0.02)
  raise BenchError(f"{server.spec.name} does not listen\n{server.process.log_tail()}")


def start_doh(lab: Lab) -> None:
  """Starts the RFC 8484 provider."""
  port = free_port()
  server = start(peers.dnsdist_doh(port), lab)
  wait_for_tcp(server, port, 10)
  lab.doh_url = f"https://127.0.0.1:{port}/dns-query"


@dataclass(frozen=True)
class Simulator:
  """A running simulator and where it answers in the JSON dialect."""

  server: Server
  url: str
  tls_url: str
  ca_file: str


def launch_simulator(lab: Lab, *options: str) -> Simulator:
  """Starts a simulator and returns when it accepts connections; `options` are more of its command line."""
  https_port = free_port()

  def command(place: Place) -> list[str]:
    return ours.simulator_command(place, https_port, *options)

  server = launch(Spec("simulator", Role.REFERENCE, command), lab)
  for port in (server.port, https_port):
    wait_for_tcp(server, port, 10)
  return Simulator(server, f"http://127.0.0.1:{server.port}/resolve", f"https://127.0.0.1:{https_port}/resolve",
                   str(server.folder / ours.SIMULATOR_CA))


def launch_http2(lab: Lab, backend: Simulator) -> tuple[Server, str]:
  """Starts nghttpx before a simulator, which speaks HTTP/1.1 only; returns it with the URL of the JSON dialect."""

  def command(place: Place) -> list[str]:
    return ["nghttpx", "--conf=/dev/null", "--single-process", "--single-thread", "--no-ocsp",
            f"--frontend=127.0.0.1,{place.port}", f"--backend=127.0.0.1,{backend.server.port}",
            "--accesslog-file=/dev/null", str(lab.key), str(lab.certificate)]

  server = launch(Spec("nghttpx", Role.REFERENCE, command, package="nghttp2-proxy"), lab)
  wait_for_tcp(server, server.port, 10)
  return server, f"https://127.0.0.1:{server.port}/resolve"


def start_simulator(lab: Lab) -> None:
  """Starts the JSON provider."""
  simulator = launch_simulator(lab)
  lab.json_url, lab.json_tls_url, lab.json_ca = simulator.url, simulator.tls_url, simulator.ca_file
  lab.backends["simulator"] = simulator.server
