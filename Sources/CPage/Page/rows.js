// rows.js -- the rows of a span, in columns of one length; live samples are appended or merged, and old rows leave.

import { OUTCOMES, percentiles } from "./figures.js";

const COUNTS = [...OUTCOMES, "servfail", "joined", "questions", "transfers", "failures", "refreshes"];
const LATENCIES = ["hit_p50", "hit_p95", "hit_p99", "miss_p50", "miss_p95", "miss_p99"];
const COLUMNS = ["time", "seconds", ...COUNTS, ...LATENCIES];
const FIELDS = ["state", "transfers", "failures", "units_today", "median_ms", "up"];
const pick = (from, names, i) => Object.fromEntries(names.map((name) => [name, from[name]?.[i] ?? null]));
/** A row of a history, as a sample. */
const sampleAt = ({ columns, providers }, i) => ({
	...pick(columns, COLUMNS, i), providers: providers.map((each) => ({ ...pick(each, FIELDS, i), name: each.name })),
});
const latencies = (sample, kind) =>
	[kind === "hit" ? sample.hit + sample.stale : sample.miss, sample[`${kind}_p50`], sample[`${kind}_p95`],
		sample[`${kind}_p99`]];

export class Rows {
	/** Samples are merged into rows of `grain` seconds, or kept as they come if it is 0. */
	constructor(span, grain) {
		Object.assign(this, { span, grain });
		this.clear();
	}

	clear() {
		this.columns = Object.fromEntries(COLUMNS.map((name) => [name, []]));
		this.providers = [];
		/** The samples of the last row, while it grows. */
		this.parts = [];
	}

	get length() { return this.columns.time.length; }
	get end() { return this.columns.time.at(-1); }

	load(history) {
		history.columns.time.forEach((_, i) => this.add(sampleAt(history, i)));
	}

	/** Adds a sample, unless its time is known already: history and stream may both have it. */
	add(sample) {
		const { columns, grain, end } = this;
		if (sample.time - sample.seconds / 2 <= end) return;
		const slot = (time) => Math.floor((time - 0.5) / grain);
		const isMissing = sample.hit == null;
		const grows = this.parts.length > 0 && !isMissing && sample.time - sample.seconds <= end + 1
			&& slot(sample.time) === slot(end);
		if (!grows) this.parts = [];
		if (grain && !isMissing) this.parts.push(sample);
		if (grows) this.merge(sample); else this.append(sample);
		const old = columns.time.findIndex((time) => time > sample.time - this.span);
		for (const each of [columns, ...this.providers]) {
			for (const column of Object.values(each)) if (old > 0 && column.splice) column.splice(0, old);
		}
	}

	append(sample) {
		const before = this.length;
		for (const name of COLUMNS) this.columns[name].push(sample[name] ?? null);
		// A provider that a reload removed is forgotten; a new one has nulls before.
		this.providers = sample.providers.map((each) => {
			const provider = this.providers.find(({ name }) => name === each.name)
				?? { name: each.name, ...Object.fromEntries(FIELDS.map((field) => [field, Array(before).fill(null)])) };
			for (const field of FIELDS) provider[field].push(each[field] ?? null);
			provider.up[before] ??= each.state == null ? null : each.state ? 0 : sample.seconds;
			return provider;
		});
	}

	merge(sample) {
		const { columns, parts } = this;
		const last = this.length - 1;
		columns.time[last] = sample.time;
		for (const name of ["seconds", ...COUNTS]) columns[name][last] += sample[name];
		["hit", "miss"].forEach((kind, half) => percentiles(parts.map((part) => latencies(part, kind)))
			.forEach((value, i) => { columns[LATENCIES[half * 3 + i]][last] = value; }));
		for (const each of sample.providers) {
			const provider = this.providers.find(({ name }) => name === each.name);
			if (!provider || each.state == null) continue;
			for (const field of ["transfers", "failures"]) provider[field][last] += each[field];
			for (const field of ["units_today", "median_ms"]) provider[field][last] = each[field] ?? provider[field][last];
			provider.up[last] += each.up ?? (each.state ? 0 : sample.seconds);
			provider.state[last] = each.state || provider.state[last];
		}
	}

	/** The first row that ends in the last `seconds`. */
	from(seconds) {
		const first = this.columns.time.findIndex((time) => time > this.end - seconds + 0.5);
		return first < 0 ? this.length : first;
	}

	/** [50 %, 95 %, 99 %] of all rows; `kind`: hit, miss. */
	percentiles(kind) {
		const { columns } = this;
		const [p50, p95, p99] = LATENCIES.slice(kind === "hit" ? 0 : 3).map((name) => columns[name]);
		return percentiles(p50.map((half, i) =>
			[kind === "hit" ? columns.hit[i] + columns.stale[i] : columns.miss[i], half, p95[i], p99[i]]));
	}

	/** The times without figures in the span up to `end`, as [from, to, row behind]. */
	gaps(end) {
		const { span, length, columns: { time, seconds, hit } } = this;
		const found = length ? [] : [[end - span, end, 0]];
		for (let i = 0; i < length; i++) {
			const [from, to] = [time[i - 1] ?? end - span, hit[i] == null ? time[i] : time[i] - seconds[i]];
			if (to > from + 1) found.push([from, to, i]);
		}
		return found;
	}

	/** Whether something is missing before a row. */
	isGap(i) {
		const { time, seconds, hit } = this.columns;
		return hit[i] == null || time[i] - seconds[i] > time[i - 1] + 1;
	}
}
