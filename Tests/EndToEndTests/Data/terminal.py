"""terminal.py -- terminal.py ACTION COMMAND...: runs a program on a terminal of its own, does something to it, tells the end.

Actions: key:TEXT types, signal:NUMBER and kill:PID send signals (to the program; to another process, SIGKILL),
hangup takes the terminal away, resize makes the window 50 by 12 and then types q, stop types Ctrl-Z, lets the program go on
and types q, wait:PID stops another process that the program then waits for, resizes the window and types Ctrl-C. What it
prints is one JSON object.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

READY = b"queries/s"
DEADLINE = time.monotonic() + 20


def resize(terminal: int, rows: int, columns: int) -> None:
  fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def take_terminal() -> None:
  fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Seat:
  """The other end of the terminal."""

  def __init__(self) -> None:
    self.master, self.slave = pty.openpty()
    self.output = b""
    resize(self.master, 30, 100)

  def read(self, patience: float) -> bool:
    if not select.select([self.master], [], [], patience)[0]:
      return False
    try:
      self.output += os.read(self.master, 65536)
    except OSError:
      return False
    return True

  def wait(self, condition, what: str) -> None:
    while not condition():
      if time.monotonic() > DEADLINE:
        sys.exit(f"no {what}: {self.output[-2000:]!r}")
      self.read(0.05)


def has_socket(pid: int) -> bool:
  folder = f"/proc/{pid}/fd"
  return any(os.readlink(f"{folder}/{name}").startswith("socket:") for name in os.listdir(folder))


def main() -> None:
  action, _, value = sys.argv[1].partition(":")
  seat = Seat()
  before = termios.tcgetattr(seat.slave)
  process = subprocess.Popen(
    sys.argv[2:], stdin=seat.slave, stdout=seat.slave, stderr=subprocess.PIPE, start_new_session=True,
    preexec_fn=take_terminal, env={**os.environ, "TERM": "xterm"})
  seat.wait(lambda: READY in seat.output, "frame")
  during = termios.tcgetattr(seat.slave)
  stopped_as_before = None
  narrow = None
  if action == "key":
    os.write(seat.master, value.encode())
  elif action == "signal":
    process.send_signal(int(value))
  elif action == "kill":
    os.kill(int(value), signal.SIGKILL)
  elif action == "hangup":
    os.kill(process.pid, signal.SIGHUP)
  elif action == "resize":
    seat.read(0.3)
    seat.output = b""
    resize(seat.master, 12, 50)
    # Between two beginnings there is a whole frame; the first ones may have been drawn before.
    seat.wait(lambda: seat.output.count(b"\x1b[H") >= 5, "narrow frames")
    frame = re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", seat.output.split(b"\x1b[H")[-2].decode())
    lines = [line.rstrip("\r") for line in frame.split("\n")]
    narrow = {"lines": len(lines), "widest": max(len(line) for line in lines)}
    os.write(seat.master, b"q")
  elif action == "stop":
    os.write(seat.master, b"\x1a")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    stopped_as_before = os.WIFSTOPPED(status) and termios.tcgetattr(seat.slave) == before
    seat.wait(lambda: seat.output.endswith(b"\x1b[?1049l"), "main screen")
    os.kill(process.pid, signal.SIGCONT)
    seat.wait(lambda: seat.output.count(READY) > 1 and b"\x1b[?1049h" in seat.output[-5000:], "screen again")
    os.write(seat.master, b"q")
  elif action == "wait":
    os.kill(int(value), signal.SIGSTOP)
    # It is connected for as long as it waits.
    seat.wait(lambda: has_socket(process.pid), "question")
    resize(seat.master, 12, 50)
    seat.read(0.3)
    seat.wait(lambda: process.poll() is not None or has_socket(process.pid), "next question")
    if process.poll() is None:
      os.write(seat.master, b"\x03")
  seat.wait(lambda: process.poll() is not None, "end")
  if action == "wait":
    os.kill(int(value), signal.SIGCONT)
  while seat.read(0.05):
    pass
  output = seat.output
  print(json.dumps({
    "status": process.returncode, "changed": during != before, "as_before": termios.tcgetattr(seat.slave) == before,
    "left": output.rfind(b"\x1b[?1049l") > output.rfind(b"\x1b[?1049h"),
    "cursor": output.rfind(b"\x1b[?25h") > output.rfind(b"\x1b[?25l"),
    "coloured": b"\x1b[32m" in output, "silent": output.endswith(b"\x1b[?1049l"), "stopped_as_before": stopped_as_before, "narrow": narrow,
    "error": process.stderr.read().decode(),
  }))


main()
