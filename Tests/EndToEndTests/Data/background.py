"""background.py -- background.py COMMAND...: runs a program on a terminal as a shell with job control does, and tells the end.

It begins in the background, comes to the foreground, is stopped by SIGSTOP, goes on in the background, comes to the
foreground again, and q ends it. What is printed is one JSON object.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

ENTER, LEAVE, READY = b"\x1b[?1049h", b"\x1b[?1049l", b"queries/s"
DEADLINE = time.monotonic() + 30


class Job:
  """A process group of its own on a terminal, whose shell this process is."""

  def __init__(self, command: list[str]) -> None:
    self.master, self.slave = pty.openpty()
    fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
    self.before = termios.tcgetattr(self.slave)
    self.output = b""
    self.group = os.fork()
    if self.group == 0:
      os.setpgid(0, 0)
      for descriptor in (0, 1):
        os.dup2(self.slave, descriptor)
      os.execvp(command[0], command)
    # Parent and child both do this: it has been done, whichever runs first.
    try:
      os.setpgid(self.group, self.group)
    except PermissionError:
      pass

  def read(self, patience: float) -> bool:
    if not select.select([self.master], [], [], patience)[0]:
      return False
    self.output += os.read(self.master, 65536)
    return True

  def wait(self, condition, what: str) -> None:
    while not condition():
      if time.monotonic() > DEADLINE:
        os.kill(self.group, signal.SIGKILL)
        sys.exit(f"no {what}: {self.output[-2000:]!r}")
      self.read(0.05)

  def change(self) -> int:
    """How it was stopped or ended, as a signal's number; a status of its own below 0, 0 for still running after 3 s."""
    end = time.monotonic() + 3
    while time.monotonic() < end:
      group, status = os.waitpid(self.group, os.WUNTRACED | os.WNOHANG)
      if group != 0:
        while self.read(0.05):
          pass
        if os.WIFSTOPPED(status):
          return os.WSTOPSIG(status)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1 - os.WEXITSTATUS(status)
      self.read(0.05)
    return 0

  @property
  def is_as_before(self) -> bool:
    return termios.tcgetattr(self.slave) == self.before

  def to_foreground(self) -> None:
    self.output = b""
    os.tcsetpgrp(self.slave, self.group)
    os.kill(self.group, signal.SIGCONT)
    self.wait(lambda: ENTER in self.output and READY in self.output.split(ENTER)[-1], "frame")

  def take_back(self) -> None:
    os.tcsetpgrp(self.slave, os.getpgrp())
    termios.tcsetattr(self.slave, termios.TCSANOW, self.before)


def main() -> None:
  # Only who leads no group may begin a session.
  child = os.fork()
  if child != 0:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
  os.setsid()
  signal.signal(signal.SIGTTOU, signal.SIG_IGN)
  job = Job(sys.argv[1:])
  seen = {"first_stop": job.change()}
  seen["first_silent"] = job.output == b"" and job.is_as_before
  job.to_foreground()
  seen["shown"] = not job.is_as_before
  os.kill(job.group, signal.SIGSTOP)
  seen["stopped"] = job.change() == signal.SIGSTOP
  job.take_back()
  job.output = b""
  os.kill(job.group, signal.SIGCONT)
  seen["second_stop"] = job.change()
  seen["second_silent"] = job.output in (b"", b"\x1b[?25h" + LEAVE) and job.is_as_before
  job.to_foreground()
  os.write(job.master, b"q")
  seen["end"] = job.change()
  seen["as_before"] = job.is_as_before and job.output.endswith(LEAVE)
  print(json.dumps(seen))


main()
