"""lab.py -- a network of its own with the daemon at ports 53, 853 and 443, and what its clients need of the machine.

The processes are in network, mount and PID namespaces of their own (`run`), so that ports and files are free: /run and
what is written to /etc are gone with them, and no process survives.
"""

import http.server
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "System"))
from machine import BINARIES, wait_for  # noqa: E402
from parts import Programs, is_open  # noqa: E402

from authority import Authority  # noqa: E402

NAME = "dns.lab.example"
ADDRESS, ADDRESS6 = "192.0.2.53", "2001:db8::53"
DOT, DOH, DOH_PLAIN = 853, 443, 8053
# A daemon that asks for tokens.
TOKEN_ADDRESS, TOKEN = "192.0.2.54", "0123456789abcdef-phone"
# The proxies; a client that may ask, and one that may not.
HAPROXY, NGINX = "192.0.2.61", "192.0.2.62"
CLIENT, STRANGER = "192.0.2.71", "198.51.100.9"
# The network of the machine with systemd-resolved: our address and the machine's.
MACHINE_NETWORK, GATEWAY, GUEST = "203.0.113.0/24", "203.0.113.1/24", "203.0.113.2/24"
# Pinned by a rule; a web server has the page.
PINNED, PINNED6 = "192.0.2.80", "2001:db8::80"
HOST, PAGE_HOST, PAGE = "www.lab.example", "page.lab.example", "the page of the lab"
# What the simulator answers for example.com.
SIMULATED = "192.0.2.1"
SIMULATOR = 8080

FOLDER = pathlib.Path("/run/clients")

CONFIGURATION = """state_directory = "{folder}"
[listen]
addresses = ["{address}:53"]
allow = ["192.0.2.0/24", "2001:db8::/64", "{machine_network}"]
[encrypted]
{encrypted}
name = "{name}"
certificate_file = "{authority.chain}"
key_file = "{authority.key}"
# All clients have few addresses here, and testssl.sh opens hundreds of connections.
new_per_second = 0
per_client = 256
[[provider]]
name = "simulator"
kind = "json"
url = "http://127.0.0.1:{simulator}/resolve"
[[rule]]
names = ["{host}", "{page_host}"]
use = "pinned"
addresses = ["{pinned}", "{pinned6}"]
[localdns]
servers = []
[names]
hosts_file = ""
[control]
socket = "{folder}/control.sock"
"""
ENCRYPTED = f"""dot = ["{ADDRESS}:{DOT}", "[{ADDRESS6}]:{DOT}"]
doh = ["{ADDRESS}:{DOH}", "[{ADDRESS6}]:{DOH}"]
doh_plain = ["{ADDRESS}:{DOH_PLAIN}"]
json = true
proxy_protocol = ["{HAPROXY}/32"]
forwarded_from = ["{NGINX}/32"]
"""
WITH_TOKENS = f"""dot = ["{TOKEN_ADDRESS}:{DOT}"]
doh = ["{TOKEN_ADDRESS}:{DOH}"]
tokens_file = "{FOLDER}/tokens"
"""


class Lab(Programs):
  """The daemons, the simulator and the web server; the programs end with it."""

  def __init__(self):
    FOLDER.mkdir()
    super().__init__(FOLDER)
    self.daemons: list[subprocess.Popen] = []
    self.authority = Authority(FOLDER / "tls", [f"DNS:{NAME}", f"DNS:*.{NAME}", f"IP:{ADDRESS}", f"IP:{ADDRESS6}"])

  def start(self) -> None:
    """Starts everything, and waits until it serves."""
    _open_network()
    _change_files()
    self.run(BINARIES / "httpdns-simulator", "--listen", f"127.0.0.1:{SIMULATOR}")
    self._serve_page()
    self._start_daemon(ADDRESS, ENCRYPTED, [DOT, DOH, DOH_PLAIN])
    tokens = FOLDER / "tokens"
    tokens.write_text(f"phone {TOKEN}\n")
    tokens.chmod(0o600)
    self._start_daemon(TOKEN_ADDRESS, WITH_TOKENS, [DOT, DOH])

  def _start_daemon(self, address: str, encrypted: str, ports: list[int]) -> None:
    folder = FOLDER / address
    folder.mkdir()
    path = folder / "httpdnsd.toml"
    path.write_text(CONFIGURATION.format(
      folder=folder, address=address, encrypted=encrypted, machine_network=MACHINE_NETWORK, name=NAME,
      authority=self.authority, simulator=SIMULATOR, host=HOST, page_host=PAGE_HOST, pinned=PINNED, pinned6=PINNED6))
    self.daemons.append(self.start_program([BINARIES / "httpdnsd", "run", "--config", path], address, [53, *ports]))

  def stop_daemons(self) -> list[int | None]:
    """Ends the daemons; their exit statuses, and None for one that had ended before."""
    statuses = []
    for process in self.daemons:
      ran = process.poll() is None
      process.terminate()
      status = process.wait(10)
      statuses.append(status if ran else None)
    return statuses

  def start_program(self, command: list, address: str, ports: list[int]) -> subprocess.Popen:
    """Starts a program, and waits until it listens on all its ports."""
    process = self.run(*command)

    def serves() -> bool:
      if process.poll() is not None:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} has exited with {process.returncode}")
      return all(is_open(port, address) for port in ports)

    wait_for(f"{pathlib.Path(command[0]).name} listens on {address}, ports {ports}", serves)
    return process

  def _serve_page(self) -> None:
    """Serves the page at port 80 of the pinned address, from a thread."""
    class Handler(http.server.BaseHTTPRequestHandler):
      """Answers every GET with the page."""

      def do_GET(self) -> None:
        """The page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>lab</title><p>{PAGE}</p>\n".encode())

      def log_message(self, *_) -> None:
        """Logs nothing."""

    server = http.server.ThreadingHTTPServer((PINNED, 80), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _open_network() -> None:
  """Gives all addresses to the loopback interface."""
  _run("ip", "link", "set", "lo", "up")
  for address in (ADDRESS, TOKEN_ADDRESS, HAPROXY, NGINX, CLIENT, STRANGER, PINNED):
    _run("ip", "address", "add", f"{address}/32", "dev", "lo")
  for address in (ADDRESS6, PINNED6):
    _run("ip", "address", "add", f"{address}/128", "dev", "lo", "nodad")


def _change_files() -> None:
  """Covers /etc: the hosts file has the daemon's name, and there is no nameserver and no policy of the machine's."""
  for name in ("upper", "work"):
    (FOLDER / "etc" / name).mkdir(parents=True)
  options = f"lowerdir=/etc,upperdir={FOLDER}/etc/upper,workdir={FOLDER}/etc/work"
  _run("mount", "-t", "overlay", "-o", options, "overlay", "/etc")
  for path, text in (("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n"), ("/etc/resolv.conf", ""),
                     ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")):
    file = pathlib.Path(path)
    # It may be a link to a file that is not here.
    file.unlink(missing_ok=True)
    file.write_text(text)
  os.environ["HOME"] = os.environ["TMPDIR"] = str(FOLDER / "home")
  (FOLDER / "home").mkdir()


def _run(*command: str) -> None:
  subprocess.run(command, check=True, timeout=30)
