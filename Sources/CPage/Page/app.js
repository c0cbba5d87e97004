// app.js -- the page: builds the panels, gets history and stream, and draws once a sample.

import { OUTCOMES, askedText, clock, counted, hitRatio, microsecondsText, millisecondsText, percentText, rateText,
	total } from "./figures.js";
import { $, el, panel, put, show, table } from "./dom.js";
import { Plot } from "./plots.js";
import { Rows, samplesOf } from "./rows.js";
import { Stream, parse, sentenceOf } from "./stream.js";
import { canSignIn, session } from "./session.js";
import { PROVIDER_COLUMNS, drawFeatures, drawGlance, drawProviders, drawState, providerFigures } from "./panels.js";

const SPANS = { "10m": ["10\u00a0min", new Rows(600, 0)], "1h": ["1\u00a0h", new Rows(3600, 60)],
	"24h": ["24\u00a0h", new Rows(86400, 300)] };
/** In milliseconds. */
const [LONGEST_VISIT, SILENCE, LONGEST_BLANK] = [12 * 3600 * 1000, 7000, 1500];
const TURNS = ["queries", "ratio", "queries", "hits", "queries", "misses"];
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const plots = {};
let [span, lastID, loading, isFirst, past, requests, names] = ["10m", null, null, true, [], 0, null];

/** What the panels draw. */
const view = {
	states: ["up", "down", "aside", "spent"], hour: SPANS["1h"][1], now: null, live: null, names: null, brokenAt: null,
	get rows() { return SPANS[span][1]; },
	get spanText() { return SPANS[span][0]; },
	get time() { return this.live?.time ?? this.now?.time; },
	get hasSession() { return !!session.current; },
	/** The names that failed in the last minute; undefined before the first report. */
	get failing() { return this.names?.failing.filter((each) => each.age_seconds < 60)
		.sort((a, b) => b.count - a.count); },
	get elapsed() { return (Date.now() - this.namesAt) / 1000; },
	/** The rate of a counter of `now` over about a minute; null without two values. */
	perMinute(value) {
		const [first, last] = [past[0], past.at(-1)];
		return past.length < 2 || value(first) == null ? null : (value(last) - value(first)) / (last.time - first.time) * 60;
	},
};

// MARK: - Building

function build() {
	const plot = (id) => (plots[id] = new Plot(id)).nodes;
	const list = (id, kind = "facts") => el(`ul.${kind}`, { id: `${id}-facts` });
	const code = (text) => el("code", text);
	const panels = [
		["state", "State", ".wide", "",
			el("p", { id: "state-sentence" }, "Connecting …"), el("ul", { id: "state-reasons" }),
			el("p", { id: "state-failure" }, el("a", { id: "state-failing" }), " ", el("bdi.name", { id: "state-name" }), " ",
				el("span", { id: "state-reason" })), el("p.soft", { id: "state-facts" })],
		["glance", "At a glance", ".wide", "", list("glance", "tiles")],
		["queries", "Queries a second", ".double", "span", ...plot("queries")],
		["ratio", "Hit ratio", "", "span", ...plot("ratio")], ["hits", "Latency of hits", "", "span", ...plot("hits")],
		["misses", "Latency of misses", "", "span", ...plot("misses")], ["load", "Cache and load", "", "now", list("load")],
		["providers", "Providers", ".wide", "span", table("providers", PROVIDER_COLUMNS), list("refresh", "tiles")],
		["signin", "Names, live queries, actions", ".wide", "",
			el("p", { id: "signin-text" }), el("p", { id: "signin-how" })],
		["fleet", "Fleet", "", "start", list("fleet")], ["ranking", "Ranking", "", "start", list("ranking")],
		["encrypted", "Encrypted listeners", "", "start", list("encrypted")],
	];
	$("main").append(...panels.map((parts) => panel(...parts)));
	for (const id in SPANS) {
		const input = el("input", { type: "radio", name: "span", id: `span-${id}`, change: () => {
			span = id;
			load(id).catch(() => {});
		} });
		input.checked = id === span;
		$("span").append(el("label", input, el("span", SPANS[id][0])));
	}
	$("signin-how").append(...canSignIn ? ["Run "]
		: ["Signing in works by loopback or HTTPS only, so that no token crosses a network in clear. Run ",
			code(`ssh -L 9353:127.0.0.1:9353 ${location.hostname}`), " and there "],
	code("httpdnsd dashboard"), canSignIn ? " on the daemon's machine" : "", " and open the address that it prints.");
	setTimeout(reveal, LONGEST_BLANK);
}

/** The page appears as a whole, so that no panel moves another one while figures come; empty if they do not. */
function reveal() {
	for (const id of ["top", "main", "foot"]) show($(id), true);
}

function showSession() {
	const { hasSession } = view;
	show($("sign-out"), hasSession);
	show($("signin"), !hasSession);
	put($("session-text"), hasSession ? `Signed in until ${clock(session.current.ends, "day")}` : "Not signed in");
	if (!hasSession) view.names = null;
	if (hasSession || names) withNames((module) => module.showSession(view));
}

/** Calls `use` with what needs a session, which comes with the first one: a visit without needs fewer octets. */
async function withNames(use) {
	const module = await import("./names.js").catch(() => null);
	// The stream is broken, too, and its next beginning tries again.
	if (!module) return;
	if (!names) module.begin(view);
	names = module;
	use(module);
	schedule(true);
}

async function signIn() {
	const { current } = session;
	const text = await session.signIn();
	if (session.current !== current) session.changed(text); else if (text) refuse(text);
}

/** Says why there is no session, or no new one. */
function refuse(text) {
	if (!view.hasSession) put($("signin-text"), text);
	else if (text) {
		withNames(({ report }) => report("Signing in failed", [`⚠ ${text}`, "The session of this page goes on."]));
	}
}

// MARK: - Data

async function load(id) {
	const rows = SPANS[id][1];
	if (rows.isLoaded) return schedule(true);
	const request = rows.request = ++requests;
	const response = await fetch(`/dashboard/history?span=${id}`);
	if (!response.ok) throw new Error(await sentenceOf(response));
	const history = parse(await response.text());
	// A later request is on its way, or the rows were forgotten.
	if (rows.request !== request) return;
	// The shortest rows have the samples that came meanwhile.
	const { list } = SPANS["10m"][1];
	rows.clear();
	for (const sample of [...samplesOf(history), ...list]) rows.add(sample);
	rows.isLoaded = true;
	lastID ??= history.number || null;
	view.now ??= history.now;
	view.states = history.states;
	schedule(true);
}

/** Forgets rows that are another daemon's, or whose times were those of another clock. */
function forget() {
	for (const [, rows] of Object.values(SPANS)) {
		rows.clear();
		rows.request = null;
	}
	past = [];
	reload();
}

/** Loads what is shown again, soon and once. */
function reload() {
	loading ??= setTimeout(async () => {
		loading = null;
		for (const id in SPANS) SPANS[id][1].isLoaded = false;
		try {
			for (const id of new Set(["10m", "1h", span])) await load(id);
		} catch { /* The stream says so. */ }
	}, 500);
}

function take(sample, id) {
	const { now } = sample;
	if (now) {
		if (view.now && view.now.started !== now.started) forget();
		view.now = now;
		past = [...past.filter(({ time }) => time > now.time - 62), now];
	}
	const isUrgent = isFirst;
	// After a break longer than the daemon's ring.
	if (isFirst && sample.time - sample.seconds > SPANS["10m"][1].end + 1) reload();
	isFirst = false;
	lastID = id;
	if (view.brokenAt) show($("banner"), false);
	document.body.classList.remove("old");
	Object.assign(view, { live: sample, brokenAt: null });
	for (const [, rows] of Object.values(SPANS)) rows.add(sample);
	schedule(isUrgent);
}

const stream = new Stream({
	request: () => ["/dashboard/events", { ...session.headers, ...(lastID && { "Last-Event-ID": lastID }) }],
	opened() {
		isFirst = true;
		if (!view.hour.isLoaded) reload();
		if (view.hasSession && !names) showSession();
	},
	broken: (sentence, seconds) => stop(`, trying again in ${seconds} s: ${sentence}`),
	refused(status, sentence) {
		if (status !== 401) return false;
		// Forgets the token and connects again without it, once.
		if (view.hasSession) session.end(); else stop(`: ${sentence}`);
		return true;
	},
	event(type, value, id) {
		if (type === "sample") return take(value, id);
		const isUrgent = type === "names" && !view.names;
		if (type === "names") Object.assign(view, { names: value, namesAt: Date.now() });
		if (type === "notice" && value.history) forget();
		if (type === "notice" && !value.again) {
			stream.stop();
			stop(`: ${value.text}`);
		} else if (type === "notice") banner(value.text);
		schedule(isUrgent);
	},
}, SILENCE);

/** Says that the values are old. */
function stop(text) {
	view.brokenAt ??= view.time ?? Date.now() / 1000;
	banner(`No data since ${clock(view.brokenAt, "second")}${text}`);
	document.body.classList.add("old");
	schedule(true);
}

function banner(text) {
	put($("banner"), text);
	show($("banner"), true);
	setTimeout(() => show($("banner"), view.brokenAt), 10000);
}

// MARK: - Drawing

let [timer, drawnAt, spokenAt, isWhole, turn] = [null, 0, Date.now() - 8000, true, 0];

/** Draws soon; `isUrgent`: also with reduced motion, and all plots. */
function schedule(isUrgent) {
	if (isUrgent) [timer, isWhole] = [clearTimeout(timer) ?? null, true];
	timer ??= setTimeout(() => requestAnimationFrame(draw), calm.matches && !isUrgent
		? Math.max(0, drawnAt + 10000 - Date.now()) : 0);
}

function draw() {
	[timer, drawnAt] = [null, Date.now()];
	const { now, rows, spanText, time } = view;
	const sum = (names) => total(rows.list, names);
	const sums = Object.fromEntries([...OUTCOMES, "servfail", "joined", "questions"].map((name) => [name, sum([name])]));
	sums.queries = sum(OUTCOMES);
	const latest = view.live && { rate: total([view.live], OUTCOMES) / view.live.seconds, seconds: view.live.seconds };
	Object.assign(view, { sums, latest, quantiles: { hit: rows.percentiles("hit"), miss: rows.percentiles("miss") } });
	const providers = providerFigures(view);
	const words = drawState(view, providers);
	drawGlance(view, providers);
	const slow = (noun, [half, most, all], text) => half == null ? `No ${noun} in the last ${spanText}.`
		: `Half of the ${noun} take at most ${text(half)}; 1 in 20 takes longer than ${text(most)}, `
			+ `1 in 100 longer than ${text(all)}.`;
	const captions = {
		queries: `${rateText(latest?.rate)} queries a second ${view.brokenAt ? "before" : "now"}; `
			+ `${counted(sums.servfail, "SERVFAIL response")} in the last ${spanText}.`,
		ratio: !sums.queries ? `No queries in the last ${spanText}.`
			: `${percentText(hitRatio(sums))} of the last ${spanText}; ${askedText(sums.queries, sums.questions)}.`,
		hits: slow("hits", view.quantiles.hit, microsecondsText),
		misses: slow("misses", view.quantiles.miss, millisecondsText),
	};
	// Plots take turns, so that a sample costs little.
	turn = (turn + 1) % TURNS.length;
	for (const id in plots) plots[id].draw(rows, rows.end ?? time, captions[id], isWhole || id === TURNS[turn]);
	isWhole = false;
	drawProviders(view, providers, words.serving);
	drawFeatures(view);
	if (view.hasSession) names?.drawNames(view);
	const counts = `${now?.fleet ? "this daemon " : ""}counts since ${clock(now?.started, "day")}`;
	const spans = { span: `last ${spanText}; ${counts}`, now: `now; ${counts}`, start: counts,
		names: `updated every 10 s; ${counts}`, minute: `last 1 min; ${counts}` };
	for (const node of document.querySelectorAll(".span")) put(node, now && spans[node.dataset.span] || "");
	if (view.brokenAt || view.live && (view.names && names || !view.hasSession)) reveal();
	document.title = `${words.level === "ok" ? "" : "! "}httpdnsd`;
	if (Date.now() - spokenAt > 10000) {
		spokenAt = Date.now();
		put($("spoken"), view.brokenAt ? $("banner").textContent : words.sentence);
	}
}

// MARK: - Beginning

session.load();
build();
$("sign-out").addEventListener("click", () => session.signOut());
document.addEventListener("visibilitychange", () => {
	names?.live.hide(document.hidden);
	if (document.hidden) stream.stop(); else stream.start();
});
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
	matchMedia(query).addEventListener("change", () => Object.values(plots).forEach((plot) => plot.colour()));
}
setTimeout(() => {
	stream.start = () => {};
	stream.stop();
	names?.live.stop("");
	stop(": the page has been open for 12 h; load it again");
}, LONGEST_VISIT);
showSession();
await signIn();
showSession();
session.changed = (text) => {
	showSession();
	refuse(text);
	if (!document.hidden) stream.start();
};
addEventListener("hashchange", signIn);
for (const id of ["10m", "1h"]) await load(id).catch(() => {});
if (!document.hidden) stream.start();
