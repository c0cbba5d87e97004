"""curl.py -- a page by DNS over HTTPS, and requests over HTTP/1.1 and HTTP/2: statuses, header fields, JSON."""

import base64
import hashlib
import json
import re
import socket

from lab import ADDRESS, CLIENT, HOST, NAME, PAGE, PAGE_HOST, PINNED, STRANGER, Lab
from parts import question
from report import Output, call, expect, expect_match

QUERY = question(HOST, 0)
MESSAGE = "application/dns-message"
# Fewer octets than a header has.
FRAGMENT = b"\0\0\1"
# The errors of curl where a server closes a connection before or while TLS begins.
NO_HANDSHAKE = r"curl: \((35|52|55|56)\)"


URL = f"https://{NAME}/dns-query"


def fetch(lab: Lab, *arguments: str, url: str) -> Output:
  """The body of a response."""
  return call("curl", "--silent", "--show-error", "--max-time", "10", "--cacert", str(lab.authority.root), *arguments,
              url)


def request(lab: Lab, *arguments: str, url: str = URL) -> Output:
  """The header section of a response, then a line with status, version and type."""
  return fetch(lab, "--output", "/dev/null", "--dump-header", "-", "--write-out",
               "%{http_code} %{http_version} %{content_type}\n", *arguments, url=url)


def status_of(done: Output) -> str:
  """The status of a request, or why there is none."""
  found = re.search(r"^(\d{3}) \d", done.text, re.MULTILINE)
  return found.group(1) if found and found.group(1) != "000" else done.text


def get_url(message: bytes = QUERY, path: str = "/dns-query", host: str = NAME) -> str:
  """The URL of a query by GET."""
  return f"https://{host}{path}?dns={base64.urlsafe_b64encode(message).rstrip(b'=').decode()}"


def post(lab: Lab, message: bytes = QUERY, kind: str = MESSAGE) -> list[str]:
  """The arguments of a query by POST."""
  path = lab.folder / f"message-{hashlib.sha256(message).hexdigest()[:16]}"
  path.write_bytes(message)
  # curl would ask for leave to send a long body, and wait for it.
  return ["--data-binary", f"@{path}", "--header", f"Content-Type: {kind}", "--header", "Expect:"]


def check(lab: Lab) -> None:
  """All of it."""
  said = fetch(lab, "--doh-url", URL, url=f"http://{PAGE_HOST}/").text
  expect_match("curl --doh-url, a page", PAGE, said)
  said = fetch(lab, url=f"http://{PAGE_HOST}/").text
  expect_match("curl without it does not find the page", "Could not resolve host", said)
  for version in ("1.1", "2"):
    _messages(lab, version)
    _statuses(lab, version)
    _json(lab, version)
  said = request(lab, "--interface", STRANGER, url=get_url()).text
  expect_match("curl, a client outside of allow gets no handshake", NO_HANDSHAKE, said)


def _messages(lab: Lab, version: str) -> None:
  """RFC 8484: the ways to ask, and what the response says of itself."""
  option, over = f"--http{version}", f"curl HTTP/{version}"
  answered = rf"(?i)cache-control: max-age=\d+\r?\n.*\n200 {version} {MESSAGE}\n"
  for name, arguments, url in (
      ("GET", [], get_url()),
      ("POST", post(lab), URL),
      ("POST, type in capitals, with a parameter", post(lab, kind="Application/DNS-Message; a=b"), URL),
      ("GET, host in capitals, with a port", ["--header", f"Host: {NAME.upper()}:443"], get_url()),
      ("GET, the listener's address as host", ["--header", f"Host: {ADDRESS}"], get_url())):
    expect_match(f"{over} {name}", answered, request(lab, option, *arguments, url=url).text)
  body = lab.folder / "body"
  for name, arguments, url in (("GET", [], get_url()), ("POST", post(lab), URL)):
    body.unlink(missing_ok=True)
    fetch(lab, option, "--output", str(body), *arguments, url=url)
    response = body.read_bytes() if body.exists() else b""
    expect(f"{over} {name}, ID and address of the response", (QUERY[:2], True),
           (response[:2], socket.inet_aton(PINNED) in response))
  missing = get_url(question("missing.example.com", 0))
  expect(f"{over} GET, NXDOMAIN", "200", status_of(request(lab, option, url=missing)))


def _statuses(lab: Lab, version: str) -> None:
  """Requests that ask nothing."""
  option, over = f"--http{version}", f"curl HTTP/{version}"
  for status, name, arguments, url in (
      (400, "GET without a message", [], URL),
      (400, "GET, three octets", [], get_url(FRAGMENT)),
      (400, "GET, a response", [], get_url(QUERY[:2] + bytes([QUERY[2] | 0x80]) + QUERY[3:])),
      (400, "GET, not base64url", [], f"{URL}?dns=%21%21%21%21"),
      (400, "POST, three octets", post(lab, FRAGMENT), None),
      (404, "GET, another path", [], get_url(path="/other")),
      (405, "PUT", ["--request", "PUT", *post(lab)], None),
      (405, "HEAD", ["--head"], get_url()),
      (405, "OPTIONS", ["--request", "OPTIONS"], get_url()),
      (414, "GET, more than 2,731 characters", [], get_url(QUERY + bytes(2_100))),
      (415, "POST, another type", post(lab, kind="application/json"), None),
      (421, "GET, another host", ["--header", "Host: other.example"], get_url())):
    said = request(lab, option, *arguments, **({"url": url} if url else {}))
    expect(f"{over} {name}", str(status), status_of(said))
    if name == "PUT":
      allowed = r"(?i)\nallow: *(get, *post|post, *get)\r?\n"
      expect_match(f"{over} {name}, the methods that are allowed", allowed, said.text)
  expect(f"{over} POST, more than 65,535 octets", "413", _status_of_long_body(lab, option))
  if version == "1.1":
    said = request(lab, option, *post(lab), "--header", "Transfer-Encoding: chunked")
    expect(f"{over} POST, chunked", "411", status_of(said))


def _status_of_long_body(lab: Lab, option: str) -> str:
  """The status of a response that is there before the body has been sent.

  curl 7.88 sometimes loses it over HTTP/2 (error 92) if RST_STREAM(NO_ERROR) follows, which RFC 9113 asks for.
  """
  for _ in range(6):
    said = request(lab, option, *post(lab, QUERY + bytes(70_000)))
    if "curl: (92)" not in said.text:
      break
  return status_of(said)


def _json(lab: Lab, version: str) -> None:
  """The JSON interface."""
  option, over = f"--http{version}", f"curl HTTP/{version} JSON"
  for kind in ("", "&type=A", "&type=1"):
    said = fetch(lab, option, url=f"https://{NAME}/resolve?name={HOST}{kind}").text
    try:
      reply = json.loads(said)
      got = (reply["Status"], [record["data"] for record in reply["Answer"]], reply["Question"][0]["type"])
    except (ValueError, LookupError, TypeError):
      got = said
    expect(f"{over} GET {kind or 'without a type'}", (0, [PINNED], 1), got)
  expect_match(f"{over}, type of the response", r"(?i)cache-control: max-age=\d+.*\n200 [\d.]+ application/dns-json",
               request(lab, option, url=f"https://{NAME}/resolve?name={HOST}").text)
  said = fetch(lab, option, url=f"https://{NAME}/resolve?name=missing.example.com&type=A").text
  expect_match(f"{over}, NXDOMAIN", r'"Status": ?3\b', said)
  said = request(lab, option, *post(lab, kind="application/dns-json"), url=f"https://{NAME}/resolve?name={HOST}")
  expect(f"{over} POST", "405", status_of(said))
