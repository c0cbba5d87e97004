// plots.js -- the plots: Chart.js, a caption in words, a legend with current values, a table behind a button.

import { NOT_ANSWERED, clock, durationText, hitRatio, microsecondsText, millisecondsText, percentText, rateText,
	total } from "./figures.js";
import { el, put, sync } from "./dom.js";

const rate = (...names) => (row) => row.hit == null ? null : total([row], names) / row.seconds;
const latency = (kind) => [50, 95, 99].map((part) => [`${part}\u00a0%`, `p${part}`, (row) => row[`${kind}_p${part}`]]);
/** Series are [label, name of the colour, value of a row]. */
const PLOTS = {
	queries: { text: rateText, unit: "Queries a second", isStacked: true, series: [
		...["hit", "stale", "local", "blocked", "miss"].map((name) => [name, name, rate(name)]),
		["not answered", "lost", rate(...NOT_ANSWERED)], ["SERVFAIL", "servfail", rate("servfail")]] },
	ratio: { text: percentText, unit: "Hit ratio", max: 1,
		series: [["hit ratio", "hit", hitRatio]] },
	hits: { text: microsecondsText, unit: "Latency of hits", isLog: true, series: latency("hit") },
	misses: { text: millisecondsText, unit: "Latency of misses", isLog: true, series: latency("miss") },
};
const DASHES = { p95: [6, 3], p99: [2, 3], servfail: [5, 3] };
const STEPS = [120, 300, 600, 1200, 3600, 10800, 21600];

/** A colour for an area; the names of forced colours have none. */
const transparent = (colour, alpha = "90") => colour.startsWith("#") ? colour + alpha : "transparent";

/** Ticks at round local times. */
function timeTicks(axis) {
	const { min, max, width } = axis;
	const step = STEPS.find((each) => (max - min) / each <= width / 70) ?? 43200;
	const offset = new Date(max * 1000).getTimezoneOffset() * 60;
	axis.ticks = [];
	for (let time = Math.ceil((min - offset) / step) * step
		+ offset; time <= max; time += step) axis.ticks.push({ value: time });
}

export class Plot {
	constructor(id) {
		Object.assign(this, PLOTS[id], { isVisible: true, gaps: [] });
		this.canvas = el("canvas", { role: "img", "aria-labelledby": `${id}-caption` });
		this.caption = el("figcaption", { id: `${id}-caption` });
		this.moment = el("p.soft");
		this.legend = el("ul.legend");
		this.table = el("div.scroll", { id: `${id}-table`, hidden: "", tabindex: 0, role: "region",
			"aria-label": `${this.unit}, table` });
		this.button = el("button.quiet", { id: `${id}-button`, "aria-expanded": false, "aria-controls": `${id}-table`,
			click: () => {
			this.table.hidden = !this.table.hidden;
			this.button.setAttribute("aria-expanded", !this.table.hidden);
			this.fill();
		} }, "Table");
		this.nodes = [el("figure", this.caption, el("div.plot", this.canvas),
			el("div.under", el("div", this.moment, this.legend), this.button)), this.table];
		new IntersectionObserver((entries) => {
			// Several changes between two frames come at once.
			this.isVisible = entries.at(-1).isIntersecting;
			if (this.last) this.draw(...this.last);
		}).observe(this.canvas);
	}

	create() {
		const { text, isStacked, isLog, max } = this;
		this.chart = new window.Chart(this.canvas, {
			type: "line",
			plugins: [{ id: "gaps", beforeDatasetsDraw: (chart) => this.drawGaps(chart) }],
			data: { datasets: this.series.map(([label, name], i) => ({
				label, data: [], borderWidth: 1.5, pointRadius: 0, borderDash: DASHES[name] ?? [],
				stack: name === "servfail" ? name : "",
				fill: isStacked && name !== "servfail" ? i ? "-1" : "origin" : false })) },
			options: {
				animation: false, parsing: false, normalized: true, maintainAspectRatio: false,
				interaction: { mode: "index", intersect: false },
				plugins: {
					legend: { display: false }, decimation: { enabled: !isStacked, algorithm: "min-max" },
					tooltip: { callbacks: { title: ([item]) => item && clock(item.parsed.x, "second"),
						label: ({ dataset, raw }) => ` ${dataset.label}: ${text(raw.y)}${isStacked ? "\u00a0/s" : ""}` } },
				},
				scales: {
					x: { type: "linear", afterBuildTicks: timeTicks,
						ticks: { callback: (value) => clock(value, "tick"), maxRotation: 0, includeBounds: false } },
					y: { type: isLog ? "logarithmic" : "linear", stacked: isStacked, beginAtZero: isStacked, max,
						suggestedMax: isStacked && 1, afterFit: (axis) => { axis.width = 58; },
						// On a logarithmic axis 1, 3, 10, 30 …
						ticks: { callback: (value) => isLog && !/^[13]e/.test(value.toExponential()) ? null
							: text(value).replace(".0", ""), maxTicksLimit: isLog ? 30 : 6 } },
				},
			},
		});
		this.colour();
	}

	/** Takes the colours from the style sheet. */
	colour() {
		if (!this.chart) return;
		const style = getComputedStyle(document.documentElement);
		const value = (name) => style.getPropertyValue(`--${name}`).trim();
		this.series.forEach(([, name], i) => {
			const line = value(name);
			Object.assign(this.chart.data.datasets[i], { borderColor: line, backgroundColor: transparent(line, "40") });
		});
		const { scales: { x, y }, plugins } = this.chart.options;
		for (const axis of [x, y]) [axis.ticks.color, axis.grid.color] = [value("soft"), value("grid")];
		Object.assign(plugins.tooltip, { backgroundColor: value("text"), titleColor: value("panel"),
			bodyColor: value("panel") });
		this.chart.update();
	}

	/** Times without figures: an area between dashed lines, with its name where there is room. */
	drawGaps({ ctx, chartArea: { left, top, right, height }, scales: { x } }) {
		const { ticks: { color }, grid } = x.options;
		for (const [begin, end] of this.gaps) {
			const from = Math.max(left, x.getPixelForValue(begin));
			const width = Math.min(right, x.getPixelForValue(end)) - from;
			if (!(width >= 1)) continue;
			ctx.save();
			Object.assign(ctx, { textAlign: "center", textBaseline: "middle", font: "12px system-ui, sans-serif",
				strokeStyle: color, fillStyle: transparent(grid.color) });
			ctx.setLineDash([2, 3]);
			ctx.fillRect(from, top, width, height);
			ctx.strokeRect(from, top, width, height);
			ctx.fillStyle = color;
			ctx.translate(from + width / 2, top + height / 2);
			if (width < 55) ctx.rotate(-Math.PI / 2);
			if (width > 14) ctx.fillText("no data", 0, 0);
			ctx.restore();
		}
	}

	/** Shows rows up to `end`, with a caption; the plot itself changes if it is its turn. */
	draw(rows, end, words, isTurn = true) {
		this.last = [rows, end, words];
		const { list, last } = rows;
		put(this.caption, words);
		put(this.moment, last ? `in the ${durationText(Math.round(last.seconds))} until ${clock(last.time, "second")}:`
			: "no data yet");
		sync(this.legend, this.series, ([label]) => label, ([label, name]) => {
			const [swatch, figure] = [el(DASHES[name] ? "i.dashed" : "i"), el("b")];
			swatch.style.setProperty("--c", `var(--${name})`);
			return { node: el("li", swatch, label, figure), figure };
		}, ({ figure }, series) => put(figure, last ? this.text(series[2](last)) : "–"));
		if (!this.table.hidden && Date.now() - this.filledAt > 10000) this.fill();
		// One that is made in a hidden page has no size.
		if (window.Chart && !this.chart && this.canvas.offsetParent) this.create();
		if (!this.chart || !this.isVisible || !isTurn) return;
		this.gaps = rows.gaps(end);
		this.series.forEach(([, , value], place) => {
			const { data } = this.chart.data.datasets[place];
			let used = 0;
			const point = (x, y) => Object.assign(data[used++] ??= {}, { x, y });
			list.forEach((row, i) => {
				const figure = value(row) ?? NaN;
				// A curve begins where its first row does.
				if (!i || rows.isGap(i)) for (const y of [NaN, figure]) point(row.time - row.seconds, y);
				point(row.time, figure);
			});
			data.length = used;
		});
		Object.assign(this.chart.options.scales.x, { min: end - rows.span, max: end });
		this.chart.update();
	}

	/** The newest rows as a table. */
	fill() {
		this.filledAt = Date.now();
		const [{ list }] = this.last;
		const cells = (name, texts) => texts.map((text, i) => el(i ? name : "th", { scope: i ? null : "row" }, text));
		const rows = [];
		const gaps = this.last[0].gaps(this.last[1]);
		for (let i = list.length - 1; i >= 0 && rows.length < 60; i--) {
			if (list[i].hit != null) rows.push(el("tr", ...cells("td", [clock(list[i].time, "second"),
				...this.series.map(([, , value]) => this.text(value(list[i])))])));
			for (const [from, to] of gaps.filter((gap) => gap[2] === i)) rows.push(el("tr",
				el("th", { scope: "row" }, clock(to, "second")),
				el("td", { colspan: this.series.length }, `no data since ${clock(from, "second")}`)));
		}
		this.table.replaceChildren(el("table", el("caption", `${this.unit}, the last ${rows.length} rows, newest first`),
			el("thead", el("tr", ...cells("th", ["Until", ...this.series.map(([label]) => label)]))), el("tbody", ...rows)));
	}
}
