"""tokens.py -- clients with a token, and without one: the server name over TLS, the path over HTTPS."""

from curl import get_url, request, status_of
from kdig import ANSWERED, kdig
from lab import DOT, HOST, NAME, TOKEN, TOKEN_ADDRESS, Lab
from openssl import handshake
from report import call, expect, expect_match

# RFC 6066's unrecognized_name.
UNKNOWN_NAME = "alert number 112"


def check(lab: Lab) -> None:
  """All of it."""
  known = f"{TOKEN}.{NAME}"
  expect_match("kdig +tls with a token", ANSWERED, kdig(lab, "+tls", HOST, server=TOKEN_ADDRESS, name=known).text)
  said = kdig(lab, "+tls", HOST, server=TOKEN_ADDRESS, name=known.upper()).text
  expect_match("kdig +tls with a token in capitals", ANSWERED, said)
  for name, server_name in (("without a token", NAME), ("with a wrong token", f"{TOKEN[::-1]}.{NAME}")):
    said = handshake(lab, DOT, address=TOKEN_ADDRESS, name=server_name)
    expect_match(f"openssl DoT {name} gets an alert", UNKNOWN_NAME, said)
  connect = ["--connect-to", f"{NAME}:443:{TOKEN_ADDRESS}:443"]
  for status, name, path in ((200, "with a token", f"/dns-query/{TOKEN}"), (404, "without a token", "/dns-query"),
                             (404, "with a wrong token", f"/dns-query/{TOKEN[::-1]}")):
    expect(f"curl DoH {name}", str(status), status_of(request(lab, *connect, url=get_url(path=path))))
  said = call("kdig", f"@{TOKEN_ADDRESS}", "+retry=0", "_dns.resolver.arpa", "SVCB").text
  expect_match("kdig, no discovery with tokens", "status: NOERROR.*ANSWER: 0;", said)
