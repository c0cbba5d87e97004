"""images.py -- builds the image by the Dockerfile, on base images of this machine's making, and unpacks it.

No registry is asked: the base images come from debootstrap, the toolchain is this machine's, and where git is told to
read packages from a folder, that folder is there in the build too.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / ".build/system"
SUITE = "bookworm"
# The names that the Dockerfile has, as a registry would write them in full.
BUILD_IMAGE, RUNTIME_IMAGE = "docker.io/library/swift:6.3-bookworm", "docker.io/library/debian:bookworm-slim"
# What a toolchain needs of Debian (as swift's own image has it), and git.
TOOLCHAIN_PACKAGES = [
  "ca-certificates", "git", "binutils", "libc6-dev", "libgcc-12-dev", "libstdc++-12-dev", "libcurl4", "libncurses6",
  "libsqlite3-0", "libuuid1", "libxml2", "tzdata", "zlib1g-dev",
]
BUILD_TIME = 3000


@dataclass
class Image:
  """An image, unpacked."""
  path: str
  config: dict

  @property
  def command(self) -> list[str]:
    """What is run without further words."""
    return self.config["Entrypoint"] + self.config["Cmd"]

  @property
  def environment(self) -> dict[str, str]:
    """The variables that it sets."""
    return dict(entry.split("=", 1) for entry in self.config["Env"])

  @property
  def health(self) -> list[str]:
    """The command of its health check, which no shell interprets."""
    kind, *command = self.config["Healthcheck"]["Test"]
    return command if kind == "CMD" else sys.exit("container-test: the health check wants a shell")

  @property
  def uid(self) -> int:
    """The number of its user."""
    return int(self.config["User"].split(":")[0])

  @property
  def gid(self) -> int:
    """The number of its group."""
    return int(self.config["User"].split(":")[1])


def run(*command: str, seconds: float = 300, log: Path | None = None) -> str:
  """Runs a program to its end; what it says goes into a log where there is one."""
  if log:
    log.parent.mkdir(parents=True, exist_ok=True)
  output = log.open("ab") if log else subprocess.PIPE
  done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output if log else None,
                        timeout=seconds, check=False)
  if done.returncode != 0:
    tail = log.read_text(errors="replace")[-3000:] if log else ""
    sys.exit(f"container-test: {' '.join(command[:6])} …: exit code {done.returncode}\n{tail}")
  return "" if log else done.stdout.decode()


def install_packages() -> None:
  """Installs what the tests of image and package need, where it is missing."""
  run(str(ROOT / "Scripts/install-packages"), "package", "container", seconds=900)


def buildah(*words: str, seconds: float = 600, log: Path | None = None) -> str:
  """buildah with a storage of its own, which needs no kernel module and no daemon."""
  storage = ["--root", str(WORK / "storage"), "--runroot", str(WORK / "storage-run"), "--storage-driver", "vfs"]
  return run("buildah", *storage, *words, seconds=seconds, log=log).strip()


def debian() -> Path:
  """The least Debian there is; made once."""
  root, log = WORK / "base", WORK / "base.log"
  mark = WORK / "base.complete"
  if not mark.exists():
    shutil.rmtree(root, ignore_errors=True)
    mirror = os.environ.get("HTTPDNSD_TEST_DEBIAN_MIRROR")
    run("debootstrap", "--variant=minbase", SUITE, str(root), *([mirror] if mirror else []), seconds=900, log=log)
    mark.touch()
  return root


def base_image(name: str, packages: list[str], environment: dict[str, str]) -> None:
  """Makes an image of Debian and some packages, unless it is there."""
  log = WORK / "images.log"
  names = buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()
  if name in names:
    return
  container = buildah("from", "scratch")
  folder = buildah("mount", container)
  run("cp", "-a", f"{debian()}/.", folder, log=log)
  if packages:
    install = "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "
    buildah("run", "--isolation", "chroot", "--network", "host", container, "--", "sh", "-c",
            install + " ".join(packages) + " && rm -rf /var/lib/apt/lists/*", seconds=900, log=log)
  for key, value in environment.items():
    buildah("config", "--env", f"{key}={value}", container)
  buildah("commit", "--format", "docker", "--rm", container, name, log=log)


def toolchain() -> tuple[Path, list[Path]]:
  """The folder of this machine's toolchain, and the folders that git reads packages from in the network's place."""
  swift = shutil.which("swift")
  if swift is None:
    sys.exit("container-test: there is no swift on the path")
  listed = subprocess.run(["git", "config", "--get-regexp", r"^url\..*\.insteadof$"], capture_output=True, text=True,
                          check=False).stdout.split("\n")
  names = [line.split()[0] for line in listed if line.startswith("url./")]
  folders = {Path(name.removeprefix("url.").rsplit(".", 1)[0]) for name in names}
  return Path(swift).resolve().parent.parent, sorted(folders)


def build(resources: contextlib.ExitStack, keeps: bool) -> Image:
  """Builds the image from the checkout's files, and unpacks it."""
  WORK.mkdir(parents=True, exist_ok=True)
  log = WORK / "images.log"
  log.write_text("")
  usr, folders = toolchain()
  base_image(RUNTIME_IMAGE, [], {})
  base_image(BUILD_IMAGE, TOOLCHAIN_PACKAGES, {
    "PATH": f"{usr}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
  name = "localhost/httpdnsd:test"
  volumes = [usr, *folders]
  settings = Path("/etc/gitconfig")
  if folders and settings.exists():
    volumes.append(settings)
  if not (keeps and name in buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()):
    print("  building the image (minutes) …", flush=True)
    buildah("build", "--format", "docker", "--isolation", "chroot", "--network", "host", "--pull-never",
            *(word for folder in volumes for word in ("--volume", f"{folder}:{folder}:ro")),
            "-t", name, str(ROOT), seconds=BUILD_TIME, log=log)
  if not keeps:
    resources.callback(buildah, "rmi", "--force", name)
  config = json.loads(buildah("inspect", "--type", "image", name))["Docker"]["config"]
  container = buildah("from", "--pull-never", name)
  resources.callback(buildah, "rm", container)
  return Image(buildah("mount", container), config)
