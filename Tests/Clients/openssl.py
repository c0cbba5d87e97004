"""openssl.py -- handshakes by `openssl s_client`: versions, ALPN, tickets, no early data."""

import os
import re
import select
import subprocess
import time

from lab import ADDRESS, DOH, DOT, HOST, NAME, Lab
from curl import QUERY
from report import expect, expect_match

# The longest that a handshake may take, in seconds.
CALL_LIMIT = 10
PORTS = {"DoT": DOT, "DoH": DOH}
# Without the limits of Debian's configuration: what refuses old versions is the daemon, not the client.
NO_LIMITS = {**os.environ, "OPENSSL_CONF": "/dev/null"}
# OpenSSL's names of alerts: a text, and the number of RFC 8446.
NO_PROTOCOL, WRONG_VERSION = "alert number 120", "alert number 70"
# Certificates, and the octets of tickets.
DUMPS = r"-----BEGIN.*?-----END [^\n]*\n| +[0-9a-f]{4} - [^\n]*\n|---\n"
VERSIONS = {"-tls1_2": "TLSv1.2", "-tls1_3": "TLSv1.3"}
TICKET = {"-tls1_2": "TLS session ticket:", "-tls1_3": "Post-Handshake New Session Ticket arrived"}


def handshake(lab: Lab, port: int, *arguments: str, until: str = "", text: bytes = b"", address: str = ADDRESS,
              name: str = NAME) -> str:
  """What the client prints until it ends, or until it has printed `until`; its input then ends."""
  # Into a pipe it would print when it ends.
  command = ["timeout", str(CALL_LIMIT), "stdbuf", "-oL", "openssl", "s_client", "-connect", f"{address}:{port}",
             "-servername", name, "-CAfile", str(lab.authority.root), "-verify_hostname", name, "-verify_return_error",
             *arguments]
  with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        env=NO_LIMITS) as client:
    said = b""
    if text:
      client.stdin.write(text)
      client.stdin.flush()
    deadline = time.monotonic() + CALL_LIMIT
    while until and until.encode() not in said and time.monotonic() < deadline:
      if select.select([client.stdout], [], [], 0.2)[0]:
        part = os.read(client.stdout.fileno(), 65536)
        if not part:
          break
        said += part
    client.stdin.close()
    said += client.stdout.read()
  return re.sub(DUMPS, "", said.decode(errors="replace"), flags=re.DOTALL)


def check(lab: Lab) -> None:
  """All of it, at both ports."""
  for name, port in PORTS.items():
    for option, version in VERSIONS.items():
      trusted = rf"{re.escape(version)}, Cipher is .*Verify return code: 0 \(ok\)"
      expect_match(f"openssl {name} {version}, the chain is trusted", trusted, handshake(lab, port, option))
      _resume(lab, f"openssl {name} {version}", port, option)
    for option, version in (("-tls1", "TLSv1.0"), ("-tls1_1", "TLSv1.1")):
      said = handshake(lab, port, option, "-cipher", "ALL:@SECLEVEL=0")
      expect_match(f"openssl {name} {version} is refused", WRONG_VERSION, said)
    _early_data(lab, f"openssl {name}", port)
  _protocols(lab)


def _resume(lab: Lab, name: str, port: int, option: str) -> None:
  """The second connection uses the ticket of the first one."""
  session = lab.folder / f"session-{port}{option}"
  handshake(lab, port, option, "-sess_out", str(session), until=TICKET[option])
  if not session.exists():
    expect(f"{name}, a ticket", True, False)
    return
  said = handshake(lab, port, option, "-sess_in", str(session))
  expect_match(f"{name}, a ticket resumes", r"\nReused, ", said)


def _early_data(lab: Lab, name: str, port: int) -> None:
  """A ticket allows none; a client that would send some does not, or the daemon rejects it."""
  data = lab.folder / "early-data"
  data.write_bytes(len(QUERY).to_bytes(2, "big") + QUERY)
  session = lab.folder / f"session-{port}-tls1_3"
  said = handshake(lab, port, "-tls1_3", until="read R BLOCK")
  expect_match(f"{name}, a ticket's octets of early data", r"Max Early Data: 0\b", said)
  if session.exists():
    said = handshake(lab, port, "-tls1_3", "-sess_in", str(session), "-early_data", str(data))
    expect_match(f"{name}, no early data", "Early data was (not sent|rejected)", said)


def _protocols(lab: Lab) -> None:
  """ALPN: the protocol of the port, the older one without an offer, and an alert for clients of another."""
  for name, port, offer, chosen in (
      ("DoT", DOT, "dot", "dot"), ("DoT", DOT, "xmpp-client,dot", "dot"), ("DoH", DOH, "h2", "h2"),
      ("DoH", DOH, "http/1.1", "http/1.1"), ("DoH", DOH, "h2,http/1.1", "h2")):
    said = handshake(lab, port, "-alpn", offer)
    expect_match(f"openssl {name} ALPN {offer}", rf"ALPN protocol: {re.escape(chosen)}\n", said)
  for name, port, offer in (
      ("DoT", DOT, "xmpp-client"), ("DoT", DOT, "h2"), ("DoH", DOH, "xmpp-client"), ("DoH", DOH, "dot")):
    for option, version in VERSIONS.items():
      said = handshake(lab, port, option, "-alpn", offer)
      expect_match(f"openssl {name} {version} ALPN {offer} gets an alert", NO_PROTOCOL, said)
  label = HOST.split(".", maxsplit=1)[0]
  said = handshake(lab, DOT, "-quiet", "-no_ign_eof", until=label, text=len(QUERY).to_bytes(2, "big") + QUERY)
  expect_match("openssl DoT without ALPN, a response", label, said)
  text = f"GET /other HTTP/1.1\r\nHost: {NAME}\r\n\r\n"
  said = handshake(lab, DOH, "-quiet", "-no_ign_eof", until="HTTP/1.1 ", text=text.encode())
  expect_match("openssl DoH without ALPN, HTTP/1.1", "HTTP/1.1 404", said)
