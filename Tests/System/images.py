"""images.py -- builds the image by the Dockerfile, on base images of this machine's making, and unpacks it.

No registry is asked: the base images come from debootstrap, the toolchain is this machine's, and where git is told to
read packages from a folder, that folder is there in the build too. The image of Swift's has links to the toolchain, which
is there in the build as well: its gigabytes are not copied from image to image.
"""

import contextlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / ".build/system"
# The names that the Dockerfile has, as a registry would write them in full, and their releases.
SWIFT_IMAGE = "docker.io/library/swift:6.3-bookworm"
BASE_IMAGES = {SWIFT_IMAGE: "bookworm", "docker.io/library/debian:trixie": "trixie",
               "docker.io/library/debian:trixie-slim": "trixie"}
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


def debian(release: str, kind: str = "least") -> Path:
  """A root of Debian; made once."""
  return Path(run(str(ROOT / "Tests/System/make-root"), release, kind, seconds=1800).strip())


def base_image(name: str, release: str, links: Path | None) -> None:
  """Makes an image of Debian, and links in /usr to the files of a folder, unless it is there."""
  log = WORK / "images.log"
  names = buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()
  if name in names:
    return
  container = buildah("from", "scratch")
  folder = buildah("mount", container)
  run("cp", "-a", f"{debian(release)}/.", folder, log=log)
  if links:
    run("cp", "-as", f"{links}/.", f"{folder}/usr", log=log)
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
  for image, release in BASE_IMAGES.items():
    base_image(image, release, usr if image == SWIFT_IMAGE else None)
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
