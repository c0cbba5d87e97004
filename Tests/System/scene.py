"""scene.py -- a machine with a network's server and an HTTPDNS provider, and httpdnsd as its service."""

import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys

from machine import BINARIES, REPOSITORY, Failure, Machine, check, wait_for

# What the network's own server says of every name, and the provider of this one.
NETWORK, PROVIDER, NAME = "203.0.113.77", "192.0.2.1", "example.com"
SERVER, OTHER_SERVER = "10.9.9.53", "10.9.9.54"
SERVICE = "httpdnsd.service"
# A folder that keeps the packages that were fetched from Debian's mirror.
KEPT = REPOSITORY / ".build/system/packages"
# An ordinary user, and a root with a strict umask.
ORDINARY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
PRIVATE = ("sh", "-c", "umask 077; exec \"$@\"", "sh")

SIMULATOR = """[Unit]
Before=httpdnsd.service
[Service]
Type=exec
ExecStart=/usr/local/bin/httpdns-simulator --listen 127.0.0.1:8053
[Install]
WantedBy=multi-user.target
"""
CONFIGURATION_FILE = "/etc/httpdnsd/httpdnsd.toml"
CONFIGURATION = """[[provider]]
kind = "json"
url = "http://127.0.0.1:8053/resolve"
"""
LINKS = {
  "/etc/systemd/network/net0.netdev": "[NetDev]\nName=net0\nKind=veth\n[Peer]\nName=peer0\n",
  "/etc/systemd/network/peer0.network":
    f"[Match]\nName=peer0\n[Network]\nAddress={SERVER}/32\nAddress={OTHER_SERVER}/32\nLinkLocalAddressing=no\n",
}
LINK = f"[Match]\nName=net0\n[Network]\nAddress=10.9.9.2/24\nLinkLocalAddressing=no\nDNS={SERVER}\n"
CONNECTION = f"""[connection]
id=net0
type=ethernet
interface-name=net0
[ipv4]
method=manual
address1=10.9.9.2/24
dns={SERVER};
dns-search=corp.example;
[ipv6]
method=disabled
"""
# NetworkManager leaves a veth alone unless it is told otherwise.
DEVICES = """[keyfile]
unmanaged-devices=interface-name:peer0
[device-net0]
match-device=interface-name:net0
managed=1
"""
# What brings the network up gives resolvconf its record.
RECORD = f"""[Unit]
After=resolvconf.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo nameserver {SERVER} | resolvconf -a net0'
[Install]
WantedBy=multi-user.target
"""


class Scene:
  """A machine with a network's server and a provider; the daemon as a service, unless a package is to bring it: then the
  provider runs outside, with this machine's libraries, and only has the other's network."""

  def __init__(self, machine: Machine, packages: tuple[str, ...] = (), is_installed: bool = True):
    self.machine = machine
    self.servers: list[subprocess.Popen] = []
    # Whether another program writes /etc/resolv.conf as a file, when its servers or its settings change.
    self.is_rewritten = bool(packages)
    self.is_installed = is_installed
    if is_installed:
      machine.install()
      machine.write(CONFIGURATION_FILE, CONFIGURATION)
      self.enable(SERVICE, "/usr/local/lib")
      machine.write("/etc/systemd/system/simulator.service", SIMULATOR)
      self.enable("simulator.service", "/etc")
    if packages:
      # In systemd-resolved's place.
      self.install(*packages, "systemd-resolved-")
    for path, text in LINKS.items():
      machine.write(path, text)
    self.enable("systemd-networkd.service", "/lib")

  def install(self, *packages: str) -> None:
    """Installs Debian's packages before the machine runs, and removes those with a minus at the end."""
    self.outside("apt-get -qq update && apt-get -qq -o Dpkg::Options::=--force-confold --no-install-recommends install "
                 f"{' '.join(packages)}")

  def outside(self, script: str, seconds: float = 240) -> None:
    """Runs a shell script in the root before the machine runs, with our network; fetched packages are kept."""
    root = self.machine.root
    KEPT.mkdir(parents=True, exist_ok=True)
    resolver = root / "etc/resolv.conf"
    was = os.readlink(resolver) if resolver.is_symlink() else resolver.read_bytes() if resolver.exists() else None
    resolver.unlink(missing_ok=True)
    shutil.copy("/etc/resolv.conf", resolver)
    mounts = ((KEPT, root / "var/cache/apt/archives"), (pathlib.Path("/dev"), root / "dev"))
    for source, target in mounts:
      subprocess.run(["mount", "--bind", source, target], check=True)
    done = subprocess.run(
      ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script], check=False, timeout=seconds,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _, target in mounts:
      subprocess.run(["umount", target], check=True)
    if done.returncode != 0:
      raise Failure(f"{script}: {done.stdout[-2000:]}")
    # A package may have put its own link there.
    if not resolver.is_symlink():
      resolver.unlink()
      if isinstance(was, str):
        resolver.symlink_to(was)
      elif was is not None:
        resolver.write_bytes(was)

  def enable(self, unit: str, place: str, target: str = "multi-user.target") -> None:
    """Starts a unit at boot."""
    wants = self.machine.root / f"etc/systemd/system/{target}.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit).unlink(missing_ok=True)
    (wants / unit).symlink_to(f"{place}/systemd/system/{unit}")

  def resolver(self, target: str | None, text: str = "") -> None:
    """/etc/resolv.conf as a link, or as a file."""
    path = self.machine.root / "etc/resolv.conf"
    path.unlink(missing_ok=True)
    if target:
      path.symlink_to(target)
    else:
      self.machine.write("/etc/resolv.conf", text, 0o664)

  def boot(self) -> None:
    """Starts the machine and the network's servers; what is enabled starts by itself."""
    self.machine.boot()
    for address in (SERVER, OTHER_SERVER):
      wait_for(address, lambda address=address: address in self.machine.run("ip", "-brief", "address"))
      self._serve(sys.executable, pathlib.Path(__file__).parent / "plain_dns.py", address, NETWORK)
    if not self.is_installed:
      self.start_provider()

  def start_provider(self) -> None:
    """Starts the provider outside."""
    self.provider = self._serve(BINARIES / "httpdns-simulator", "--listen", "127.0.0.1:8053")

  def stop_provider(self) -> None:
    """Ends the provider outside."""
    self.servers.remove(self.provider)
    self.provider.kill()
    self.provider.wait()

  def _serve(self, *command) -> subprocess.Popen:
    """Starts a server of this machine's in the other's network, and waits for its first line."""
    server = subprocess.Popen(
      ["nsenter", f"--net=/proc/{self.machine.leader}/ns/net", *command], stdout=subprocess.PIPE)
    self.servers.append(server)
    server.stdout.readline()
    return server

  def reboot(self) -> None:
    """Shuts the machine down and starts it again."""
    self.end()
    self.machine.shut_down()
    self.boot()

  def power_cut(self) -> None:
    """The machine loses its power, and starts again."""
    self.end()
    self.machine.power_cut()
    self.boot()

  def end(self) -> None:
    """Ends the network's servers; the machine ends by itself."""
    for server in self.servers:
      server.kill()
      server.wait()
    self.servers.clear()

  def setup(self, *arguments: str, seconds: float = 30, check: bool = True) -> str:
    """Runs `httpdnsd setup` as a root whose own files no other user may read."""
    return self.machine.run(*PRIVATE, "httpdnsd", "setup", *arguments, seconds=seconds, check=check)

  def address(self, user: tuple[str, ...] = ()) -> str:
    """What a program of a user's gets for the name."""
    said = self.machine.run(*user, "getent", "ahostsv4", NAME, check=False, seconds=40)
    return said.split()[0] if said else "nothing"

  def addresses(self) -> set[str]:
    """What programs of root's and of an ordinary user's get."""
    return {self.address(), self.address(ORDINARY)}

  def expect(self, address: str, text: str, within: float = 0) -> None:
    """The name has this address for all users, at once or after a while."""
    if within:
      wait_for(f"{address}: {text}", lambda: self.addresses() == {address}, within, 0.2)
    said = self.addresses()
    check(said == {address}, f"{text}: {NAME} is {' and '.join(sorted(said))}")

  def tree(self) -> dict[str, tuple]:
    """Everything below /etc, and what setup has of its own: kind, mode, owner, time and content of each."""
    found = {}
    for top in ("etc", "var/lib/httpdnsd-setup", "usr/lib/resolvconf", "run/httpdnsd-setup"):
      for folder, folders, files in os.walk(self.machine.root / top):
        for name in folders + files:
          path = pathlib.Path(folder) / name
          status = path.lstat()
          key = str(path.relative_to(self.machine.root))
          owner = (stat.S_IFMT(status.st_mode), status.st_mode, status.st_uid, status.st_gid)
          if path.is_symlink():
            found[key] = (*owner, os.readlink(path))
          elif path.is_file():
            # Who owns /etc/resolv.conf may have written the same lines again, also for other programs.
            changed = 0 if self.is_rewritten and name in ("resolv.conf", "resolvconf_resolvers.conf") else status.st_mtime_ns
            found[key] = (*owner, changed, hashlib.sha256(path.read_bytes()).hexdigest())
          else:
            found[key] = owner
    return found

  def same(self, before: dict[str, tuple], text: str, but: frozenset[str] | set[str] = frozenset()) -> None:
    """Nothing is different, but what the machine writes by itself and what the test has written."""
    after = self.tree()
    different = sorted(path for path in (before.keys() | after.keys()) - but if before.get(path) != after.get(path))
    check(not different, f"{text}: /etc is octet for octet as before {different or ''}")


def beside(machine: Machine, package: str, is_installed: bool = True) -> Scene:
  """A machine of which NetworkManager, Debian's resolvconf or openresolv writes /etc/resolv.conf, also after a boot."""
  packages = {"networkmanager": "network-manager"}
  scene = Scene(machine, (packages.get(package, package),), is_installed)
  if package == "networkmanager":
    machine.write("/etc/NetworkManager/system-connections/net0.nmconnection", CONNECTION, 0o600)
    (machine.root / "etc/systemd/system/NetworkManager-wait-online.service").symlink_to("/dev/null")
    machine.write("/etc/NetworkManager/conf.d/10-test.conf", DEVICES)
    machine.write("/etc/systemd/network/net0.network", "[Match]\nName=net0\n[Link]\nUnmanaged=yes\n")
  else:
    machine.write("/etc/systemd/network/net0.network", LINK)
    machine.write("/etc/systemd/system/record.service", RECORD)
    scene.enable("record.service", "/etc")
  scene.resolver("../run/resolvconf/resolv.conf" if package == "resolvconf" else "", "")
  return scene
