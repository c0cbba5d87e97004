// stream.js -- text/event-stream over fetch, because EventSource cannot send a token; taken up again after a break.

const LONGEST_WAIT = 30000;
const LONGEST_LINE = 4 << 20;

/** Parses JSON; in its strings marks of direction become "�", in whatever a sentence may quote. */
export const parse = (text) => JSON.parse(text, (name, value) => typeof value === "string"
	? value.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "�") : value);

/** Calls `event(type, value, id)` for each event until the stream ends, and `heard()` for every piece. */
export async function readEvents(body, event, heard) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let [rest, fields] = ["", {}];
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		heard();
		const lines = (rest + value).split("\n");
		rest = lines.pop();
		if (rest.length > LONGEST_LINE) throw new Error("too long");
		for (const line of lines) {
			const [, field, text] = /^(\w*):? ?(.*?)\r?$/.exec(line) ?? [];
			if (field) fields[field] = text;
			else if (line.trim() === "") {
				if (fields.data) event(fields.event, parse(fields.data), fields.id);
				fields = {};
			}
		}
	}
}

export class Stream {
	/**
	 * `request()` returns [path, fields]; `event` as above; `opened()`; `broken(sentence, seconds)` before a wait;
	 * `refused(status, sentence)` returns true to give up. A stream that is silent for `silence` ms is broken.
	 */
	constructor(handlers, silence) {
		Object.assign(this, handlers, { silence, failures: 0 });
	}

	start() {
		this.stop();
		this.failures = 0;
		this.connect();
	}

	stop() {
		clearTimeout(this.timer);
		this.controller?.abort();
		this.controller = null;
	}

	async connect() {
		const controller = this.controller = new AbortController();
		const isOld = () => this.controller !== controller;
		const heard = () => {
			if (isOld()) return;
			clearTimeout(this.timer);
			if (this.silence) this.timer = setTimeout(() => controller.abort(), this.silence);
		};
		let sentence = "the daemon does not answer";
		heard();
		try {
			const [path, headers] = this.request();
			const response = await fetch(path, { headers, signal: controller.signal });
			if (isOld()) return;
			if (response.ok) {
				this.opened();
				sentence = "the daemon has ended the stream";
				await readEvents(response.body, (...event) => {
					this.failures = 0;
					if (!isOld()) this.event(...event);
				}, heard);
			} else {
				sentence = await sentenceOf(response);
				if (isOld()) return;
				if (this.refused(response.status, sentence)) return isOld() || this.stop();
			}
		} catch { /* The reason of a failed fetch is not told. */ }
		if (isOld()) return;
		this.stop();
		const wait = Math.min(LONGEST_WAIT, 1000 * 2 ** this.failures++) * (0.5 + Math.random());
		this.timer = setTimeout(() => this.connect(), wait);
		this.broken(sentence, Math.ceil(wait / 1000));
	}
}

/** The sentence with which the daemon refuses. */
export const sentenceOf = async (response) => (await response.text()).trim().slice(0, 300)
	|| `status ${response.status}`;
