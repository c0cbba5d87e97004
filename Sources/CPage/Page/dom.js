// dom.js -- elements. Text gets into the page as text only: names are hostile.

export const $ = (id) => document.getElementById(id);

/** `spec` is "tag.class"; children are text, elements and attributes {name: value}, {event: function}. */
export function el(spec, ...children) {
	const [tag, ...classes] = spec.split(".");
	const node = document.createElement(tag);
	if (classes.length) node.className = classes.join(" ");
	for (const child of children) {
		if (child?.constructor !== Object) node.append(child);
		else for (const [name, value] of Object.entries(child)) {
			if (typeof value === "function") node.addEventListener(name, value);
			else if (value != null) node.setAttribute(name, value);
		}
	}
	return node;
}

export function put(node, text, title) {
	if (node.textContent !== text) node.textContent = text;
	if (title != null && node.title !== title) node.title = title;
}

export function show(node, isShown) {
	if (node.hidden === !!isShown) node.hidden = !isShown;
}

/** Makes the children of a node those of `items`; rows {node, …} are reused by key, so that focus stays. */
export function sync(parent, items, key, create, update) {
	const old = parent.kept ?? new Map();
	const focused = document.activeElement;
	parent.kept = new Map();
	items.forEach((item, place) => {
		const row = old.get(key(item)) ?? create(item);
		old.delete(key(item));
		parent.kept.set(key(item), row);
		update(row, item);
		if (parent.children[place] !== row.node) parent.insertBefore(row.node, parent.children[place] ?? null);
	});
	for (const row of old.values()) row.node.remove();
	if (parent.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

/** A section with a title and a line for its span; `kind` is that of the span. */
export const panel = (id, title, size, kind, ...children) => el(`section.panel${size}`, { id,
	"aria-labelledby": `${id}-title` }, el("div.head", el("h2", { id: `${id}-title` }, title),
	el("p.span", { "data-span": kind })), ...children);

/** Terms and figures: [term, text, remark]. */
export function facts(id, rows) {
	sync($(`${id}-facts`), rows, (row) => row[0], ([term]) => {
		const parts = [el("b"), el("small")];
		return { node: el("li", el("span", term), el("span", ...parts)), parts };
	}, ({ parts }, [, ...texts]) => parts.forEach((part, i) => put(part, texts[i] ?? "")));
}

/** The head of a table whose body has the id `ID-rows`; columns are [label, width, class]. */
export const table = (id, columns) => el("table.list", { id: `${id}-list` },
	el("thead", el("tr", ...columns.map(([label, width = "", kind]) => {
		const cell = el("th", { scope: "col", class: kind }, label);
		cell.style.width = width;
		return cell;
	}))), el("tbody", { id: `${id}-rows` }));

/** The cells of a row; on narrow screens each shows its label. */
export const cellsOf = (columns) => columns.map(([label, , kind], i) => el(i ? "td" : "th",
	{ "data-label": label, class: kind, scope: i ? null : "row" }));

/** A name, isolated against marks of direction; cut by the style sheet, whole in the title. */
export const nameNode = (name) => el("bdi.name", { title: name }, name);
