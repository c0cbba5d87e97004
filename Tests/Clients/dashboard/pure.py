"""pure.py -- the page's functions for sums, ratios, percentiles, forecasts and words, and its rows, with fixed samples."""

import json

from report import expect

from dashboard.browser import Browser, plain
from dashboard.scene import Scene

NOON = 1764504000  # 30 November 2025, 12:00 UTC
MIDNIGHT = 1764547200  # the next one

HOUR = "Array.from({length: 61}, (_, i) => NOON - 3600 + 60 * i)"
ENTRY = '{ttl_seconds: 40, refresh: {why: "%s", in_seconds: 31, missing_hits: %d}}'
P = '{name: "%s", state: "%s", since: "since 11:40 UTC", transfers: %d, failures: %d}'

# (what is checked, expression, expected value; a number may differ by 0.1 %)
CASES = [
  ("sum over columns and rows", 'f.total([{a: 1, b: 10}, {a: 2, b: null}, {a: null, b: 30}], ["a", "b"])', 43),
  ("sum where a provider was not configured", 'f.total([undefined, {a: 2}], ["a"])', 2),
  ("sum of nothing is unknown, not zero", 'f.total([{a: null}, {a: null}], ["a"])', None),
  ("ratio", "f.ratio(1, 4)", 0.25),
  ("ratio without a whole is unknown", "f.ratio(0, 0)", None),
  ("hit ratio: hits and stale over those, misses and overflow", "f.hitRatio({hit: 90, stale: 5, miss: 4, overflow: 1})",
   0.95),
  ("hit ratio without queries", "f.hitRatio({hit: null, stale: null, miss: null, overflow: null})", None),
  ("asked a provider", "f.askedText(470, 10)", "asked a provider: 1 of 47 queries"),
  ("asked a provider, few", "f.askedText(25, 10)", "asked a provider: 1 of 2.5 queries"),
  ("asked a provider, none", "f.askedText(12, 0)", "asked a provider: none of 12 queries"),
  ("asked a provider, no queries", "f.askedText(null, null)", "asked a provider: –"),
  ("percentiles of one row are its own", "f.percentiles([[10, 5, 20, 40]])", [5, 20, 40]),
  ("percentiles of equal rows are the same", "f.percentiles([[10, 5, 20, 40], [99, 5, 20, 40]])", [5, 20, 40]),
  ("rows without values do not count", "f.percentiles([[0, null, null, null], [7, 5, 20, 40]])", [5, 20, 40]),
  ("percentiles of nothing", "f.percentiles([])", [None, None, None]),
  ("the slow minority of many single values",
   "f.percentiles([...Array(96).fill([1, 10, 10, 10]), ...Array(4).fill([1, 900, 900, 900])])", [10, 10, 900]),
  ("a busy row outweighs a quiet one", "Math.round(f.percentiles([[10000, 10, 20, 30], [1, 900, 900, 900]])[1])", 20),
  # Forecasts: 61 rows of a minute until noon; midnight is 43,200 s away.
  ("forecast: no limit", f"f.forecast({HOUR}, {HOUR}.map((_, i) => 1000 + 10 * i), 0, NOON)",
   {"kind": "end", "units": 1600 + 43200 / 6, "midnight": MIDNIGHT}),
  ("forecast: limit not reached", f"f.forecast({HOUR}, {HOUR}.map((_, i) => 1000 + 10 * i), 9000, NOON)",
   {"kind": "end", "units": 8800, "midnight": MIDNIGHT}),
  ("forecast: limit reached at a time", f"f.forecast({HOUR}, {HOUR}.map((_, i) => 1000 + 10 * i), 2200, NOON)",
   {"kind": "used_up", "units": 2200, "at": NOON + 3600, "midnight": MIDNIGHT}),
  ("forecast: used up", f"f.forecast({HOUR}, {HOUR}.map(() => 2200), 2200, NOON)",
   {"kind": "spent", "units": 2200, "midnight": MIDNIGHT}),
  ("forecast: nothing is used", f"f.forecast({HOUR}, {HOUR}.map(() => 700), 2200, NOON)",
   {"kind": "end", "units": 700, "midnight": MIDNIGHT}),
  ("forecast: midnight within the hour",
   "f.forecast([0, 600, 1200, 1800].map((s) => MIDNIGHT - 900 + s), [5000, 5100, 40, 140], 0, MIDNIGHT + 900)",
   {"kind": "end", "units": 140 + 240 / 1800 * 85500, "midnight": MIDNIGHT + 86400}),
  ("forecast: too little data", "f.forecast([NOON - 120, NOON - 60, NOON], [1, 2, 3], 0, NOON)",
   {"kind": "unknown", "units": 3, "midnight": MIDNIGHT}),
  ("forecast: no data", "f.forecast([], [], 100, NOON)", {"kind": "unknown", "units": None, "midnight": MIDNIGHT}),
  ("forecast: used up is known without an hour", "f.forecast([NOON], [100], 100, NOON).kind", "spent"),
  ("forecast: rows before the last hour do not count",
   "f.forecast([NOON - 7200, NOON - 3000, NOON], [0, 600, 900], 0, NOON).units", 900 + 43200 / 10),
  ("forecast: a provider that was added",
   "f.forecast([NOON - 3000, NOON - 1800, NOON - 900, NOON], [null, 0, 90, 180], 0, NOON).units", 180 + 4320),
  ("forecast: a fleet uses twice as much", f"f.forecast({HOUR}, {HOUR}.map((_, i) => 1000 + 10 * i), 0, NOON, 3200).units",
   3200 + 43200 / 3),
  ("two significant digits", "[41234, 999, 7, 0].map(f.about)", [41000, 1000, 7, 0]),
  ("forecast in words: end", 'f.forecastText({kind: "end", units: 41234})', "about 41,000 by the end of the UTC day"),
  ("forecast in words: time", 'f.forecastText({kind: "used_up", at: NOON + 3601}).replace(/\\d\\d:\\d\\d.*/, "T")',
   "used up at about T"),
  ("forecast in words: unknown", 'f.forecastText({kind: "unknown"})', "too little data yet"),
  ("numbers", "[0, 1234567, null].map(f.number)", ["0", "1,234,567", "–"]),
  ("counted", '[f.counted(1, "day"), f.counted(0, "day"), f.counted(2, "reply", "replies")]',
   ["1 day", "0 days", "2 replies"]),
  ("rates", "[0, 0.001, 0.06, 12.34, 999.9, 1234.5, null].map(f.rateText)",
   ["0.0", "< 0.1", "0.1", "12.3", "999.9", "1,235", "–"]),
  ("percent, rounded down", "[0, 0.0004, 0.5, 0.99999, 1, null].map(f.percentText)",
   ["0.0 %", "< 0.1 %", "50.0 %", "99.9 %", "100.0 %", "–"]),
  ("a number and its unit stay in one line",
   '[f.percentText(0), f.millisecondsText(8), f.microsecondsText(8), f.durationText(60)].join("").includes(" ")', False),
  ("milliseconds", "[0.012, 0.5, 8.44, 84, 123.4, 1500, null].map(f.millisecondsText)",
   ["12 µs", "500 µs", "8.4 ms", "84.0 ms", "123 ms", "1.5 s", "–"]),
  ("microseconds", "[1.23, 12, 850, 1500, null].map(f.microsecondsText)", ["1.2 µs", "12 µs", "850 µs", "1.5 ms", "–"]),
  ("durations", "[0, 41.9, 60, 62, 3600, 3725, 90061, 172800, -5, null].map(f.durationText)",
   ["0 s", "41 s", "1 min", "1 min 2 s", "1 h", "1 h 2 min", "1 d 1 h", "2 d", "0 s", "–"]),
  ("days left", "[f.daysText(NOON + 86400 * 12.5, NOON), f.daysText(NOON + 86400, NOON), f.daysText(null, NOON)]",
   ["12 days left", "1 day left", "unknown"]),
  ("clock with its zone",
   '[["minute", "UTC"], ["second", "Asia/Shanghai"], ["day", "UTC"], ["tick", "UTC"]].map((form) => f.clock(NOON, ...form))'
   '.concat(f.clock(null))',
   ["12:00 UTC", "20:00:00 GMT+8", "30 Nov, 12:00 UTC", "12:00", "–"]),
  # Words
  ("state: all up", f'w.stateWords([{P % ("alidns", "up", 9, 0)}], 0, 100)',
   {"level": "ok", "sentence": "Resolving by alidns.", "reasons": []}),
  ("state: the first is down", f'w.stateWords([{P % ("alidns", "down", 0, 0)}, {P % ("tencent", "up", 9, 0)}], 0, 100)',
   {"level": "warn", "sentence": "Resolving by tencent; alidns is down.",
    "reasons": [["alidns", ", the first provider: gives no answers or cannot be reached, since 11:40 UTC", "down"]]}),
  ("state: none is up", f'w.stateWords([{P % ("a", "down", 0, 0)}, {P % ("b", "spent", 0, 0)}], 0, 100).sentence',
   "No provider answers; a is down; b has no units left today."),
  ("state: none is up is bad", f'w.stateWords([{P % ("a", "aside", 0, 0)}], 0, 100).level', "bad"),
  ("state: the marked ones serve", f'w.stateWords([{P % ("a", "up", 50, 1)}, {P % ("b", "up", 1, 0)}], 0, 9).serving', ["a"]),
  ("state: two serve",
   f'w.stateWords([{P % ("a", "up", 50, 1)}, {P % ("b", "up", 30, 0)}, {P % ("c", "up", 1, 0)}], 0, 100).sentence',
   "Resolving by a and b."),
  ("state: the first is up, but rules lead elsewhere",
   f'w.stateWords([{P % ("a", "up", 0, 0)}, {P % ("b", "up", 34, 0)}], 0, 9).reasons[0][1]',
   ", the first provider: 0 of the last minute's 34 answers: rules lead to the others"),
  ("state: SERVFAIL", f'w.stateWords([{P % ("a", "up", 5, 0)}], 20, 100)',
   {"level": "bad", "sentence": "Resolving by a; 20.0 % of the last minute's queries failed (SERVFAIL).", "reasons": []}),
  ("names that fail: the first one with its reason",
   'w.failingWords([{name: "a.", type: "A", reason: "timed out"}, {}], 9)',
   ["failing", "2 names failed in the last minute:", "a.", "A: timed out"]),
  ("names that fail: none, and not known yet", "[[], undefined].map((failing) => w.failingWords(failing, 9))",
   [[None, "No name failed in the last minute."], [None, "Waiting for the report of names that fail."]]),
  ("names that fail: the command without a session", "[1, 0].map((servfail) => w.failingWords(null, servfail))",
   [["signin", "1 query failed (SERVFAIL) in the last minute:", "httpdnsd dashboard", "shows which names, and why"],
    [None, "No query failed (SERVFAIL) in the last minute."]]),
  ("state: no provider", "w.stateWords([], 0, 0).level", "unknown"),
  ("fetched again", f"w.refreshWords({ENTRY % ('hot', 0)}, 1)", "in 30 s"),
  ("fetched again if asked", f"w.refreshWords({ENTRY % ('if_hit', 2)}, 1)", "in 30 s if asked 2 more times"),
  ("fetched again, kept", f"w.refreshWords({ENTRY % ('kept', 0)}, 40)", "now, refresh.keep"),
  ("not cached, not in advance, in flight",
   f"[w.refreshWords(null, 0), w.refreshWords({{refresh: null}}, 0), w.refreshWords({ENTRY % ('under_way', 0)}, 0)]",
   ["not in the cache", "not in advance", "being fetched"]),
  ("flush with a store",
   'w.resultLines({do: "flush", all: true}, {entries: 12, failures: 0, not_listed: 1, notified: 2, cannot_read: 1}, true)',
   ["removed: 12 cached answers, 0 remembered failures, 1 “not listed” reply", "notified: 2 other daemons of the fleet",
    "⚠ not read by 1 more daemon with a different secret (fleet.secret_file): it keeps its answers"]),
  ("flush without a store", 'w.resultLines({do: "flush"}, {entries: 1, failures: 0, not_listed: 0}, false).length', 1),
  ("the question before a flush of everything says whom it reaches",
   "[null, {members: 1}, {members: 2}, {members: null}].map(w.fleetWords)",
   ["", ", here and by 0 other daemons of the fleet", ", here and by 1 other daemon of the fleet",
    ", here and by the other daemons of the fleet"]),
  ("report bad", 'w.resultLines({do: "report-bad", address: "192.0.2.2"}, {moved: 1, already: 0, alone: 0})',
   ["192.0.2.2 is now last in 1 answer"]),
  # Rows: samples merge into minutes, old rows leave, a new provider has nulls before.
  ("samples merge", "merged(60, 3600, 60)", [2, 60, 60, 60]),
  ("samples are kept", "merged(0, 600, 400).slice(0, 1)", [300]),
  ("a minute stays within its span", "merged(60, 3600, 4000)[0]", 61),
  ("a sample that comes twice counts once, also a little later by another clock",
   "rowsOf(sample(NOON, 1), sample(NOON + 2, 1), sample(NOON + 2, 1), sample(NOON + 2.4, 1)).list.map(({time}) => time)",
   [NOON, NOON + 2]),
  ("a gap is found",
   "(() => { const r = rowsOf(sample(NOON, 1), sample(NOON + 20, 1)); return [r.isGap(0), r.isGap(1)]; })()", [False, True]),
  ("gaps: before the first row, between two, and without any row",
   "[rowsOf(sample(NOON, 1), sample(NOON + 20, 1)).gaps(NOON + 20), rowsOf().gaps(NOON)]",
   [[[NOON - 580, NOON - 2, 0], [NOON, NOON + 18, 1]], [[NOON - 600, NOON, 0]]]),
  ("a provider of a reload",
   'rowsOf(sample(NOON, 1), {...sample(NOON + 2, 1), providers: [{name: "b", state: 1}]}).of("b")'
   '.map((each) => each?.state ?? null)', [None, 1]),
  ("rows of a history",
   'rows.samplesOf({columns: {time: [1, 2], hit: [3, null]}, providers: [{name: "a", units_per_day: 9, state: [0, 1]}]})',
   [{"time": 1, "hit": 3, "providers": [{"name": "a", "units_per_day": 9, "state": 0}]},
    {"time": 2, "hit": None, "providers": [{"name": "a", "units_per_day": 9, "state": 1}]}]),
  ("events are parsed across pieces", """(async () => {
      const texts = ["event: sam", "ple\\nid: 7\\ndata: {\\"a\\":1}\\n", ":\\n\\n:\\nevent: notice\\r\\ndata: {}\\r\\n\\r\\n"];
      const pieces = texts.map((text) => new TextEncoder().encode(text));
      const body = new ReadableStream({ pull(c) { pieces.length ? c.enqueue(pieces.shift()) : c.close(); } });
      const events = []; await stream.readEvents(body, (...event) => events.push(event), () => {}); return events; })()""",
   [["sample", {"a": 1}, "7"], ["notice", {}, None]]),
  ("marks of direction are replaced", 'stream.parse("[\\"a\\\\u202eb\\", \\"\\u2066c\\"]")', ["a\ufffdb", "\ufffdc"]),
]

PRELUDE = """
const done = arguments[0], NOON = %d, MIDNIGHT = %d;
const provider = { name: "a", state: 0, transfers: 1, failures: 0, units_today: 1 };
const sample = (time, hit) => ({ time, seconds: 2, hit, stale: 0, miss: 0, providers: [provider] });
(async () => {
  const names = ["figures", "words", "rows", "stream"];
  const [f, w, rows, stream] = await Promise.all(names.map((name) => import(`/dashboard/${name}.js`)));
  const rowsOf = (...samples) => {
    const r = new rows.Rows(600, 0);
    samples.forEach((each) => r.add(each));
    return r;
  };
  const merged = (grain, span, count) => {
    const r = new rows.Rows(span, grain);
    for (let i = 0; i < count; i++) r.add(sample(NOON + 2 + 2 * i, 1));
    return [r.list.length, 2 * r.list[0].hit, r.list[0].seconds, r.list[0].providers[0].up];
  };
  const results = [];
  for (const test of [%s]) try { results.push(await test()); } catch (error) { results.push("threw " + error); }
  done(JSON.stringify(results));
})();
"""


def check_functions(scene: Scene, browser: Browser) -> None:
  """Imports the modules as the page does, and has them compute."""
  browser.open(scene.url)
  script = PRELUDE % (NOON, MIDNIGHT, ", ".join(f"() => ({expression})" for _, expression, _ in CASES))
  for (what, _, expected), found in zip(CASES, json.loads(browser.driver.execute_async_script(script)), strict=True):
    expect(f"dashboard: {what}", expected, expected if _agrees(found, expected) else found)
  browser.expect_quiet("pure functions")


def _agrees(found, expected) -> bool:
  """Whether a result is the expected one; a number may differ by a thousandth, and objects may have more members."""
  if isinstance(expected, str):
    return isinstance(found, str) and plain(found) == expected
  if isinstance(expected, bool) or expected is None:
    return found == expected
  if isinstance(expected, (int, float)):
    return isinstance(found, (int, float)) and abs(found - expected) <= abs(expected) * 0.001
  if isinstance(expected, list):
    return isinstance(found, list) and len(found) == len(expected) and all(map(_agrees, found, expected))
  return isinstance(found, dict) and all(_agrees(found.get(key), value) for key, value in expected.items())
