// figures.js -- pure functions: sums, ratios, percentiles, forecasts, and numbers as text.
// Times are seconds since 1970 by the daemon's clock. null is unknown and becomes "–"; it is not zero.

/** Each query counts under exactly one outcome. */
export const OUTCOMES = "hit stale local blocked miss refused invalid overflow limited dropped".split(" ");
export const NOT_ANSWERED = OUTCOMES.slice(5);
const DAY = 86400;
/** Between a number and its unit, which stay in one line. */
const NBSP = "\u00a0";

/** The sum of some counts of rows; null if no row has a number. */
export function total(rows, names) {
	let sum = null;
	for (const row of rows) for (const name of names) sum = row?.[name] == null ? sum : sum + row[name];
	return sum;
}

export const ratio = (part, whole) => part == null || !(whole > 0) ? null : part / whole;

/** Queries of rules and special names do not count. */
export const hitRatio = ({ hit, stale, miss, overflow }) => ratio(hit + stale, hit + stale + miss + overflow);

/** The share of a row's values up to x; between the percentiles the logarithm is interpolated. */
function share(x, row) {
	const [p50, p95, p99] = [row[1], row[2], row[3]];
	const part = (low, high) => high > low ? Math.log(x / low) / Math.log(high / low) : 1;
	if (x >= p99) return x > p99 ? 1 : 0.99;
	if (x >= p95) return 0.95 + 0.04 * part(p95, p99);
	return x >= p50 ? 0.5 + 0.45 * part(p50, p95) : Math.max(0, 0.5 * part(p50 / 4, p50));
}

/** The percentiles of rows [count, p50, p95, p99] together: a good estimate, which their average would not be. */
export function percentiles(rows) {
	const used = rows.filter((row) => row[0] > 0 && row[1] > 0);
	if (used.length < 2) return used.length ? used[0].slice(1) : [null, null, null];
	const count = used.reduce((sum, row) => sum + row[0], 0);
	const least = Math.min(...used.map((row) => row[1])) / 4;
	const most = Math.max(...used.map((row) => row[3]));
	return [0.5, 0.95, 0.99].map((quantile) => {
		let [low, high] = [least, most];
		for (let step = 0; step < 14; step++) {
			const middle = Math.sqrt(low * high);
			let sum = 0;
			for (const row of used) sum += row[0] * share(middle, row);
			if (sum >= count * quantile - 1e-9) high = middle; else low = middle;
		}
		return high;
	});
}

/**
 * A provider's units at the end of the UTC day, by the rate of the last hour. `units` is the column `units_today`;
 * `limit` 0 means that there is no limit; `used` are the units of a whole fleet, with which the rate grows.
 * Returns {kind: "unknown" | "spent" | "used_up" | "end", units, at, midnight}.
 */
export function forecast(times, units, limit, now, used = null) {
	const midnight = (Math.floor(now / DAY) + 1) * DAY;
	let [first, last, own, spent] = [null, null, null, 0];
	times.forEach((time, i) => {
		if (units[i] == null || time <= now - 3600) return;
		// A smaller number is one of the new day, or of a new start.
		if (first != null) spent += units[i] < own ? units[i] : units[i] - own;
		first ??= time;
		[last, own] = [time, units[i]];
	});
	const current = used ?? own;
	if (limit > 0 && current >= limit) return { kind: "spent", units: current, midnight };
	if (first == null || last - first < 300) return { kind: "unknown", units: current, midnight };
	const rate = spent / (last - first) * (used > own && own > 0 ? used / own : 1);
	const end = current + rate * (midnight - now);
	// Such as a provider that bills nothing.
	if (end === 0 && !limit) return { kind: "none", units: 0, midnight };
	return limit > 0 && end > limit ? { kind: "used_up", units: limit, at: now + (limit - current) / rate, midnight }
		: { kind: "end", units: end, midnight };
}

/** Two significant digits: 41,234 becomes 41,000. */
export const about = (value) => value > 0 ? Number(value.toPrecision(2)) : 0;

export const forecastText = ({ kind, units, at, midnight }) => ({
	spent: `used up; new units at ${clock(midnight)}`,
	used_up: `used up at about ${clock(Math.round(at / 300) * 300)}`,
	none: "no units counted",
	end: `about ${number(about(units))} by the end of the UTC day`,
})[kind] ?? "too little data yet";

// MARK: - Text

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const number = (value) => value == null ? "–" : whole.format(value);
export const counted = (count, one, more = one + "s") => `${number(count)} ${count === 1 ? one : more}`;

export function rateText(value) {
	if (value == null || value >= 999.95) return number(value);
	return value > 0 && value < 0.05 ? `<${NBSP}0.1` : value.toFixed(1);
}

/** Rounded down, so that 100 % means all; what is not zero is not shown as zero. */
export function percentText(part) {
	if (part == null) return "–";
	return (part > 0 && part < 0.001 ? `<${NBSP}0.1` : (Math.floor(part * 1000 + 1e-9) / 10).toFixed(1)) + `${NBSP}%`;
}

export function millisecondsText(value) {
	if (value == null) return "–";
	if (value < 0.9995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)}${NBSP}µs`;
	return value < 999.5 ? `${value.toFixed(value < 99.95 ? 1 : 0)}${NBSP}ms` : `${(value / 1000).toFixed(1)}${NBSP}s`;
}

export const microsecondsText = (value) => millisecondsText(value == null ? null : value / 1000);

/** The largest unit and the next one if it is not zero: "3 min 20 s". */
export function durationText(seconds) {
	if (seconds == null) return "–";
	const left = Math.max(0, Math.floor(seconds));
	const parts = [[left / DAY, "d"], [left / 3600 % 24, "h"], [left / 60 % 60, "min"], [left % 60, "s"]];
	const first = parts.findIndex(([value]) => value >= 1);
	const shown = parts.slice(first, first + 2).filter(([value]) => value >= 1);
	return shown.map(([value, unit]) => Math.floor(value) + NBSP + unit).join(" ") || `0${NBSP}s`;
}

/** How often a provider is asked. */
export function askedText(queries, questions) {
	const many = questions > 0 ? Math.max(1, queries / questions) : 0;
	return "asked a provider: " + (!queries ? "–" : !many ? `none of ${counted(queries, "query", "queries")}`
		: `1 of ${many < 9.95 ? many.toFixed(1).replace(".0", "") : number(many)} queries`);
}

/** Days left until a time. */
export const daysText = (end, now) => end == null ? "unknown" : counted(Math.floor((end - now) / DAY), "day") + " left";

const formats = {};

/** A local time with its zone; `form`: minute, second, day, or tick, without the zone. */
export function clock(time, form = "minute", timeZone = undefined) {
	if (!Number.isFinite(time)) return "–";
	return (formats[form + timeZone] ??= new Intl.DateTimeFormat("en-GB", {
		hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone, ...(form === "second" && { second: "2-digit" }),
		...(form === "day" && { day: "numeric", month: "short" }), ...(form !== "tick" && { timeZoneName: "short" }),
	})).format(time * 1000);
}
