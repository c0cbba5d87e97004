"""situations.py -- what happens to a machine on which setup is applied, and what httpdnsd then says and does about it.

Each is a function of a scene on which nothing is applied, and leaves it so.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from machine import Machine, check, wait_for
from scene import NETWORK, OTHER_SERVER, ORDINARY, PROVIDER, SERVER, SERVICE, Scene

PROGRAM = "/usr/local/bin/httpdnsd"
# Seconds after which systemd has started a daemon again that hangs, as docs/setup.md says.
WATCHDOG = 15
# A program that waits for a server for a second only.
IMPATIENT = ("env", "RES_OPTIONS=timeout:1 attempts:1")
# What `nmcli connection modify` writes again.
CONNECTION_FILE = "etc/NetworkManager/system-connections/net0.nmconnection"
# FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL of linux/fs.h.
GET_FLAGS, SET_FLAGS, IMMUTABLE = 0x80086601, 0x40086602, 0x10
USED = "programs on this machine use httpdnsd"
UNUSED = "programs on this machine do not use httpdnsd: "
# A server that is not httpdnsd, and says of every name what the network's says.
STRANGER = pathlib.Path(__file__).parent / "plain_dns.py"


@contextlib.contextmanager
def without_program(scene: Scene):
  """The program was deleted; it comes back."""
  with away(scene.machine.root / PROGRAM.lstrip("/")):
    yield


@contextlib.contextmanager
def without_library(scene: Scene):
  """A library of the program is missing; it comes back."""
  libraries = scene.machine.run("ldd", PROGRAM).splitlines()
  library = next(line.split()[2] for line in libraries if "libevent" in line)
  with away(scene.machine.root / library.lstrip("/")):
    check("error while loading" in scene.machine.run("httpdnsd", check=False), f"the program lacks {library}")
    yield


@contextlib.contextmanager
def away(path: pathlib.Path):
  """A file is away for a while."""
  moved = path.with_name(f"{path.name}.away")
  shutil.move(path, moved)
  yield
  shutil.move(moved, path)


def change_network(scene: Scene, method: str, server: str) -> None:
  """The network has another server, as NetworkManager or resolvconf learns it."""
  machine = scene.machine
  if method == "networkmanager":
    machine.run("nmcli", "connection", "modify", "net0", "ipv4.dns", server)
    machine.run("nmcli", "connection", "up", "net0")
    wait_for(f"{server} in resolv.conf", lambda: server in machine.run("cat", "/etc/resolv.conf"))
  elif method == "resolvconf":
    machine.run("resolvconf", "-a", "net0", text=f"nameserver {server}\n")


def deleted(scene: Scene, method: str) -> None:
  """The program is deleted, then the service stops; or a library is missing, then it is killed."""
  machine, before = scene.machine, scene.tree()
  scene.setup(method, "--apply")
  scene.expect(PROVIDER, "applied, the provider answers")
  with without_program(scene):
    machine.run("systemctl", "stop", SERVICE)
    scene.expect(NETWORK, "the program is deleted, the service stopped: the network's server answers", 10)
  machine.run("systemctl", "start", SERVICE)
  scene.expect(PROVIDER, "the program is back, the service started: the provider answers", 3)
  with without_library(scene):
    change_network(scene, method, OTHER_SERVER)
    os.kill(machine.main_pid(), 9)
    scene.expect(NETWORK, "killed, on another network: its server answers", 20)
    if method == "resolved":
      starts_fail(machine)
    change_network(scene, method, SERVER)
    scene.expect(NETWORK, "on the first network its server answers")
  machine.run("systemctl", "restart", SERVICE)
  renew(scene, method)
  scene.expect(PROVIDER, "back again: the provider answers", 5)
  scene.setup("undo")
  scene.expect(NETWORK, "undone, the network's server answers", 3)
  scene.same(before, "undone after all of it", but={CONNECTION_FILE})


def starts_fail(machine: Machine) -> None:
  """systemd starts the service again and again. On Debian 12 each restart of systemd-resolved is a moment without names, and
  after the fifth in ten seconds systemd starts it no more."""
  def wait_for_starts(number: int) -> None:
    goal = int(machine.show(SERVICE, "NRestarts")) + number
    wait_for(f"{number} more starts", lambda: int(machine.show(SERVICE, "NRestarts")) >= goal, 60, 0.5)

  wait_for_starts(2)
  invocation = machine.show("systemd-resolved.service", "InvocationID")
  wait_for_starts(8)
  check(machine.show("systemd-resolved.service", "InvocationID") == invocation,
        "eight more starts have failed: systemd-resolved was not restarted")


def renew(scene: Scene, method: str) -> None:
  """NetworkManager's script has listed the network's servers alone, until it runs again."""
  if method == "networkmanager":
    scene.setup("renew")
    check("nameserver 127.0.0.1" in scene.machine.run("cat", "/etc/resolv.conf"), "`setup renew` lists httpdnsd again")


def power_lost(scene: Scene, method: str) -> None:
  """The machine loses its power, and starts with the program, then without it."""
  before = scene.tree()
  scene.setup(method, "--apply")
  scene.power_cut()
  scene.expect(PROVIDER, "the power is cut: after the boot the provider answers", 10)
  check(USED in scene.setup("status"), "status says that programs use httpdnsd")
  with without_program(scene):
    scene.power_cut()
    scene.expect(NETWORK, "deleted, and the power is cut: after the boot the network's server answers", 10)
  scene.machine.run("systemctl", "restart", SERVICE)
  renew(scene, method)
  scene.expect(PROVIDER, "back after the boot: the provider answers", 5)
  scene.setup("undo")
  scene.expect(NETWORK, "undone, the network's server answers", 3)
  scene.same(before, "undone after all of it")


def hanging(scene: Scene, method: str) -> None:
  """The daemon hangs until systemd starts it again."""
  scene.setup(method, "--apply")
  scene.expect(PROVIDER, "applied, the provider answers")
  hung = time.monotonic()
  os.kill(scene.machine.main_pid(), signal.SIGSTOP)
  if method in ("networkmanager", "file"):
    address, taken = scene.address(ORDINARY), time.monotonic() - hung
    check(address == NETWORK and taken < 5, f"the daemon hangs: the network's server answers after {taken:.1f} s")
  else:
    scene.setup("pause")
    scene.expect(NETWORK, "the daemon hangs: after `setup pause` the network's server answers", 3)
    scene.setup("resume")
  wait_for("the provider's answer", lambda: scene.address(IMPATIENT) == PROVIDER, WATCHDOG)
  check(True, f"{time.monotonic() - hung:.0f} s after the daemon has begun to hang the provider answers")
  scene.setup("undo")
  scene.expect(NETWORK, "undone, the network's server answers", 3)


def lost(scene: Scene, method: str) -> None:
  """What setup knows of the state before is deleted while it is applied."""
  machine, before = scene.machine, scene.tree()
  path = machine.root / "etc/resolv.conf"
  original = None if path.is_symlink() else (path.read_bytes(), path.stat().st_mode)
  scene.setup(method, "--apply")
  machine.run("rm", "-r", "/var/lib/httpdnsd-setup")
  scene.expect(PROVIDER, "setup's state folder is deleted: the provider answers")
  reason = "journal is missing, so setup does not know the state before; `httpdnsd setup undo` removes"
  for command in (("httpdnsd", "setup", "status"), (*ORDINARY, "httpdnsd", "setup", "status"), ("httpdnsd", "doctor"),
                  ("httpdnsd", "setup", method, "--apply")):
    check(reason in machine.run(*command, check=False), f"`{' '.join(command)}` says so")
  said = machine.run(*ORDINARY, "httpdnsd", "setup", "undo", check=False)
  check("needs root" in said, "as an ordinary user, undo says what it needs")
  machine.run("systemctl", "stop", SERVICE)
  change_network(scene, method, OTHER_SERVER)
  scene.expect(NETWORK, "stopped, on another network: its server answers", 3)
  change_network(scene, method, SERVER)
  machine.run("systemctl", "start", SERVICE)
  check("what setup has made is removed" in scene.setup("undo", "--quiet"), "undo says what it has done")
  scene.expect(NETWORK, "undone, the network's server answers", 3)
  if method == "networkmanager":
    wait_for("NetworkManager's resolv.conf", lambda: path.read_bytes() == original[0])
  scene.same(before, "undone", but={CONNECTION_FILE} | ({"etc/resolv.conf"} if original else set()))
  if original:
    text = path.read_text()
    check("httpdnsd" not in text and "127.0.0.1" not in text, "/etc/resolv.conf does not name httpdnsd")
    path.write_bytes(original[0])
    path.chmod(original[1])


def immutable(scene: Scene, method: str) -> None:
  """The administrator makes /etc/resolv.conf immutable before setup, then before undo."""
  machine, before = scene.machine, scene.tree()
  reason = "Operation not permitted; it is immutable, or its folder is (`lsattr -d` shows an i): `chattr -i /etc/resolv.conf`"
  with unchangeable(scene):
    check(reason in scene.setup(method, "--apply", check=False), "/etc/resolv.conf is immutable: setup says so")
    scene.expect(NETWORK, "the network's server answers")
    scene.same(before, "refused")
    check("nothing is applied" in scene.setup("status"), "status says so")
  scene.setup(method, "--apply")
  applied = scene.tree()
  with unchangeable(scene):
    check(reason in scene.setup("undo", check=False), "made immutable later: undo says so")
    scene.expect(PROVIDER, "the provider answers")
    scene.same(applied, "what is applied is whole")
  check("is undone" in scene.setup("undo"), "undo works afterwards")
  scene.expect(NETWORK, "undone, the network's server answers", 3)
  scene.same(before, "undone")


@contextlib.contextmanager
def unchangeable(scene: Scene):
  """/etc/resolv.conf is immutable for a while, as `chattr +i` makes it."""
  with open(scene.machine.root / "etc/resolv.conf", "rb") as file:
    flags = bytearray(8)
    fcntl.ioctl(file, GET_FLAGS, flags)
    fcntl.ioctl(file, SET_FLAGS, (int.from_bytes(flags, sys.byteorder) | IMMUTABLE).to_bytes(8, sys.byteorder))
    yield
    fcntl.ioctl(file, SET_FLAGS, bytes(flags))


def without_effect(scene: Scene, method: str, reason: str, text: str) -> None:
  """Setup is applied where names do not go to httpdnsd."""
  said = scene.machine.run("sh", "-c", f"httpdnsd setup {method} --apply; echo exit code $?")
  check("applied, but programs on this machine do not use httpdnsd" in said and reason in said and "exit code 1" in said,
        f"{text}: `--apply` says that it has no effect, and why, and fails")
  scene.expect(NETWORK, "the network's server answers")
  scene.setup("undo")


def confined(scene: Scene, method: str) -> None:
  """Programs that do not see /var, as in a rootless container."""
  before = scene.tree()
  scene.setup(method, "--apply")
  with stopped(scene):
    scene.expect(NETWORK, "stopped, the network's server answers", 3)
    said = scene.machine.run(
      "unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /var && exec \"$@\"", "sh", *ORDINARY,
      "getent", "ahostsv4", "example.com", check=False)
    check(said.startswith(NETWORK), f"with an empty /var and the service stopped a name is found: {said[:12]}")
  scene.setup("undo")
  scene.same(before, "undone")


@contextlib.contextmanager
def stopped(scene: Scene):
  """The service is stopped, and started again."""
  scene.machine.run("systemctl", "stop", SERVICE)
  yield
  scene.machine.run("systemctl", "start", SERVICE)


def tells(scene: Scene, reason: str, text: str) -> None:
  """`status` and `doctor` say that programs do not use httpdnsd, and why."""
  said = scene.setup("status")
  check(UNUSED in said and reason in said, f"{text}: status says so, and why")
  said = scene.machine.run("httpdnsd", "doctor", check=False)
  check("do not get httpdnsd's answers" in said and reason in said, "and so does doctor")
  said = scene.machine.run(*ORDINARY, "httpdnsd", "setup", "status", check=False)
  check("needs root" in said and UNUSED in said, "as an ordinary user, status says so, and what needs root")


def said_rightly(scene: Scene, method: str) -> None:
  """What is said of a machine that uses httpdnsd, and of one on which another program has the port."""
  machine = scene.machine
  before = scene.tree()
  scene.setup(method, "--apply")
  check(USED in scene.setup("status"), "status says that programs use httpdnsd")
  said = machine.run(*ORDINARY, "httpdnsd", "setup", "status")
  check("needs root" in said and USED in said, "as an ordinary user too")
  said = machine.run("httpdnsd", "doctor", check=False)
  check("do not" not in said, "doctor has nothing against it")
  scene.setup("undo")
  with stopped(scene), serving(scene, "127.0.0.1"):
    said = machine.run("httpdnsd", "healthcheck", check=False)
    check("another program than httpdnsd answers at 127.0.0.1:53" in said, "healthcheck knows another program")
    said = scene.setup(method, "--apply", check=False)
    check("another program than httpdnsd answers at 127.0.0.1:53" in said, "with it setup is not applied")
    said = machine.run("httpdnsd", "doctor", check=False)
    check("another program than httpdnsd answers at 127.0.0.1:53" in said, "and doctor names it as a problem")
  scene.same(before, "after all of it")


@contextlib.contextmanager
def serving(scene: Scene, address: str):
  """Another server at an address of the machine."""
  server = subprocess.Popen(
    ["nsenter", f"--net=/proc/{scene.machine.leader}/ns/net", "python3", STRANGER, address, NETWORK],
    stdout=subprocess.PIPE)
  server.stdout.readline()
  yield
  server.kill()
  server.wait()


def edited(scene: Scene) -> None:
  """The administrator leaves httpdnsd alone in the file, and the package is removed."""
  before = scene.tree()
  scene.setup("file", "--apply")
  scene.machine.write("/etc/resolv.conf", "nameserver 127.0.0.1\n", 0o664)
  scene.machine.run("systemctl", "stop", SERVICE)
  said = scene.setup("undo", check=False)
  check("nothing was undone" in said, "undo does not drop an edit")
  said = scene.setup("undo", "--keep-changed", "--quiet")
  check("the changed file is /etc/resolv.conf.httpdnsd-changed" in said, "a removal names the edited file")
  scene.expect(NETWORK, "removed, the network's server answers")
  check((scene.machine.root / "etc/resolv.conf.httpdnsd-changed").read_text() == "nameserver 127.0.0.1\n", "the edit is kept")
  (scene.machine.root / "etc/resolv.conf.httpdnsd-changed").unlink()
  scene.same(before, "and nothing else is different")
  scene.machine.run("systemctl", "start", SERVICE)


def replaced(scene: Scene, method: str) -> None:
  """Another program writes /etc/resolv.conf while setup is applied."""
  machine = scene.machine
  path = machine.root / "etc/resolv.conf"
  original = path.read_bytes()
  scene.setup(method, "--apply")
  text = f"; generated by /usr/sbin/dhclient-script\nnameserver {OTHER_SERVER}\n"
  path.unlink()
  machine.write("/etc/resolv.conf", text)
  scene.expect(NETWORK, "a DHCP client has rewritten the file: its server answers")
  tells(scene, f"/etc/resolv.conf lists {OTHER_SERVER} and is written by dhclient", "a DHCP client has rewritten the file")
  said = scene.setup("undo")
  check("/etc/resolv.conf does not name httpdnsd any more and stays as it is" in said, "undo leaves that file")
  if method == "file":
    check(path.read_text() == text, "as it is")
  scene.expect(NETWORK, "undone, its server answers")
  if method == "file":
    path.write_bytes(original)


def resolved_diverted(scene: Scene) -> None:
  """What keeps systemd-resolved from asking httpdnsd."""
  machine = scene.machine
  late = "/etc/systemd/resolved.conf.d/zz-late.conf"
  machine.write(late, f"[Resolve]\nDNS=\nDNS={SERVER}\n")
  without_effect(scene, "resolved", "resets DNS=", "a later drop-in resets the servers")
  machine.run("rm", late)
  scene.setup("resolved", "--apply")
  with stopped(scene):
    said = scene.setup("status")
    check("no process listens there" in said, "the service is stopped: status says so")
  scene.setup("pause")
  tells(scene, "has not taken over", "paused")
  scene.setup("resume")
  machine.write(late, f"[Resolve]\nDNS=\nDNS={SERVER}\n")
  machine.run("systemctl", "restart", "systemd-resolved")
  tells(scene, "resets DNS=", "a later drop-in resets the servers")
  machine.run("rm", late)
  machine.run("systemctl", "restart", "systemd-resolved")
  wait_for("httpdnsd again", lambda: USED in scene.setup("status"))
  machine.run("resolvectl", "domain", "net0", "~.")
  reason = "the link net0 takes all names too"
  check(reason in scene.setup("status"), "a VPN's link takes all names: status says so")
  check(reason in machine.run("httpdnsd", "doctor", check=False), "and so does doctor")
  machine.run("resolvectl", "revert", "net0")
  machine.run("systemctl", "mask", "--now", "--runtime", "systemd-resolved")
  tells(scene, "it is masked", "systemd-resolved is masked")
  machine.run("systemctl", "unmask", "--runtime", "systemd-resolved")
  machine.run("systemctl", "start", "systemd-resolved")
  path = machine.root / "etc/resolv.conf"
  path.unlink()
  machine.write("/etc/resolv.conf", f"nameserver {SERVER}\n")
  tells(scene, f"/etc/resolv.conf lists {SERVER}", "the link was replaced by a file")
  path.unlink()
  path.symlink_to("../run/systemd/resolve/stub-resolv.conf")
  check(USED in scene.setup("status"), "the link is back: status says so")
  scene.setup("undo")


def resolvconf_diverted(scene: Scene, package: str) -> None:
  """What keeps resolvconf from listing httpdnsd."""
  machine = scene.machine
  scene.setup("resolvconf", "--apply")
  if package == "openresolv":
    machine.run("resolvconf", "-x", "-a", "vpn0", text=f"nameserver {OTHER_SERVER}\n")
    tells(scene, "record vpn0 is exclusive", "a VPN's record is exclusive")
    machine.run("resolvconf", "-d", "vpn0")
  else:
    machine.run("resolvconf", "-d", "lo.httpdnsd")
    machine.run("resolvconf", "--disable-updates")
    machine.run("systemctl", "restart", SERVICE)
    tells(scene, "resolvconf's updates are disabled", "updates are disabled")
    machine.run("resolvconf", "--enable-updates")
    machine.run("systemctl", "restart", SERVICE)
  check(USED in scene.setup("status"), "afterwards status says that programs use httpdnsd")
  scene.setup("undo")


def hook_missing(scene: Scene) -> None:
  """NetworkManager's dispatcher, which tells of another network, is masked, or the program of its script deleted."""
  machine = scene.machine
  before = scene.tree()
  unit = "NetworkManager-dispatcher.service"
  machine.run("systemctl", "mask", unit)
  said = scene.setup("networkmanager", "--apply", check=False)
  check("NetworkManager-dispatcher" in said and "nothing was changed" in said, "without the dispatcher setup is not applied")
  machine.run("systemctl", "unmask", unit)
  scene.same(before, "refused")
  scene.setup("networkmanager", "--apply")
  machine.run("systemctl", "mask", unit)
  said = machine.run("httpdnsd", "doctor", check=False)
  check("NetworkManager-dispatcher" in said, "masked later: doctor says so")
  machine.run("systemctl", "unmask", unit)
  with without_program(scene), stopped_only(scene):
    change_network(scene, "networkmanager", OTHER_SERVER)
    scene.expect(NETWORK, "the program is deleted, the network another one: its server answers")
    change_network(scene, "networkmanager", SERVER)
  machine.run("systemctl", "start", SERVICE)
  scene.setup("undo")


@contextlib.contextmanager
def stopped_only(scene: Scene):
  """The service is stopped, and stays so."""
  scene.machine.run("systemctl", "stop", SERVICE)
  yield


# What else happens on such a machine.
DISTURBANCES = {
  "resolved": (("systemctl", "restart", "systemd-resolved"), ("systemctl", "restart", "systemd-networkd"),
               ("systemd-tmpfiles", "--create"), ("resolvectl", "flush-caches")),
  "networkmanager": (("systemctl", "restart", "NetworkManager"), ("nmcli", "general", "reload"),
                     ("nmcli", "connection", "up", "net0"), ("systemd-tmpfiles", "--create")),
  "resolvconf": (("resolvconf", "-u"), ("systemctl", "restart", "systemd-networkd"), ("systemd-tmpfiles", "--create")),
  "file": (("systemctl", "restart", "systemd-networkd"), ("systemd-tmpfiles", "--create")),
}


def disturbed(scene: Scene, method: str) -> None:
  """Other programs restart, and write their files again; then one puts back what was there before setup."""
  machine, before = scene.machine, scene.tree()
  path = machine.root / "etc/resolv.conf"
  original = None if path.is_symlink() else (path.read_bytes(), path.stat().st_mode)
  scene.setup(method, "--apply")
  for command in DISTURBANCES[method]:
    # Just restarted, NetworkManager refuses others.
    wait_for(" ".join(command), lambda command=command: machine.run(
      "sh", "-c", "\"$@\" && echo done", "sh", *command, check=False).endswith("done\n"), pause=0.5)
    scene.expect(PROVIDER, f"{' '.join(command)}: the provider answers", 5)
  check(USED in scene.setup("status"), "status says that programs use httpdnsd")
  if method in ("networkmanager", "file"):
    path.write_bytes(original[0])
    path.chmod(original[1])
    scene.expect(NETWORK, "the file from before setup is put back: the network's server answers")
    check(UNUSED in scene.setup("status"), "status says so")
  said = scene.setup("undo")
  check("is undone" in said, "undo works")
  scene.expect(NETWORK, "undone, the network's server answers", 3)
  scene.same(before, "undone after all of it", but={"etc/resolv.conf"} if method == "file" else set())
  if method == "file":
    check(path.read_bytes() == original[0], "with the file as it was put back")
