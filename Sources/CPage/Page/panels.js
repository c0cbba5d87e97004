// panels.js -- what needs no session: state, figures at a glance, load, providers, and the features that may be off.

import { OUTCOMES, clock, counted, daysText, durationText, forecast, forecastText, hitRatio, millisecondsText, number,
	percentText, rateText, ratio, total } from "./figures.js";
import { STATES, failingWords, stateWords } from "./words.js";
import { $, cellsOf, el, facts, nameNode, put, show, sync } from "./dom.js";

export const PROVIDER_COLUMNS = [["Provider, in order"], ["State", "7.5%"], ["History", "12%"], ["Server", "12%"],
	["Median now", "7.5%", "number"], ["Transfers", "7.5%", "number"], ["Failures", "7.5%", "number"],
	["Units today, UTC", "12%"], ["Forecast, by the last hour", "18%"]];
/** The top of each state in the history: the worse, the taller. */
const TOPS = { up: 9, down: 0, aside: 3, spent: 5 };
const gauge = (used, limit, unit = 1) => `${number(used / unit)} of ${
	number(limit / unit)}${unit > 1 ? "\u00a0KiB" : ""} (${percentText(ratio(used, limit))})`;

/** The state, last minute and forecast of each provider, with what `names` reports of it. */
export function providerFigures({ hour, live, names, now, states }) {
	const { list, end } = hour;
	const minute = hour.since(60);
	return ((live ?? hour.last)?.providers ?? []).map(({ name, state, units_per_day: limit, units_today: own }) => {
		const [rows, recent] = [hour.of(name), hour.of(name, minute)];
		let begin = list.length - 1;
		while (begin > 0 && rows[begin - 1]?.state === rows.at(-1)?.state) begin--;
		const fleet = new Map(Object.entries(now?.fleet?.units ?? {})).get(name);
		const since = list[begin] ? list[begin].time - list[begin].seconds : end;
		return {
			name, limit, fleet, state: states[state],
			transfers: total(recent, ["transfers"]) ?? 0, failures: total(recent, ["failures"]) ?? 0,
			since: begin > 0 ? `since ${clock(since)}` : `for ${durationText(end - since)} or longer`, units: fleet ?? own,
			cast: forecast(list.map(({ time }) => time), rows.map((each) => each?.units_today), limit, end, fleet),
			...names?.providers.find((provider) => provider.name === name),
		};
	});
}

export function drawState(view, providers) {
	const { hour, now, time, brokenAt } = view;
	const count = (names) => total(hour.since(60), names) ?? 0;
	// The oldest of the rows may have begun earlier.
	const servfail = Math.round(count(["servfail"]) * Math.min(1, 60 / (count(["seconds"]) || 60)));
	const words = stateWords(providers, count(["servfail"]), count(OUTCOMES));
	const problems = (view.names?.problems ?? []).map((text) => ["", text, "down"]);
	$("state").dataset.level = brokenAt ? "unknown" : words.level;
	put($("state-sentence"), (brokenAt ? `Unknown since ${clock(brokenAt, "second")}. Before: ` : "") + words.sentence);
	sync($("state-reasons"), [...words.reasons, ...problems], (reason) => reason.join(), ([name, text, state]) => ({
		node: el("li", name ? `${STATES[state]?.[1] ?? "?"} ` : "⚠ ", el("bdi", name), text) }), () => {});
	drawFailing(...failingWords(view.hasSession ? view.failing : null, servfail));
	put($("state-facts"), now ? `Version ${now.version} · running since ${clock(now.started, "day")}, ${
		durationText(time - now.started)}` + (now.encrypted ? ` · certificate: ${
		daysText(now.encrypted.certificate_end, time)}` : "") : "");
	return words;
}

function drawFailing(panel, text, name = "", reason = "") {
	const link = $("state-failing");
	put(link, text);
	if (panel) link.href = `#${panel}`; else link.removeAttribute("href");
	put($("state-name"), name, name);
	put($("state-reason"), reason, reason);
}

export function drawGlance({ hour, now, sums, latest, quantiles, spanText }, providers) {
	const over = `in the last ${spanText}`;
	const known = providers.filter((each) => each.units != null);
	const sum = (value) => known.length ? known.reduce((all, each) => all + value(each), 0) : null;
	const bound = known.filter((each) => each.cast.kind === "used_up").sort((a, b) => a.cast.at - b.cast.at)[0];
	const isKnown = known.length && known.every((each) => each.cast.kind !== "unknown");
	const day = !isKnown ? "too little data for a forecast" : forecastText(known.every((each) => each.cast.kind === "none")
		? known[0].cast : { kind: "end", units: sum((each) => each.cast.units) });
	const basis = hour.list.length ? hour.end - hour.list[0].time : 0;
	const young = isKnown && basis < 3500 ? `, by the last ${counted(Math.round(basis / 60), "minute")}` : "";
	facts("glance", [
		["Queries", `${rateText(latest?.rate)}\u00a0/s`,
			latest ? `in the last ${durationText(Math.round(latest.seconds))}` : ""],
		["Hit ratio", percentText(hitRatio(sums)), sums.queries ? over : `no queries ${over}`],
		["Slow misses", millisecondsText(quantiles.miss[1]),
			quantiles.miss[1] ? `the slowest 5\u00a0% took longer, ${over}` : `no misses ${over}`],
		["SERVFAIL", percentText(ratio(sums.servfail, sums.queries)), `${counted(sums.servfail, "response")} ${over}`],
		["Cost today", number(sum((each) => each.units)),
			`units${known.some((each) => each.fleet != null) ? " of all daemons" : ""} so far; ${day}${young}`
				+ (bound ? `; ${bound.name}: ${forecastText(bound.cast)}` : "")],
	]);
	if (!now) return;
	const { cache, refresh } = now;
	facts("load", [
		["Cached answers", cache ? gauge(cache.entries, cache.max_entries) : "off"],
		["Memory of the cache", cache ? gauge(cache.octets, cache.max_octets, 1024) : "off"],
		["Questions in flight", gauge(now.in_flight, now.in_flight_limit)], ["Clients waiting", number(now.waiting_clients)],
		["Joined a question in flight", number(sums.joined), over],
		["Queries", number(total([now.totals], OUTCOMES)), `since ${clock(now.started, "day")}`],
	]);
	const spent = (seconds) => total(hour.since(seconds), ["refreshes"]);
	const budget = (units, span) => units ? `budget ${counted(units, "unit")} ${span}` : "no budget";
	facts("refresh", !refresh ? [["Refreshing", "off"]] : [
		["Refreshing", counted(refresh.scheduled, "name"), "scheduled"],
		["In the last minute", counted(spent(60), "transfer"), budget(refresh.budget_per_minute, "a minute")],
		["In the last hour", counted(spent(3600), "transfer"), budget(refresh.budget_per_day, "in 24 h")],
		["In all", counted(refresh.transfers, "transfer"), `since ${clock(now.started, "day")}`],
		["Beyond the budget", number(refresh.over_budget), "not fetched in advance"],
	]);
}

/** A path for each state, so that height and colour both tell them apart. */
function drawHistory(paths, rows, provider, states) {
	const { list, end, span } = rows;
	const x = (moment) => (Math.max(0, 1 - (end - moment) / span) * 1000).toFixed(1);
	const shapes = {};
	for (let i = 0; i < list.length; i++) {
		const [state, from] = [states[provider[i]?.state], list[i].time - list[i].seconds];
		while (i + 1 < list.length && provider[i + 1]?.state === provider[i]?.state && !rows.isGap(i + 1)) i++;
		if (state) shapes[state] = `${shapes[state] ?? ""}M${x(from)} ${TOPS[state]}H${x(list[i].time)}V14H${x(from)}z`;
	}
	for (const state in paths) paths[state].setAttribute("d", shapes[state] ?? "");
}

function createProvider({ name }) {
	const cells = cellsOf(PROVIDER_COLUMNS);
	const shape = (parent, tag, attributes) => {
		const node = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
		for (const key in attributes) node.setAttribute(key, attributes[key]);
		return node;
	};
	const [place, mark, up, units] = [el("small"), el("small"), el("small"), el("span")];
	const [bar, history] = [el("i.bar", el("i")), el("div")];
	const svg = shape(history, "svg", { viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": true });
	const paths = {};
	for (const state in STATES) paths[state] = shape(svg, "path", { class: state });
	history.append(up);
	cells[0].append(el("div", place, " ", nameNode(name)), mark);
	cells[2].append(history);
	cells[7].append(el("div", units, bar));
	return { node: el("tr", { "data-provider": name }, ...cells), cells, paths, place, mark, up, units, bar };
}

export function drawProviders({ rows, states, hasSession }, providers, serving) {
	sync($("providers-rows"), providers, (each) => each.name, createProvider,
		({ node, cells, paths, place, mark, up, units, bar }, each) => {
		const own = rows.of(each.name);
		const sum = (field) => total(own, [field]);
		const known = total(rows.list.filter((_, i) => own[i]?.state != null), ["seconds"]);
		const [word, shape, meaning] = STATES[each.state] ?? ["unknown", "?", ""];
		const [transfers, failures] = [sum("transfers"), sum("failures")];
		node.dataset.state = each.state;
		put(place, `${providers.indexOf(each) + 1}.`);
		put(mark, serving.includes(each.name) ? "▶ serves now"
			: each.state === "up" && each.transfers > each.failures ? "▷ few of the answers" : "– does not serve");
		drawHistory(paths, rows, own, states);
		put(up, `up ${percentText(ratio(sum("up"), known))} of the time`);
		put(cells[1], `${shape} ${word}`, each.explanation ?? meaning);
		put(cells[3], each.server ?? "–", each.server ?? (hasSession ? "" : "needs a session"));
		put(cells[4], millisecondsText(own.at(-1)?.median_ms));
		put(cells[5], number(transfers));
		put(cells[6], number(failures) + (failures ? ` (${percentText(ratio(failures, transfers))})` : ""));
		put(units, number(each.units) + (each.limit ? ` of ${number(each.limit)}` : ", no limit")
			+ (each.fleet == null ? "" : ", by all daemons"));
		show(bar, each.limit);
		bar.firstChild.style.width = `${100 * Math.min(1, each.units / each.limit)}%`;
		bar.dataset.level = { spent: "bad", used_up: "warn" }[each.cast.kind] ?? "ok";
		put(cells[8], forecastText(each.cast));
	});
}

/** Fleet, ranking and encrypted listeners: [id, words, facts]. */
const FEATURES = [
	["fleet", "fleet", ({ used, degraded, members, hits, misses, adopted, units }, { names }) => [
		["Store", used ? degraded ? "used, degraded" : "used" : "not used", names?.fleet
			? `${names.fleet.store}: ${names.fleet.state}` : used && !degraded ? "" : "with a session State says why"],
		["Daemons", members == null ? "unknown" : number(members), members == null ? "the store does not say"
			: members > 1 ? "this one included" : "this one alone"],
		["Answers of other daemons", number(hits), `of ${counted(hits + misses, "lookup")}`],
		["Refreshes adopted", number(adopted)],
		...Object.entries(units ?? {}).map(([name, count]) => [`Units today, UTC, ${name}`, number(count), "all daemons"]),
	]],
	["ranking", "ranking", ({ answers, probes, failed, deferred, rearranged, problems }, { perMinute, hasSession }) => [
		["Answers measured", number(answers)], ["Probes a minute", rateText(perMinute((now) => now.ranking?.probes))],
		["Probes", number(probes), `${number(failed)} failed, ${number(deferred)} put off`],
		["Answers rearranged", number(rearranged)],
		["Measuring is hindered", problems ? "⚠ yes" : "no", !problems ? ""
			: hasSession ? "State says by what" : "with a session State says by what"],
	]],
	["encrypted", "encrypted listeners", (each, { perMinute, time }) => [
		["Connections open", number(each.open)],
		...["dot", "doh"].map((name) => [name === "dot" ? "Queries by DoT" : "Queries by DoH", number(each[name]),
			`${rateText(perMinute((now) => now.encrypted?.[name]))} a minute`]),
		["Handshakes", number(each.full + each.resumed), `${number(each.resumed)} resumed; ${number(each.failed)} failed`],
		["Refused", number(Object.values(each.refused).reduce((sum, count) => sum + count)), Object.entries(each.refused)
			.filter(([, count]) => count).map(([name, count]) => `${name} ${number(count)}`).join(", ")],
		["Displaced", number(each.displaced)],
		["Certificate", daysText(each.certificate_end, time), each.certificate_end
			? `until ${clock(each.certificate_end, "day")}` : ""],
	]],
];

export function drawFeatures(view) {
	if (!view.now) return;
	const off = [];
	for (const [id, words, rows] of FEATURES) {
		const value = view.now[id];
		show($(id), value);
		if (value) facts(id, rows(value, view)); else off.push(words);
	}
	put($("off"), off.length ? `Off by the configuration: ${off.join(", ")}.` : "");
}
