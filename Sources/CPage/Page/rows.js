// rows.js -- the rows of a span, as samples; live samples are appended or merged, and old rows leave.

import { OUTCOMES, percentiles } from "./figures.js";

const COUNTS = ["seconds", ...OUTCOMES, "servfail", "joined", "questions", "transfers", "failures", "refreshes"];
const latencies = (row, kind) =>
	[kind === "hit" ? row.hit + row.stale : row.miss, ...["p50", "p95", "p99"].map((part) => row[`${kind}_${part}`])];
const at = (columns, i) => Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[i]]));

/** The rows of a history, which has them in columns. */
export const samplesOf = ({ columns, providers }) => columns.time.map((_, i) => ({ ...at(columns, i),
	providers: providers.map((each) => ({ ...at(each, i), name: each.name, units_per_day: each.units_per_day })) }));

export class Rows {
	/** Samples are merged into rows of `grain` seconds, or kept as they come if it is 0. */
	constructor(span, grain) {
		Object.assign(this, { span, grain });
		this.clear();
	}

	clear() {
		this.list = [];
		/** The samples of the last row, while it grows. */
		this.parts = [];
	}

	get last() { return this.list.at(-1); }
	get end() { return this.last?.time; }

	/** Adds a sample, unless its time is known already: history and stream may both have it. */
	add(sample) {
		const { list, end, grain, parts } = this;
		if (sample.time - sample.seconds / 2 <= end) return;
		const slot = (time) => Math.floor((time - 0.5) / grain);
		const isMissing = sample.hit == null;
		const grows = parts.length > 0 && !isMissing && sample.time - sample.seconds <= end + 1
			&& slot(sample.time) === slot(end);
		this.parts = !grain || isMissing ? [] : grows ? [...parts, sample] : [sample];
		const providers = sample.providers.map((each) =>
			({ up: each.state == null ? null : each.state ? 0 : sample.seconds, ...each }));
		const row = { ...sample, providers };
		if (grows) list[list.length - 1] = this.merge(this.last, row); else list.push(row);
		while (list[0].time <= sample.time - this.span) list.shift();
	}

	merge(last, row) {
		for (const name of COUNTS) row[name] += last[name];
		for (const kind of ["hit", "miss"]) {
			const [p50, p95, p99] = percentiles(this.parts.map((part) => latencies(part, kind)));
			Object.assign(row, { [`${kind}_p50`]: p50, [`${kind}_p95`]: p95, [`${kind}_p99`]: p99 });
		}
		for (const each of row.providers) {
			const before = last.providers.find(({ name }) => name === each.name);
			for (const field of ["transfers", "failures", "up"]) each[field] += before?.[field] ?? 0;
			for (const field of ["units_today", "median_ms"]) each[field] ??= before?.[field];
			each.state ||= before?.state ?? each.state;
		}
		return row;
	}

	/** The rows that end in the last `seconds`. */
	since(seconds) { return this.list.filter(({ time }) => time > this.end - seconds + 0.5); }

	/** A provider in each row; undefined where it was not configured. */
	of(provider, rows = this.list) { return rows.map((row) => row.providers.find(({ name }) => name === provider)); }

	/** [50 %, 95 %, 99 %] of all rows; `kind`: hit, miss. */
	percentiles(kind) { return percentiles(this.list.map((row) => latencies(row, kind))); }

	/** The times without figures in the span up to `end`, as [from, to, row behind]. */
	gaps(end) {
		const { list, span } = this;
		const found = list.length ? [] : [[end - span, end, 0]];
		list.forEach(({ time, seconds, hit }, i) => {
			const [from, to] = [list[i - 1]?.time ?? end - span, hit == null ? time : time - seconds];
			if (to > from + 1) found.push([from, to, i]);
		});
		return found;
	}

	/** Whether something is missing before a row. */
	isGap(i) {
		const { time, seconds, hit } = this.list[i];
		return hit == null || time - seconds > this.list[i - 1]?.time + 1;
	}
}
