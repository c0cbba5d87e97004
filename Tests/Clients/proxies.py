"""proxies.py -- haproxy before DNS over TLS with the PROXY header, and nginx before DNS over HTTP with X-Forwarded-For.

Both show by a client outside of `allow` that the daemon judges the client that the proxy names.
"""

import csv
import socket

from curl import NO_HANDSHAKE, fetch, get_url, post, request, status_of
from kdig import ANSWERED, has_answer, kdig
from lab import ADDRESS, ADDRESS6, CLIENT, DOH, DOH_PLAIN, DOT, HAPROXY, HOST, NAME, NGINX, PINNED, STRANGER, Lab
from machine import wait_for
from report import expect, expect_match

HAPROXY_CONFIGURATION = f"""
global
  stats socket FOLDER/haproxy.sock
defaults
  mode tcp
  timeout connect 5s
  timeout client 20s
  timeout server 20s
listen dot
  bind {HAPROXY}:{DOT}
  server httpdnsd {ADDRESS}:{DOT} source {HAPROXY} send-proxy-v2
listen doh
  bind {HAPROXY}:{DOH}
  server httpdnsd {ADDRESS}:{DOH} source {HAPROXY} send-proxy-v2
listen plain
  bind {HAPROXY}:8080
  server httpdnsd {ADDRESS}:{DOH_PLAIN} source {HAPROXY} send-proxy-v2
# Version 1 of the header.
listen old
  bind {HAPROXY}:8530
  server httpdnsd {ADDRESS}:{DOT} source {HAPROXY} send-proxy
# Health checks have the header's command LOCAL.
listen checked
  bind {HAPROXY}:8531
  default-server check check-send-proxy check-ssl check-sni {NAME} ca-file CA inter 200ms
  server httpdnsd {ADDRESS}:{DOT} source {HAPROXY} send-proxy-v2
"""
NGINX_CONFIGURATION = f"""
daemon off;
user root;
worker_processes 1;
pid FOLDER/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path FOLDER/nginx-body;
  proxy_temp_path FOLDER/nginx-proxy;
  fastcgi_temp_path FOLDER/nginx-fastcgi;
  uwsgi_temp_path FOLDER/nginx-uwsgi;
  scgi_temp_path FOLDER/nginx-scgi;
  upstream httpdnsd {{
    server {ADDRESS}:{DOH_PLAIN};
    keepalive 4;
  }}
  server {{
    listen {NGINX}:443 ssl http2;
    ssl_certificate CHAIN;
    ssl_certificate_key KEY;
    location / {{
      proxy_pass http://httpdnsd;
      proxy_bind {NGINX};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"""


def check(lab: Lab) -> None:
  """One proxy after the other."""
  _haproxy(lab)
  _nginx(lab)


def _haproxy(lab: Lab) -> None:
  path = lab.folder / "haproxy.cfg"
  text = HAPROXY_CONFIGURATION.replace("FOLDER", str(lab.folder))
  path.write_text(text.replace("CA", str(lab.authority.root)))
  lab.start_program(["haproxy", "-db", "-q", "-f", path], HAPROXY, [DOT, DOH, 8080, 8530, 8531])
  said = kdig(lab, "+tls", "-b", CLIENT, HOST, server=HAPROXY).text
  expect_match("haproxy before DoT, a client in allow", ANSWERED, said)
  said = kdig(lab, "+tls", "-b", STRANGER, HOST, server=HAPROXY).text
  expect("haproxy before DoT, answer for a client outside of allow", False, has_answer(said))
  results = wait_for("haproxy has checked the server", lambda: _health(lab))
  expect("haproxy before DoT, health check of TLS", ["UP", "L6OK"], results)
  said = kdig(lab, "+tls", "-b", CLIENT, "-p", "8531", HOST, server=HAPROXY).text
  expect_match("haproxy before DoT, with health checks", ANSWERED, said)
  said = kdig(lab, "+tls", "-b", CLIENT, "-p", "8530", HOST, server=HAPROXY).text
  expect("haproxy before DoT, answer after version 1 of the header", False, has_answer(said))
  said = kdig(lab, "+tls", "-b", HAPROXY, HOST).text
  expect("DoT, answer for a proxy that sends no header", False, has_answer(said))
  through = ["--connect-to", f"{NAME}:443:{HAPROXY}:443"]
  for version in ("1.1", "2"):
    said = request(lab, f"--http{version}", *through, "--interface", CLIENT, url=get_url())
    expect(f"haproxy before DoH, HTTP/{version}", "200", status_of(said))
  said = request(lab, *through, "--interface", STRANGER, url=get_url()).text
  expect_match("haproxy before DoH, a client outside of allow gets no handshake", NO_HANDSHAKE, said)
  plain = get_url().replace("https://", "http://").replace(NAME, f"{HAPROXY}:8080")
  host = ["--header", f"Host: {NAME}"]
  expect("haproxy before doh_plain", "200", status_of(request(lab, *host, "--interface", CLIENT, url=plain)))
  said = request(lab, *host, "--interface", STRANGER, url=plain).text
  expect_match("haproxy before doh_plain, a client outside of allow", NO_HANDSHAKE, said)


def _health(lab: Lab) -> list[str]:
  """The state of the server that is checked, and the result of its last check; nothing before the first one."""
  with socket.socket(socket.AF_UNIX) as statistics:
    statistics.settimeout(5)
    statistics.connect(str(lab.folder / "haproxy.sock"))
    statistics.sendall(b"show stat\n")
    rows = csv.DictReader(statistics.makefile(encoding="ascii"))
    row = next(row for row in rows if row["# pxname"] == "checked" and row["svname"] == "httpdnsd")
  # "INI", or "* " before the result of the check before, as long as a check runs.
  is_done = row["check_status"] not in ("", "INI") and not row["check_status"].startswith("*")
  return [row["status"], row["check_status"]] if is_done else []


def _nginx(lab: Lab) -> None:
  text = NGINX_CONFIGURATION
  for word, value in (("FOLDER", lab.folder), ("CHAIN", lab.authority.chain), ("KEY", lab.authority.key)):
    text = text.replace(word, str(value))
  path = lab.folder / "nginx.conf"
  path.write_text(text)
  lab.start_program(["nginx", "-c", path, "-e", "stderr"], NGINX, [443])
  through = ["--connect-to", f"{NAME}:443:{NGINX}:443"]
  inside, outside = ["--interface", CLIENT], ["--interface", STRANGER]
  for status, name, arguments in (
      (200, "a client in allow, GET", [*inside]),
      (200, "a client in allow, POST", [*inside, *post(lab)]),
      (403, "a client outside of allow", [*outside]),
      (403, "a client outside of allow that names another", [*outside, "--header", f"X-Forwarded-For: {CLIENT}"]),
      (200, "a client in allow that names another", [*inside, "--header", f"X-Forwarded-For: {STRANGER}"])):
    url = f"https://{NAME}/dns-query" if "--data-binary" in arguments else get_url()
    expect(f"nginx before doh_plain, {name}", str(status), status_of(request(lab, *through, *arguments, url=url)))
  said = fetch(lab, *through, *inside, url=f"https://{NAME}/resolve?name={HOST}").text
  expect_match("nginx before doh_plain, JSON", rf'"data": ?"{PINNED}"', said)
  plain = get_url().replace("https://", "http://").replace(NAME, f"{ADDRESS}:{DOH_PLAIN}")
  for status, name, arguments in (
      (200, "IPv4", ["--header", f"X-Forwarded-For: {STRANGER}, {CLIENT}"]),
      (200, "IPv6", ["--header", f"X-Forwarded-For: {ADDRESS6}"]),
      (403, "IPv4 outside of allow", ["--header", f"X-Forwarded-For: {CLIENT}, {STRANGER}"]),
      (400, "no address", ["--header", "X-Forwarded-For: unknown"]),
      (200, "none: the proxy itself", [])):
    said = request(lab, "--interface", NGINX, *arguments, url=plain)
    expect(f"doh_plain, X-Forwarded-For, {name}", str(status), status_of(said))
  said = request(lab, *inside, "--header", f"X-Forwarded-For: {STRANGER}", url=plain)
  expect("doh_plain, X-Forwarded-For of a client that is no proxy has no effect", "200", status_of(said))
