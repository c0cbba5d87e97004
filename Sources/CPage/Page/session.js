// session.js -- the token: in localStorage, so that all tabs share it, and sent in the field Authorization alone.

import { parse, sentenceOf } from "./stream.js";

const KEY = "httpdnsd.session";
const ENDED = "The session has ended.";
const SILENT = "The daemon does not answer.";

/** A token never crosses a network in clear. */
export const canSignIn = location.protocol === "https:"
	|| /^((.+\.)?localhost|127[.\d]+|\[::1\])$/.test(location.hostname);

const send = (method, path, body, headers) => fetch(`/dashboard/${path}`,
	{ method, keepalive: true, headers: { ...headers, "Content-Type": "application/json" },
		body: body && JSON.stringify(body) });

export const session = {
	/** {token, may_tail, ends} */
	current: null,
	/** Called after the session began or ended, with a sentence or nothing. */
	changed() {},

	get headers() { return this.current && { Authorization: `Bearer ${this.current.token}` }; },

	load() {
		this.current = null;
		try {
			const stored = JSON.parse(localStorage.getItem(KEY));
			if (stored.ends * 1000 > Date.now()) this.current = stored;
		} catch { /* None, or no storage. */ }
	},

	store(value) {
		this.current = value;
		try {
			if (value) localStorage.setItem(KEY, JSON.stringify(value)); else localStorage.removeItem(KEY);
		} catch { /* The session lasts as long as the page. */ }
	},

	/** Takes a code out of the address; returns a sentence if it is not accepted. */
	async signIn() {
		const code = location.hash.slice(1);
		// Else it is nothing, or the id of a panel.
		if (!/^[\w-]{16,64}$/.test(code)) return;
		history.replaceState(null, "", location.pathname);
		if (!canSignIn) return;
		try {
			const response = await send("POST", "session", { code });
			if (response.ok) this.store(await response.json());
			else if (response.status === 401) return "The code is wrong, was used, or is older than 60 s.";
			else return sentenceOf(response);
		} catch {
			return SILENT;
		}
	},

	end(text = ENDED) {
		this.store(null);
		this.changed(text);
	},

	/** Forgets the token in any case; says so if the daemon did not hear of it. */
	async signOut() {
		const sent = send("DELETE", "session", null, this.headers);
		this.end("");
		const isHeard = await sent.then(({ status }) => status === 200 || status === 401, () => false);
		if (!isHeard) {
			this.changed("The daemon did not answer: the session lasts until it ends by itself or the daemon restarts.");
		}
	},

	/** Returns [result] or [null, sentence]. */
	async act(body) {
		const { current } = this;
		try {
			const response = await send("POST", "action", body, this.headers);
			if (response.ok) return [parse(await response.text())];
			if (response.status === 401 && this.current === current) this.end();
			return [null, await sentenceOf(response)];
		} catch {
			return [null, SILENT];
		}
	},
};

addEventListener("storage", ({ key }) => {
	if (key && key !== KEY) return;
	const before = session.current?.token;
	session.load();
	if (session.current?.token !== before) session.changed("");
});
