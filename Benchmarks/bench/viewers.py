"""viewers.py -- those who look at a daemon: pages of the dashboard that are open, a scraper, and dnsdist's own page."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from posixpath import dirname, normpath

from .peers import WEB_PASSWORD
from .processes import BenchError

#: Seconds from one sample of the dashboard to the next, and from one scrape to the next.
INTERVAL = 2.0
#: Pages that may be open at once.
MOST = 8
#: Seconds from one look of dnsdist's page to the next, and what it asks for then (local.js of 1.7.3).
_DNSDIST_INTERVAL = 1.0
_DNSDIST_LOOKS = ("jsonstat?command=stats", "api/v1/servers/localhost", "jsonstat?command=dynblocklist",
                  "jsonstat?command=ebpfblocklist")
#: What the page reads before its stream.
_HISTORIES = ("/dashboard/history?span=10m", "/dashboard/history?span=1h")
_EVENTS = "/dashboard/events"
#: What a browser adds to each request.
_BROWSER = {
  "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  "Accept": "*/*", "Accept-Language": "en-US,en;q=0.9", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors",
  "Sec-Fetch-Dest": "empty"}
_DNSDIST_FIELDS = {
  **_BROWSER, "X-Requested-With": "XMLHttpRequest",
  "Authorization": "Basic " + base64.b64encode(f"user:{WEB_PASSWORD}".encode()).decode()}
_TIMEOUT = 10


class _Page:
  """A page of the dashboard that is open: its stream is read on a thread of its own."""

  def __init__(self, web: int) -> None:
    number = [json.loads(_get(web, path, _BROWSER)[1])["number"] for path in _HISTORIES][0]
    self._connection = http.client.HTTPConnection("127.0.0.1", web, timeout=_TIMEOUT)
    self._first = threading.Event()
    self.samples = 0
    try:
      self._connection.request("GET", _EVENTS, headers=_BROWSER | ({"Last-Event-ID": str(number)} if number else {}))
      self._response = self._connection.getresponse()
    except OSError as error:
      raise BenchError(f"no stream of the dashboard: {error}") from error
    if self._response.status != 200:
      raise BenchError(f"the stream of the dashboard: status {self._response.status}")
    self._socket = self._connection.sock
    self._thread = threading.Thread(target=self._read)
    self._thread.start()
    if not self._first.wait(_TIMEOUT):
      self.close()
      raise BenchError("the stream of the dashboard has no sample")

  def is_open(self) -> bool:
    """Whether the daemon has not ended it."""
    return self._thread.is_alive()

  def close(self) -> None:
    """Ends the stream, as a page that is left does."""
    try:
      self._socket.shutdown(socket.SHUT_RDWR)
    except OSError:
      pass
    self._thread.join()
    self._connection.close()

  def _read(self) -> None:
    try:
      while octets := self._response.read1(1 << 16):
        self.samples += octets.count(b"event: sample")
        if self.samples:
          self._first.set()
    except (OSError, http.client.HTTPException):
      return


@contextmanager
def pages(web: int, count: int) -> Iterator[None]:
  """Keeps pages of the dashboard open; on leaving, all of them must have got their samples."""
  opened: list[_Page] = []
  with ExitStack() as stack:
    for _ in range(count):
      opened.append(_Page(web))
      stack.callback(opened[-1].close)
    begin = time.monotonic()
    counts = [page.samples for page in opened]
    yield
    expected = int((time.monotonic() - begin) / INTERVAL) - 1
    for page, first in zip(opened, counts, strict=True):
      if not page.is_open() or page.samples - first < expected:
        raise BenchError(f"a page got {page.samples - first} of {expected} samples")


@contextmanager
def scraper(web: int) -> Iterator[None]:
  """Scrapes `/metrics`, on one connection as Prometheus does."""
  connection = http.client.HTTPConnection("127.0.0.1", web, timeout=_TIMEOUT)

  def scrape() -> None:
    connection.request("GET", "/metrics", headers={"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"})
    response = connection.getresponse()
    if response.status != 200 or not response.read():
      raise BenchError(f"/metrics: status {response.status}")

  try:
    with _repeated(scrape, INTERVAL):
      yield
  finally:
    connection.close()


@contextmanager
def dnsdist_page(web: int) -> Iterator[None]:
  """Asks for what the page of dnsdist asks for. dnsdist closes each connection."""

  def look() -> None:
    for path in _DNSDIST_LOOKS:
      _get(web, f"/{path}{'&' if '?' in path else '?'}_={time.time_ns() // 1_000_000}", _DNSDIST_FIELDS)

  with _repeated(look, _DNSDIST_INTERVAL):
    yield


@contextmanager
def _repeated(action: Callable[[], None], interval: float) -> Iterator[None]:
  """Does it at once, and then again and again on a thread of its own; on leaving, a failure there is raised."""
  end = threading.Event()
  failures: list[str] = []

  def run() -> None:
    due = time.monotonic()
    while not end.is_set():
      due += interval
      if end.wait(max(0, due - time.monotonic())):
        return
      try:
        action()
      except (OSError, http.client.HTTPException, BenchError) as error:
        failures.append(str(error))
        return

  action()
  thread = threading.Thread(target=run)
  thread.start()
  try:
    yield
  finally:
    end.set()
    thread.join()
  if failures:
    raise BenchError(failures[0])


def _get(web: int, path: str, fields: dict[str, str]) -> tuple[int, bytes]:
  """The octets of the head of a response, and its content."""
  connection = http.client.HTTPConnection("127.0.0.1", web, timeout=_TIMEOUT)
  try:
    connection.request("GET", path, headers=fields)
    response = connection.getresponse()
    # A stream does not end.
    content = _first_event(response) if path == _EVENTS else response.read()
  except (OSError, http.client.HTTPException) as error:
    raise BenchError(f"no answer at {path}: {error}") from error
  finally:
    connection.close()
  if response.status != 200:
    raise BenchError(f"{path}: status {response.status}")
  head = f"HTTP/1.1 {response.status} {response.reason}\r\n" + "".join(
    f"{name}: {value}\r\n" for name, value in response.getheaders()) + "\r\n"
  return len(head), content


def _first_event(response: http.client.HTTPResponse) -> bytes:
  octets = b""
  while (end := octets.find(b"\n\n")) < 0:
    piece = response.read1(1 << 16)
    if not piece:
      raise BenchError("a stream ended before its first event")
    octets += piece
  return octets[:end + 2]


@dataclass(frozen=True)
class Visit:
  """What a browser receives that has nothing of a page: files and octets, without and with the heads of the responses."""

  files: int
  content: int
  whole: int


def visit_dashboard(web: int) -> Visit:
  """A first visit of the dashboard, until its first sample."""
  return _visit(web, "/dashboard", _BROWSER, [*_HISTORIES, _EVENTS])


def visit_dnsdist(web: int) -> Visit:
  """All files of dnsdist's page."""
  return _visit(web, "/", _DNSDIST_FIELDS, [])


def _visit(web: int, page: str, fields: dict[str, str], more: list[str]) -> Visit:
  waiting, seen = [page, *more], set[str]()
  content = whole = 0
  while waiting:
    path = waiting.pop()
    if path in seen:
      continue
    seen.add(path)
    head, octets = _get(web, path, fields)
    content += len(octets)
    whole += head + len(octets)
    if path not in more:
      waiting += named_files(path, octets.decode(errors="replace"))
  return Visit(len(seen), content, whole)


def named_files(path: str, text: str) -> list[str]:
  """The paths of what a page or a module loads."""
  if path.endswith(".js"):
    found = re.findall(r'\bfrom\s*"(\.{1,2}/[^"]+)"', text)
  elif path.endswith(".css"):
    found = re.findall(r'@import\s+"([^"]+)"', text)
  else:
    found = re.findall(r'<(?:script|link|img)\b[^>]*?\s(?:src|href)="([^":]+)"', text)
  return [normpath(f"{dirname(path)}/{name}" if not name.startswith("/") else name).replace("//", "/") for name in found]
