"""proxy.py -- the dashboard behind nginx with TLS, as docs/dashboard.md has it: figures, signing in, actions."""

import re

from machine import REPOSITORY, wait_for
from parts import is_open
from report import expect, expect_match_soon, expect_soon

from dashboard.browser import Browser
from dashboard.scene import BUSY, NAME, Scene

# What the example needs around it.
NGINX = """
daemon off;
user root;
worker_processes 1;
pid FOLDER/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path FOLDER/nginx-body;
  proxy_temp_path FOLDER/nginx-proxy;
  fastcgi_temp_path FOLDER/nginx-fastcgi;
  uwsgi_temp_path FOLDER/nginx-uwsgi;
  scgi_temp_path FOLDER/nginx-scgi;
EXAMPLE
}
"""


def check_proxy(scene: Scene, browser: Browser) -> None:
  """In a browser of its own, for which the name leads to the proxy."""
  port = scene.ports["proxy"]
  path = scene.folder / "nginx.conf"
  path.write_text(NGINX.replace("EXAMPLE", _example(scene)).replace("FOLDER", str(scene.folder)))
  nginx = scene.run("nginx", "-e", "stderr", "-c", path)
  wait_for("nginx", lambda: is_open(port))
  origin = f"https://{NAME}"
  with Browser(browser.pictures, origin, more=(f"--host-resolver-rules=MAP {NAME}:443 127.0.0.1:{port}",
                                                "--ignore-certificate-errors")) as other:
    other.open(scene.sign_in_url().replace(scene.origin, origin))
    expect_soon("dashboard: behind nginx, signed in", True, lambda: bool(other.texts("#names-rows tr")))
    before = other.fact("load", "Queries")
    expect_soon("dashboard: behind nginx, figures move", True, lambda: other.fact("load", "Queries") != before, 6)
    other.click(f"#names-rows tr[data-name='{BUSY}.'][data-type=A] button[aria-label^=Refresh]")
    expect_match_soon("dashboard: behind nginx, an action", f"Refreshed {BUSY}.*A: ", lambda: other.text("#result"))
    other.expect_quiet("behind nginx")
  nginx.terminate()
  expect("dashboard: nginx runs until SIGTERM", 0, nginx.wait(10))


def _example(scene: Scene) -> str:
  """The document's lines with the name, the port and the files of this laboratory."""
  document = (REPOSITORY / "docs/dashboard.md").read_text(encoding="utf-8")
  text = re.search(r"```nginx\n(.*?)```", document, re.DOTALL)[1]
  for old, new in (("listen 443 ", f"listen 127.0.0.1:{scene.ports['proxy']} "),
                   ("/etc/letsencrypt/live/dns.example.com/fullchain.pem", str(scene.authority.chain)),
                   ("/etc/letsencrypt/live/dns.example.com/privkey.pem", str(scene.authority.key)),
                   ("dns.example.com", NAME), ("127.0.0.1:9353", f"127.0.0.1:{scene.ports['web']}")):
    if old not in text:
      raise RuntimeError(f"docs/dashboard.md: the example for nginx has no '{old}'")
    text = text.replace(old, new)
  return text
