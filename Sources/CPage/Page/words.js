// words.js -- pure functions: what is the case, as sentences.

import { counted, durationText, number, percentText } from "./figures.js";

/** Word, shape, meaning and predicate of each state, in the words of `httpdnsd providers`. */
export const STATES = {
	up: ["up", "●", "in use", "is up"],
	down: ["down", "✕", "gives no answers or cannot be reached", "is down"],
	aside: ["pausing", "‖", "does not serve this account, or asked for fewer requests", "is pausing"],
	spent: ["no units", "∅", "units_per_day are used up until 00:00 UTC", "has no units left today"],
};

const list = (names) => names.length > 4 ? `${names.length} providers`
	: names.length < 3 ? names.join(" and ") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/**
 * The state as {level: ok | warn | bad | unknown, sentence, reasons: [[name, what follows, state]], serving: [name]}.
 * `providers`, in the order of the configuration: {name, state, since, transfers, failures, explanation}, with the
 * counts of the last minute; `servfail` and `queries` are of the last minute, too.
 */
export function stateWords(providers, servfail, queries) {
	if (!providers.length) return { level: "unknown", sentence: "No provider is known yet.", reasons: [], serving: [] };
	const up = providers.filter((each) => each.state === "up");
	const answers = (each) => each.transfers - each.failures;
	const all = up.reduce((sum, each) => sum + answers(each), 0);
	const busy = up.filter((each) => all > 0 && answers(each) >= all / 10);
	const serving = (busy.length ? busy : up.slice(0, 1)).map((each) => each.name);
	const parts = [serving.length ? `Resolving by ${list(serving)}` : "No provider answers"];
	for (const state of ["down", "aside", "spent"]) {
		const names = providers.filter((each) => each.state === state).map((each) => each.name);
		if (!names.length) continue;
		const predicate = STATES[state][3];
		parts.push(`${list(names)} ${names.length < 2 ? predicate : predicate.replace("is", "are").replace("has", "have")}`);
	}
	let level = !serving.length ? "bad" : up.length < providers.length ? "warn" : "ok";
	if (servfail > 2 && servfail > queries / 100) {
		parts.push(`${percentText(servfail / queries)} of the last minute's queries failed (SERVFAIL)`);
		level = servfail > queries / 10 || level === "bad" ? "bad" : "warn";
	}
	const reasons = providers.map((each, place) => {
		const { state, since } = each;
		const meaning = STATES[state]?.[2] ?? "state unknown";
		let text = each.explanation ?? (state === "up" ? "" : since ? `${meaning}, ${since}` : meaning);
		if (place === 0 && state === "up" && !serving.includes(each.name)) {
			text ||= `${number(answers(each))} of the last minute's ${number(all)} answers: rules lead to the others`;
		}
		return [each.name, text && (place ? ": " : ", the first provider: ") + text, state];
	});
	return { level, sentence: parts.join("; ") + ".", reasons: reasons.filter((each) => each[1]), serving };
}

/**
 * Which names fail, as [panel with more of it, its link, a name or command, what follows]. `failing` is null without a
 * session, which leaves the SERVFAIL responses of the last minute, and undefined before the first report.
 */
export function failingWords(failing, servfail) {
	const last = "in the last minute";
	if (failing?.length) {
		const [{ name, type, reason }] = failing;
		return ["failing", `${counted(failing.length, "name")} failed ${last}:`, name, `${type}: ${reason}`];
	}
	if (failing) return [null, `No name failed ${last}.`];
	if (failing === undefined) return [null, "Waiting for the report of names that fail."];
	if (!servfail) return [null, `No query failed (SERVFAIL) ${last}.`];
	return ["signin", `${counted(servfail, "query", "queries")} failed (SERVFAIL) ${last}:`, "httpdnsd dashboard",
		"shows which names, and why"];
}

/** When an answer is fetched again, or why not; `elapsed`: seconds since the report. */
export function refreshWords(entry, elapsed) {
	if (!entry) return "not in the cache";
	const plan = entry.refresh;
	if (!plan) return "not in advance";
	if (plan.why === "under_way") return "being fetched";
	const left = Math.ceil(plan.in_seconds - elapsed);
	const time = left > 0 ? `in ${durationText(left)}` : "now";
	return time + (plan.why === "if_hit" ? ` if asked ${counted(plan.missing_hits, "more time")}`
		: plan.why === "kept" ? ", refresh.keep" : "");
}

/** Where else a flush removes answers; `fleet` is null if no other daemon shares a store. */
export const fleetWords = (fleet) => !fleet ? "" : `, here and by ${fleet.members == null ? "the other daemons"
	: counted(fleet.members - 1, "other daemon")} of the fleet`;

/** The result of an action; `hasFleet`: whether other daemons share a store. */
export function resultLines(request, result, hasFleet) {
	const lines = [];
	const add = (isTrue, text) => isTrue && lines.push(text);
	if (request.do === "flush") {
		const { notified, cannot_read: strangers, fleet_problem: problem } = result;
		add(true, `removed: ${counted(result.entries, "cached answer")}, ${counted(result.failures, "remembered failure")}, `
			+ counted(result.not_listed, "“not listed” reply", "“not listed” replies"));
		add(notified != null, `notified: ${counted(notified, "other daemon")} of the fleet`);
		add(hasFleet && notified == null && !problem, "notified: the other daemons; the store does not say how many");
		add(strangers > 0, `⚠ not read by ${counted(strangers, "more daemon")} with a different secret (fleet.secret_file): ${
			strangers > 1 ? "they keep their" : "it keeps its"} answers`);
		add(problem, `⚠ other daemons of the fleet were not notified: ${problem}`);
		add(result.save_problem, `⚠ cannot replace the cache file: ${result.save_problem}; a crash would revert this`);
	} else if (request.do === "refresh") {
		for (const each of result.questions) {
			const data = each.answers.map((record) => record.data).join(", ") || `${each.rcode}, no records`;
			add(true, each.failure
				? `⚠ ${each.type}: no answer: ${each.failure}${result.kept ? "; the cached answer stays" : ""}`
				: `${each.type}: ${data}; TTL ${each.lifetime_seconds}\u00a0s, from ${each.source}, ${
					each.took_ms}\u00a0ms`);
		}
		add(!lines.length, "no upstream is asked for this name: rules or special names answer it");
		add(result.more > 0, `${counted(result.more, "more entry", "more entries")} not fetched`);
		add(result.elsewhere > 0, `${counted(result.elsewhere, "entry", "entries")} of another network not fetched`);
	} else {
		const { moved, already, alone } = result;
		add(moved + already > 0, `${request.address} is now last in ${counted(moved + already, "answer")}`);
		add(alone > 0, `⚠ ${counted(alone, "answer")} without another address that works`);
		add(!(moved + already + alone), `⚠ no cached answer to this name has ${request.address}`);
	}
	return lines;
}
