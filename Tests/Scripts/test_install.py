"""test_install.py -- Scripts/install puts everything below DESTDIR, and removes what it has put there."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Its place is where the real one would be; completions are all that is asked of it without python3.
PROGRAM = "#!/bin/sh\necho \"$*\"\n[ ! -e \"$0.refuses\" ]\n"


class InstallTest(unittest.TestCase):
  """In a copy of what the script reads."""

  def setUp(self) -> None:
    self.folder = Path(tempfile.mkdtemp(prefix="httpdnsd-install-"))
    self.addCleanup(shutil.rmtree, self.folder)
    sources = self.folder / "sources"
    for folder in ("Config", "docs", "systemd"):
      shutil.copytree(ROOT / folder, sources / folder)
    (sources / "Scripts").mkdir()
    shutil.copy(ROOT / "Scripts/install", sources / "Scripts/install")
    for name in ("README.md", "README.zh-CN.md"):
      shutil.copy(ROOT / name, sources / name)
    program = sources / ".build/bin/httpdnsd"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    # No python3 there.
    tools = self.folder / "tools"
    tools.mkdir()
    for tool in ("bash", "sh", "dirname", "install", "sed", "cat", "rm", "rmdir"):
      (tools / tool).symlink_to(shutil.which(tool))
    self.destination = self.folder / "destination"

  def run_script(self, *arguments: str, status: int = 0, **places: str) -> str:
    """Runs it, by default with DESTDIR; what it prints."""
    environment = {"PATH": str(self.folder / "tools"), "DESTDIR": str(self.destination), **places}
    done = subprocess.run(
      [self.folder / "sources/Scripts/install", *arguments], env=environment, capture_output=True, text=True,
      check=False, timeout=60)
    self.assertEqual(done.returncode, status, done.stderr)
    return done.stdout + done.stderr

  def files(self) -> set[str]:
    """Everything below DESTDIR that is no folder."""
    return {f"/{path.relative_to(self.destination)}" for path in self.destination.rglob("*") if not path.is_dir()}

  def test_everything_is_put_and_removed(self) -> None:
    """The configuration stays."""
    said = self.run_script()
    self.assertIn("no man pages", said)
    files = self.files()
    for path in ("bin/httpdnsd", "lib/systemd/system/httpdnsd.service", "lib/sysusers.d/httpdnsd.conf",
                 "share/bash-completion/completions/httpdnsd", "share/zsh/site-functions/_httpdnsd",
                 "share/fish/vendor_completions.d/httpdnsd.fish", "share/doc/httpdnsd/README.md",
                 "share/doc/httpdnsd/README.zh-CN.md", "share/doc/httpdnsd/docs/configuration.md",
                 "share/doc/httpdnsd/docs/providers.md"):
      self.assertIn(f"/usr/local/{path}", files)
    for name in ("architecture.md", "internals.md", "packaging.md", "testing.md", "words.md"):
      self.assertNotIn(f"/usr/local/share/doc/httpdnsd/docs/{name}", files)
    self.run_script("--remove")
    self.assertEqual(self.files(), {"/etc/httpdnsd/httpdnsd.toml"})
    self.assertFalse((self.destination / "usr/local/share/doc/httpdnsd").exists())

  def test_documents_link_to_what_is_installed(self) -> None:
    """Each link's target is a file that is installed."""
    self.run_script()
    files = self.files()
    documents = [Path(path) for path in files if path.endswith(".md")]
    self.assertGreater(len(documents), 10)
    for document in documents:
      text = Path(f"{self.destination}{document}").read_text(encoding="utf-8")
      for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
          self.assertIn(os.path.normpath(document.parent / target), files, document)

  def test_a_configuration_that_is_there_stays(self) -> None:
    """Also when it is installed again."""
    self.run_script()
    file = self.destination / "etc/httpdnsd/httpdnsd.toml"
    file.write_text("# mine\n", encoding="utf-8")
    self.run_script()
    self.assertEqual(file.read_text(encoding="utf-8"), "# mine\n")

  @unittest.skipIf(Path("/run/systemd/system").exists(), "systemd runs")
  def test_without_systemd_setup_is_undone_first(self) -> None:
    """Nothing is removed where that fails."""
    places = {"DESTDIR": "", "PREFIX": str(self.folder / "prefix"), "SYSCONFDIR": str(self.folder / "etc")}
    self.run_script(**places)
    program = self.folder / "prefix/bin/httpdnsd"
    refusal = program.with_name("httpdnsd.refuses")
    refusal.touch()
    self.assertIn("nothing is removed", self.run_script("--remove", status=1, **places))
    self.assertTrue(program.exists())
    refusal.unlink()
    self.assertIn("setup undo --keep-changed --quiet\n", self.run_script("--remove", **places))
    self.assertFalse(program.exists())

  def test_places_are_written_into_the_files(self) -> None:
    """The unit, the examples and README.md name what is there."""
    self.run_script(PREFIX="/opt", SYSCONFDIR="/opt/etc")
    unit = (self.destination / "opt/lib/systemd/system/httpdnsd.service").read_text(encoding="utf-8")
    self.assertIn("ExecStart=/opt/bin/httpdnsd run --config /opt/etc/httpdnsd/httpdnsd.toml\n", unit)
    self.assertIn("/opt/share/doc/httpdnsd/examples/credentials.conf.example", unit)
    self.assertNotIn("/usr/local", unit)
    self.assertIn("User=httpdnsd\n", unit)
    text = (self.destination / "opt/share/doc/httpdnsd/README.md").read_text(encoding="utf-8")
    self.assertIn("/opt/lib/sysusers.d/httpdnsd.conf", text)
    self.assertNotIn("systemd/sysusers.conf", text)
    text = (self.destination / "opt/share/doc/httpdnsd/docs/configuration.md").read_text(encoding="utf-8")
    self.assertIn("[/opt/etc/httpdnsd/httpdnsd.toml](/opt/etc/httpdnsd/httpdnsd.toml)", text)
    self.assertNotIn("Config/httpdnsd.toml", text)
    self.run_script("--remove", PREFIX="/opt", SYSCONFDIR="/opt/etc")
    self.assertEqual(self.files(), {"/opt/etc/httpdnsd/httpdnsd.toml"})


if __name__ == "__main__":
  unittest.main()
