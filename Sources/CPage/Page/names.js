// names.js -- what needs a session: busy and failing names, actions and their results, live queries.

import { clock, counted, durationText, number, percentText, ratio } from "./figures.js";
import { fleetWords, refreshWords, resultLines } from "./words.js";
import { $, cellsOf, el, nameNode, panel, put, show, sync, table } from "./dom.js";
import { session } from "./session.js";
import { Stream } from "./stream.js";

const NAME_COLUMNS = [["Name", "32%"], ["Queries", "", "number"], ["Hit ratio", "", "number"],
	["TTL left", "", "number"], ["Fetched again", "18%"], ["Provider"], ["Actions", "11rem"]];
const FAILING_COLUMNS = [["Name", "32%"], ["Failed in all", "", "number"], ["Last", "", "number"],
	["Reason", "48%", "bad"]];
const LIVE_COLUMNS = [["Time", "6rem"], ["Client"], ["Name"], ["Outcome", "9%"], ["Provider", "9%"],
	["RCODE", "9%"], ["Took", "9%"], ["Reason", "22%"]];
const FEW = 10;
const MOST_LINES = 200;
/** The daemon says something every ten seconds, if only that it is there. */
const SILENCE = 25000;
let isLong = false;

/** Builds the panels, once. */
export function begin(view) {
	const name = (id) => el("label", "Name ",
		el("input", { id, maxlength: 1004, autocomplete: "off", spellcheck: false }));
	const check = (id, text) => el("label", el("input", { id, type: "checkbox" }), text);
	const button = (id, text, kind = "") => el(`button${kind}`, { id, type: "button" }, text);
	const empty = (id) => el("p.soft", { id });
	$("signin").before(
		panel("failing", "Failing names", ".wide", "minute", table("failing", FAILING_COLUMNS), empty("failing-empty")),
		panel("names", "Names", ".wide", "names",
			el("form", name("action-name"), button("action-refresh", "Refresh"), button("action-flush", "Flush"),
				check("action-below", " flush names below it, too"), button("action-all", "Flush everything …", ".danger")),
			table("names", NAME_COLUMNS), empty("names-empty"), button("names-more", "")),
		panel("live", "Live queries", ".wide", "",
			el("form", button("live-button", "Start"), name("live-name"), check("live-failed", " failed only")),
			empty("live-text"),
			el("div.scroll", { tabindex: 0, role: "region", "aria-label": "The last 200 queries, newest first" },
				table("live", LIVE_COLUMNS))));
	bindActions(view);
	live.bind();
}

/** Shows the panels of a session; without one nothing of it stays. */
export function showSession(view) {
	const mayTail = session.current?.may_tail;
	for (const id of ["names", "failing", "live"]) show($(id), view.hasSession);
	if (!view.hasSession) {
		drawNames(view);
		live.clear();
		for (const id of ["result-lines", "result-title"]) $(id).replaceChildren();
		show($("result"), false);
		$("confirm").close();
	}
	live.stop(mayTail ? "Off. Live queries are personal data; the log names who watches."
		: "Not with this session. Begin one by sudo httpdnsd dashboard, or let all sessions watch by control.tail = true.");
	$("live-button").disabled = !mayTail;
}

/** Shows a result until it is closed. */
export function report(title, lines) {
	$("result").dataset.level = lines.join().includes("⚠") ? "warn" : "ok";
	put($("result-title"), `${title}, ${clock(Date.now() / 1000, "second")}`);
	$("result-lines").replaceChildren(...lines.map((line) => el("li", line)));
	show($("result"), true);
}

async function act(title, body, view, button) {
	button.disabled = true;
	const [result, problem] = await session.act(body);
	button.disabled = false;
	// Nothing of a session stays when it ends.
	if (view.hasSession) report(title, result ? resultLines(body, result, view.now?.fleet) : [`⚠ ${problem}`]);
}

const button = (text, label, view, title, body) =>
	el("button", { type: "button", "aria-label": label, click: ({ target }) => act(title, body, view, target) }, text);

const nameCell = ({ name, type }, ...more) => el("div", nameNode(name), " ", el("small", type), ...more);
const keyOf = ({ name, type }) => `${name} ${type}`;

function createName(view, { name, type }) {
	const cells = cellsOf(NAME_COLUMNS);
	const [summary, list] = [el("summary"), el("ol")];
	const details = el("details", { hidden: "" }, summary, list);
	cells[0].append(nameCell({ name, type }, details));
	cells[6].append(el("div", button("Refresh", `Refresh ${name}`, view, `Refreshed ${name}`, { do: "refresh", name }),
		" ", button("Flush", `Flush ${name}`, view, `Flushed ${name}`, { do: "flush", name, below: false })));
	return { node: el("tr", { "data-name": name, "data-type": type }, ...cells), cells, details, summary, list };
}

export function drawNames(view) {
	const { names, elapsed } = view;
	const all = names?.names ?? [];
	sync($("names-rows"), isLong ? all : all.slice(0, FEW), keyOf, (each) => createName(view, each),
		({ cells, details, summary, list }, { name, queries, hits, entry }) => {
			const left = entry && Math.ceil(entry.ttl_seconds - elapsed);
			put(cells[1], number(queries));
			put(cells[2], percentText(ratio(hits, queries)));
			put(cells[3], !entry ? "–" : left > 0 ? durationText(left) : "expired, stale");
			put(cells[4], refreshWords(entry, elapsed));
			put(cells[5], entry ? entry.source + (entry.rcode === "NOERROR" ? "" : `, ${entry.rcode}`) : "–");
			const addresses = view.now?.ranking && entry?.addresses || [];
			show(details, addresses.length);
			put(summary, counted(addresses.length, "address", "addresses"));
			sync(list, addresses, (each) => each.address, ({ address }) => {
				const text = el("small");
				return { text, node: el("li", el("code", address), text,
					button("Report bad", `Report ${address} bad`, view, `Reported ${address} of ${name}`,
						{ do: "report-bad", name, address })) };
			}, (row, each) => put(row.text, each.text ?? "not measured"));
		});
	put($("names-empty"), !names ? "Waiting for the first report." : all.length ? "" : "No name was asked for yet.");
	show($("names-more"), all.length > FEW);
	put($("names-more"), isLong ? `Show the busiest ${FEW}` : `Show all ${all.length}`);
	const failing = view.failing ?? [];
	put($("failing-empty"), names && !failing.length ? "No name failed in the last minute." : "");
	show($("failing-list"), failing.length);
	sync($("failing-rows"), failing, keyOf, (each) => {
		const cells = cellsOf(FAILING_COLUMNS);
		cells[0].append(nameCell(each));
		return { node: el("tr", ...cells), cells };
	}, ({ cells }, each) => {
		put(cells[1], `${number(each.count)}\u00a0×`);
		put(cells[2], `${durationText(each.age_seconds + elapsed)} ago`);
		put(cells[3], each.reason);
	});
}

function bindActions(view) {
	const on = (id, listen) => $(id).addEventListener("click", listen);
	const named = (title, bodyOf) => ({ target }) => {
		const name = $("action-name").value.trim();
		const body = bodyOf(name);
		if (name) act(`${title} ${name}${body.below ? " and names below it" : ""}`, body, view, target);
		else $("action-name").focus();
	};
	on("action-refresh", named("Refreshed", (name) => ({ do: "refresh", name })));
	on("action-flush", named("Flushed", (name) => ({ do: "flush", name, below: $("action-below").checked })));
	on("action-all", () => {
		put($("confirm-text"), `All ${number(view.now?.cache?.entries)} cached answers are removed${
			fleetWords(view.now?.fleet)}. Names are asked for again, which providers charge for.`);
		$("confirm").showModal();
	});
	on("confirm-cancel", () => $("confirm").close());
	on("confirm-flush", () => {
		$("confirm").close();
		act("Flushed everything", { do: "flush", all: true }, view, $("action-all"));
	});
	on("result-close", () => show($("result"), false));
	on("names-more", () => {
		isLong = !isLong;
		drawNames(view);
	});
	for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
}

/** Queries as they are answered: off until the button is pressed; without a connection while the page is hidden. */
export const live = {
	isOn: false,
	lines: [],

	bind() {
		$("live-button").addEventListener("click", () => this.isOn ? this.stop("Stopped.") : this.start());
		for (const id of ["live-name", "live-failed"]) $(id).addEventListener("change", () => {
			this.clear();
			if (this.isOn) this.start();
		});
	},

	clear() {
		this.lines = [];
		$("live-rows").replaceChildren();
	},

	start() {
		this.isOn = true;
		put($("live-button"), "Stop");
		this.stream.start();
	},

	stop(text) {
		this.isOn = false;
		this.stream.stop();
		put($("live-button"), "Start");
		put($("live-text"), text);
	},

	hide(isHidden) {
		if (this.isOn) this.stream[isHidden ? "stop" : "start"]();
	},

	stream: new Stream({
		request() {
			const name = $("live-name").value.trim();
			const query = [name && `name=${encodeURIComponent(name)}`, $("live-failed").checked && "failed"];
			return [`/dashboard/queries?${query.filter(Boolean).join("&")}`, session.headers];
		},
		opened() {
			put($("live-text"), "Queries appear within a second.");
			if ($("live-rows").firstChild) live.add({ text: `no data until ${clock(Date.now() / 1000, "second")}` });
		},
		broken: (sentence, seconds) => put($("live-text"), `No data, trying again in ${seconds} s: ${sentence}`),
		refused(status, sentence) {
			if (status === 401) session.end(); else live.stop(sentence);
			return true;
		},
		event(type, value) {
			if (type === "notice") {
				if (value.again) put($("live-text"), value.text); else live.stop(value.text);
				return;
			}
			live.add(value.left_out ? { text: `${number(value.left_out)} queries left out` } : value);
		},
	}, SILENCE),

	add(line) {
		this.lines = [...this.lines.slice(1 - MOST_LINES), line];
		this.timer ??= setTimeout(this.draw, 250);
	},

	draw() {
		const body = $("live-rows");
		const small = (text) => el("small", ` ${text ?? ""}`);
		body.prepend(...live.lines.reverse().map((line) => line.text
			? el("tr", el("td", { colspan: 8 }, line.text))
			: el("tr", { "data-failed": line.reason && "" }, ...[
				[clock(Date.parse(line.time) / 1000, "second").split(" ")[0]], [el("bdi", line.client), small(line.transport)],
				[nameNode(line.name), small(line.type)], [line.outcome],
				[line.provider ?? (line.rule ? `rule ${line.rule}` : "–")],
				[line.rcode ?? "–"], [line.ms ? `${line.ms}\u00a0ms` : "–"], [line.reason ?? ""],
			].map((parts, i) => el("td", { "data-label": LIVE_COLUMNS[i][0], title: i > 3 ? parts[0] : null }, ...parts)))));
		while (body.children.length > MOST_LINES) body.lastChild.remove();
		[live.lines, live.timer] = [[], null];
	},
};
