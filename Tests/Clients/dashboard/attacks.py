"""attacks.py -- a page of another port of 127.0.0.1, and one of a name that was rebound, while the user is signed in."""

import http.server
import threading

from report import expect, expect_match, expect_soon

from dashboard.browser import REBOUND, Browser
from dashboard.scene import BUSY, Scene

# Each attempt gives what it got; "nothing" is what it should get. URL is the dashboard's.
ATTEMPTS = {
  "frames the page": """new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => { try { done(frame.contentDocument.body.innerText || "nothing"); } catch { done("nothing"); } };
    frame.src = URL;
    document.body.append(frame);
    setTimeout(() => done("nothing"), 3000);
  })""",
  "fetches the page": "read(URL)",
  "fetches the history": "read(`${URL}/history?span=10m`)",
  "fetches the history without CORS": "read(`${URL}/history?span=10m`, {mode: 'no-cors'})",
  "fetches the history with a token": "read(`${URL}/history?span=10m`, {headers: {Authorization: 'Bearer x'}})",
  "opens the events": """new Promise((done) => {
    const source = new EventSource(`${URL}/events`);
    source.onerror = () => done("nothing");
    source.onopen = source.onmessage = () => done("a stream");
    source.addEventListener("sample", () => done("a sample"));
  })""",
  "takes the events as often as it can": """Promise.all([...Array(20)].map(() => read(`${URL}/events`, {mode: "no-cors"})))
    .then((all) => all.find((each) => each !== "nothing") ?? "nothing")""",
  "loads the history as a script": """new Promise((done) => {
    const script = document.createElement("script");
    script.onerror = () => done("nothing");
    script.onload = () => done("a script");
    script.src = `${URL}/history?span=10m`;
    document.body.append(script);
  })""",
  "posts a flush as JSON": "read(`${URL}/action`, {method: 'POST', headers: JSON_TYPE, body: FLUSH})",
  "posts a flush as text": "read(`${URL}/action`, {method: 'POST', mode: 'no-cors', body: FLUSH})",
  "posts a flush as a beacon": "navigator.sendBeacon(`${URL}/action`, new Blob([FLUSH], {type: 'text/plain'})) && 'nothing'",
  "posts a flush as a form": """new Promise((done) => {
    const [form, frame] = [document.createElement("form"), document.createElement("iframe")];
    frame.name = "answer";
    Object.assign(form, {method: "post", action: `${URL}/action`, enctype: "text/plain", target: "answer"});
    const field = Object.assign(document.createElement("input"), {name: FLUSH.slice(0, -1) + ',"a":"', value: '"}'});
    form.append(field);
    document.body.append(frame, form);
    frame.onload = () => { try { done(frame.contentDocument.body.innerText || "nothing"); } catch { done("nothing"); } };
    form.submit();
    setTimeout(() => done("nothing"), 3000);
  })""",
  "signs out": "read(`${URL}/session`, {method: 'DELETE'})",
  "reads the token": "localStorage.getItem('httpdnsd.session') ?? 'nothing'",
}
PAGE = """<!doctype html><title>another page</title><body><script>
const URL = "{url}", FLUSH = '{{"do":"flush","all":true}}', JSON_TYPE = {{"Content-Type": "application/json"}};
async function read(url, options) {{
  try {{
    const response = await fetch(url, {{...options, signal: AbortSignal.timeout(4000)}});
    return (await response.text()) || "nothing";
  }} catch {{ return "nothing"; }}
}}
const attempts = {{ {attempts} }};
</script>"""


def check_attacks(scene: Scene, browser: Browser) -> None:
  """Nothing is read, and nothing done."""
  browser.open(scene.sign_in_url())
  expect_soon("dashboard: signed in before attacks", True, lambda: browser.is_shown("names"))
  scene.load.pause()
  scene.ask(BUSY, "stays.bench.example")
  entries, lines = scene.ask_control("stats")["cache"]["entries"], len(scene.logged("dashboard: user 0: "))
  browser.expect_quiet("before attacks", may_fail=True)
  server = _serve(scene.url)
  try:
    browser.driver.get(f"http://127.0.0.1:{server.server_port}/")
    expect_match("dashboard: another page reads what it may", "another page", _attempt(browser, "reads itself"))
    for what in ATTEMPTS:
      expect(f"dashboard: another page {what}", "nothing", _attempt(browser, what))
    expect_match("dashboard: the browser refuses to frame the page", "frame-ancestors", "\n".join(browser.forget()))
  finally:
    server.shutdown()
  expect("dashboard: other pages have flushed nothing", True, scene.ask_control("stats")["cache"]["entries"] >= entries)
  expect("dashboard: other pages have done nothing", lines, len(scene.logged("dashboard: user 0: ")))
  _check_rebinding(scene, browser)
  browser.open(scene.url)
  expect_soon("dashboard: still signed in after attacks", True, lambda: bool(browser.texts("#names-rows tr")))
  browser.expect_quiet("after attacks")
  scene.load.start()


def _attempt(browser: Browser, what: str) -> str:
  return browser.driver.execute_async_script(
    "const done = arguments[1]; Promise.resolve(attempts[arguments[0]]()).then(done, (error) => done(`${error}`))", what)


def _check_rebinding(scene: Scene, browser: Browser) -> None:
  """A name of the attacker's that leads to the daemon's address."""
  origin = f"http://{REBOUND}:{scene.ports['web']}"
  for path in ("/dashboard", "/dashboard/app.js", "/dashboard/history?span=10m", "/dashboard/events"):
    browser.driver.get(origin + path)
    expect(f"dashboard: {path} under a rebound name", 421,
           browser.run("return performance.getEntriesByType('navigation')[0].responseStatus"))
  expect("dashboard: a flush under a rebound name", 421, browser.driver.execute_async_script(
    "fetch('/dashboard/action', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})"
    ".then((response) => arguments[0](response.status), (error) => arguments[0](`${error}`))"))
  browser.forget()


def _serve(url: str) -> http.server.ThreadingHTTPServer:
  """Serves the attacker's page on a free port, from a thread."""
  scripts = {**ATTEMPTS, "reads itself": "read('/')"}
  attempts = ", ".join(f'"{what}": async () => ({script})' for what, script in scripts.items())
  page = PAGE.format(url=url, attempts=attempts).encode()

  class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every GET with the page."""

    def do_GET(self) -> None:
      """The page."""
      self.send_response(200)
      self.send_header("Content-Type", "text/html")
      self.end_headers()
      self.wfile.write(page)

    def log_message(self, *_) -> None:
      """Logs nothing."""

  server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
  threading.Thread(target=server.serve_forever, daemon=True).start()
  return server
