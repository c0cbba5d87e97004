"""watch.py -- how long the turns of the daemon's loop are, and whether it answers meanwhile."""

from __future__ import annotations

import mmap
import socket
import struct
import threading
import time
from pathlib import Path

from bench.lab import build
from bench.processes import BenchError

_PAUSE = 0.0003
#: Seconds for which an answer is waited for.
_PATIENCE = 5.0
#: "localhost" A, which the daemon answers itself.
_QUERY = b"\0\x1b\0\7\1\0\0\1\0\0\0\0\0\0\x09localhost\0\0\1\0\1"


class Turns:
  """What native/turns.c says about the loop of the daemon that is started by `starter`."""

  _LAYOUT = struct.Struct("=QQ")

  def __init__(self, folder: Path) -> None:
    library, path = build("turns.c", folder / "turns.so", "-shared", "-fPIC"), folder / "turns"
    path.write_bytes(bytes(self._LAYOUT.size))
    with path.open("r+b") as file:
      self._memory = mmap.mmap(file.fileno(), self._LAYOUT.size)
    self.starter = ("env", f"LD_PRELOAD={library}", f"TURNS_FILE={path}")

  def begin(self) -> None:
    """Begins again: what was before does not count."""
    self._LAYOUT.pack_into(self._memory, 0, 0, 0)

  def read(self) -> tuple[float, int]:
    """The longest turn (milliseconds of CPU), and how many there were."""
    longest, count = self._LAYOUT.unpack_from(self._memory)
    return longest / 1e6, count


class Watch:
  """Asks a daemon over TCP, which its loop serves, again and again while the block runs, and once more at its end.

  Then `asked` is how often that was answered; 0 where the last question was not.
  """

  def __init__(self, port: int) -> None:
    self.asked = 0
    self._port = port
    self._ends = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)

  def __enter__(self) -> Watch:
    try:
      self._client: socket.socket | None = self._connection()
    except OSError as error:
      raise BenchError("the daemon takes no connection") from error
    self._thread.start()
    return self

  def __exit__(self, *_: object) -> None:
    self._ends.set()
    self._thread.join()
    if self._client:
      self._client.close()

  def _connection(self) -> socket.socket:
    return socket.create_connection(("127.0.0.1", self._port), _PATIENCE)

  def _run(self) -> None:
    asked, last = 0, float("inf")
    while True:
      if is_last := self._ends.is_set():
        last = min(last, time.monotonic() + _PATIENCE)
      try:
        self._client = self._client or self._connection()
        self._client.sendall(_QUERY)
        # The daemon may close the connection instead.
        if not self._client.recv(4096):
          raise OSError
        asked += 1
        if is_last:
          self.asked = asked
          return
      except OSError:
        self._client = None
        if time.monotonic() > last:
          return
      time.sleep(_PAUSE)
