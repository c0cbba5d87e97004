"""machine.py -- a Debian that boots in a container for one test, from an overlay of its release's root.

Nothing outside can be reached from it; commands run in there as root.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
CLONE_NEWNS = 0x20000
BINARIES = pathlib.Path(os.environ.get("HTTPDNSD_TEST_BINARIES", REPOSITORY / ".build/bin"))


class Failure(Exception):
  """What was to be shown is not so."""


def check(condition: object, text: str) -> None:
  """Prints what is so, or fails with it."""
  if not condition:
    raise Failure(f"not so: {text}")
  print(f"  {text}", flush=True)


def wait_for(what: str, condition, seconds: float = 20, pause: float = 0.05):
  """The first value of `condition` that counts as true; fails after `seconds`."""
  deadline = time.monotonic() + seconds
  while True:
    value = condition()
    if value:
      return value
    if time.monotonic() > deadline:
      raise Failure(f"not within {seconds} s: {what}")
    time.sleep(pause)


class Machine:
  """A machine of its own: use it in a `with` statement. Without a release it has that of the machine that it runs on."""

  def __init__(self, limit: int = 420, release: str | None = None):
    self.limit = limit
    self.release = release
    self.leader = 0
    self._nspawn = None
    self._cleanup = contextlib.ExitStack()

  def __enter__(self) -> "Machine":
    # The machine ends however the test ends, also at its time limit, and on SIGTERM.
    signal.signal(signal.SIGALRM, lambda *_: self._stop(f"longer than {self.limit} s"))
    signal.signal(signal.SIGTERM, lambda *_: self._stop("stopped"))
    signal.alarm(self.limit)
    try:
      # This process gets a mount namespace of its own: its mounts are gone with it.
      if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise Failure(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
      self._run("mount", "--make-rprivate", "/")
      maker = [str(REPOSITORY / "Tests/System/make-root")] + ([self.release, "machine"] if self.release else [])
      made = subprocess.run(maker, check=True, stdout=subprocess.PIPE, text=True, timeout=1800)
      self.folder = pathlib.Path(tempfile.mkdtemp(prefix="httpdnsd-system-"))
      self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
      self._run("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", self.folder)
      self._cleanup.callback(subprocess.run, ["umount", "--lazy", str(self.folder)], check=False)
      for name in ("upper", "work", "root"):
        (self.folder / name).mkdir()
      self.root = self.folder / "root"
      options = f"lowerdir={made.stdout.strip()},upperdir={self.folder}/upper,workdir={self.folder}/work"
      self._run("mount", "-t", "overlay", "-o", options, "overlay", self.root)
      self._cleanup.callback(subprocess.run, ["umount", "--lazy", str(self.root)], check=False)
    except BaseException:
      self.__exit__(*sys.exc_info())
      raise
    return self

  def __exit__(self, *_) -> None:
    signal.alarm(0)
    if self._nspawn and self._nspawn.poll() is None:
      # SIGKILL to nspawn takes its children with it; the leader's end takes everybody in there.
      if self.leader:
        with contextlib.suppress(ProcessLookupError):
          os.kill(self.leader, signal.SIGKILL)
      self._nspawn.kill()
      self._nspawn.wait(10)
    self._cleanup.close()

  def _stop(self, reason: str) -> None:
    raise Failure(f"the test was ended: {reason}")

  @staticmethod
  def _run(*command) -> None:
    subprocess.run([str(part) for part in command], check=True, timeout=60)

  def install(self) -> None:
    """Puts program, units, user and configuration there, by `make install`, and the simulator beside them."""
    self._run("make", "-s", "-C", REPOSITORY, "install", f"DESTDIR={self.root}")
    # With DESTDIR= no user is made.
    self._run("systemd-sysusers", f"--root={self.root}", "httpdnsd.conf")
    shutil.copy(BINARIES / "httpdns-simulator", self.root / "usr/local/bin")
    self._supply_libraries()

  def _supply_libraries(self) -> None:
    """Another release may lack a library by the name that this machine's programs were linked with."""
    for program in ("httpdnsd", "httpdns-simulator"):
      path = f"/usr/local/bin/{program}"
      for line in self.offline("chroot", str(self.root), "ldd", path).splitlines():
        if "not found" in line:
          name = line.split()[0]
          own = next(own for own in self.offline("ldd", str(BINARIES / program)).splitlines() if own.split()[0] == name)
          shutil.copy(own.split()[2], self.root / "usr/local/lib" / name)
    self.offline("chroot", str(self.root), "ldconfig")

  def write(self, path: str, text: str, mode: int = 0o644) -> None:
    """Writes a file by its path in there."""
    file = self.root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)

  def offline(self, *command: str) -> str:
    """Runs a program of this machine on the root that does not run; its output."""
    done = subprocess.run(
      command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.stdout

  def boot(self) -> None:
    """Starts the machine, and waits until its systemd has started everything."""
    if not self._nspawn:
      pathlib.Path("/run/systemd/nspawn").mkdir(parents=True, exist_ok=True)
      self._run("mount", "-t", "tmpfs", "tmpfs", "/run/systemd/nspawn")
    log = open(self.folder / "console", "ab")
    self._nspawn = subprocess.Popen(
      # Should this process be killed, the kernel ends the machine.
      ["setpriv", "--pdeathsig", "KILL", "--", "systemd-nspawn", "--boot", "--quiet", "--register=no", "--keep-unit",
       "--private-network", "--console=pipe", f"--directory={self.root}", f"--machine=httpdnsd-{os.getpid()}"],
      stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    children = f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children"

    def leader() -> int:
      if self._nspawn.poll() is not None:
        raise Failure(f"no machine: {(self.folder / 'console').read_text(errors='replace')[-2000:]}")
      # Not the one that only sets things up.
      for child in pathlib.Path(children).read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
          if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "systemd\n":
            return int(child)
      return 0

    self.leader = wait_for("the machine's first process", leader)
    wait_for("the end of the boot", lambda: self.run(
      "systemctl", "is-system-running", check=False).strip() in ("running", "degraded"), 90, 0.3)

  def shut_down(self) -> None:
    """Ends the machine as its power button would; it can be started again."""
    self.run("systemctl", "poweroff", check=False)
    if self._nspawn.wait(60) != 0:
      raise Failure(f"not shut down: {(self.folder / 'console').read_text(errors='replace')[-2000:]}")
    self.leader = 0

  def power_cut(self) -> None:
    """Ends the machine without a word to it; it can be started again."""
    os.kill(self.leader, signal.SIGKILL)
    self._nspawn.wait(60)
    self.leader = 0

  def command(self, *command: str) -> list[str]:
    """The command that runs a command in there."""
    return ["nsenter", "--target", str(self.leader), "--all", "--root", "--wd", "--", *command]

  def run(self, *command: str, check: bool = True, seconds: float = 60, text: str | None = None) -> str:
    """Runs a command in there, and returns what it prints."""
    done = subprocess.run(
      self.command(*command), check=False, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      timeout=seconds)
    if check and done.returncode != 0:
      raise Failure(f"{' '.join(command)}: {done.returncode}\n{done.stdout}")
    return done.stdout

  def show(self, unit: str, name: str) -> str:
    """A property of a unit."""
    return self.run("systemctl", "show", "--property", name, "--value", unit).strip()

  def main_pid(self, unit: str = "httpdnsd.service") -> int:
    """The process ID, on this machine, of a service's main process; 0 if it does not run."""
    inner = self.show(unit, "MainPID")
    if inner == "0":
      return 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
      with contextlib.suppress(OSError):
        for line in status.read_text(encoding="utf-8").splitlines():
          numbers = line.split()
          if numbers[0] == "NSpid:" and len(numbers) == 3 and numbers[2] == inner and self._is_inside(status.parent):
            return int(numbers[1])
    return 0

  def _is_inside(self, process: pathlib.Path) -> bool:
    return os.readlink(process / "ns/pid") == os.readlink(f"/proc/{self.leader}/ns/pid")

  def dig(self, *arguments: str) -> str:
    """Asks with dig in there; what it prints."""
    return self.run("dig", "+tries=1", "+time=8", *arguments, check=False).strip()

  def journal(self, unit: str = "httpdnsd.service") -> str:
    """What a unit has logged, and systemd about it."""
    return self.run("journalctl", "--no-pager", "--unit", unit, check=False)
