/* The connection to the server: one websocket that comes back by itself, and requests that are answered once.

   Commands that were not answered before the connection broke are sent again under the same id; the server gives a
   repeated id its first answer. It answers in the order of the commands, so an error without an id is the answer to the
   oldest one. Everything else that arrives goes to `onFrame`, an answer that came too late as well. */

const PROTOCOL = "par.v1";
const FIRST_PAUSE = 400; // all in milliseconds
const LONGEST_PAUSE = 20_000;
const PING_EVERY = 25_000;
const PONG_WITHIN = 15_000;
const PONG_WITHIN_SOON = 4_000; // after a sleep or a change of network, when the connection is likely to be dead
const ANSWER_WITHIN = 20_000;
const FATAL = new Map([
  [4403, "This page may not talk to the server from this address."],
  [4406, "This page is older than the server. Reload it."],
  [4500, "The site is not run by its own server, so nobody can answer here. Tell its operator."],
]);

/* Raised when the server refuses a command or cannot take it; `code` is the protocol's. `doubtful` tells that the
   command may have been carried out all the same. */
export class Refused extends Error {
  constructor(code, message, { doubtful = false } = {}) {
    super(message);
    this.code = code;
    this.doubtful = doubtful;
  }
}

function tooLarge() {
  return new Refused("MESSAGE_TOO_LARGE", "The message is too long for the server.");
}

/* A random UUID, also where the page is not a secure context. */
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export class Connection {
  #socket = null;
  #pending = new Map();
  #tries = 0;
  #timer = null;
  #pinger = null;
  #open = false;

  /* `largestFrame` is in bytes. Hooks: onFrame(frame), onOpen(), onState("connecting" | "open" | "waiting" | "closed", message), onSignedOut(). */
  constructor(path, largestFrame, hooks) {
    const address = new URL(path, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    this.address = address.href;
    this.largestFrame = largestFrame;
    this.hooks = hooks;
    addEventListener("online", () => this.#hurry());
    addEventListener("offline", () => this.#hurry()); // a server on this machine is still there
    document.addEventListener("visibilitychange", () => document.hidden || this.#hurry());
  }

  connect() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.hooks.onState("connecting");
    const socket = new WebSocket(this.address, [PROTOCOL]);
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = ({ code }) => socket === this.#socket && this.#closed(code);
  }

  /* Send a command and return a promise of its ack; it rejects with `Refused`, also when no answer comes in time. */
  request(type, fields = {}, { id = uuid(), repeat = true } = {}) {
    const frame = JSON.stringify({ type, id, ...fields });
    // A frame that is too large would break this socket, and the next one when it is sent again.
    if (new Blob([frame]).size > this.largestFrame) return Promise.reject(tooLarge());
    if (!this.#open && !repeat) return Promise.reject(new Refused("NOT_CONNECTED", "There is no connection."));
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { frame, repeat, resolve, reject, timer: null });
      if (this.#open) this.#send(id);
    });
  }

  #receive(frame) {
    switch (frame.type) {
      case "welcome":
        this.#opened();
        break;
      case "ack":
        this.#answered(frame.id, "resolve", frame);
        break;
      case "error": {
        const id = frame.id ?? this.#pending.keys().next().value;
        const doubtful = frame.id !== id;
        this.#answered(id, "reject", new Refused(frame.code, frame.message, { doubtful }), frame);
        break;
      }
      default:
        this.hooks.onFrame(frame);
    }
  }

  #answered(id, how, value, frame = value) {
    if (this.#pending.has(id)) this.#settle(id, how, value);
    else this.hooks.onFrame(frame);
  }

  #settle(id, how, value) {
    const waiting = this.#pending.get(id);
    clearTimeout(waiting.timer);
    this.#pending.delete(id);
    waiting[how](value);
  }

  #send(id) {
    const waiting = this.#pending.get(id);
    this.#pending.delete(id);
    this.#pending.set(id, waiting); // in the order in which they are sent
    this.#socket.send(waiting.frame);
    waiting.timer = setTimeout(() => {
      this.#settle(id, "reject", new Refused("NO_ANSWER", "There was no answer.", { doubtful: true }));
    }, ANSWER_WITHIN);
  }

  #opened() {
    this.#open = true;
    this.#tries = 0;
    const unanswered = [...this.#pending.keys()];
    this.hooks.onState("open");
    this.hooks.onOpen();
    for (const id of unanswered) this.#send(id);
    this.#pinger = setInterval(() => this.#ping(), PING_EVERY);
  }

  async #ping(within = PONG_WITHIN) {
    const socket = this.#socket;
    const dead = setTimeout(() => this.#abandon(socket), within);
    await this.request("ping", {}, { repeat: false }).catch(() => {});
    clearTimeout(dead);
  }

  /* Give up a socket that no longer answers; its own close event may take minutes. */
  #abandon(socket) {
    if (socket !== this.#socket) return;
    socket.close();
    this.#closed(1006);
  }

  #closed(code) {
    this.#open = false;
    this.#socket = null;
    clearInterval(this.#pinger);
    this.#dropPending(code);
    if (code === 4401) {
      this.hooks.onSignedOut();
    } else if (FATAL.has(code)) {
      this.hooks.onState("closed", FATAL.get(code));
    } else {
      this.hooks.onState("waiting");
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#tries++);
      this.#timer = setTimeout(() => this.connect(), pause * (0.5 + Math.random() / 2));
    }
  }

  /* Keep what can be sent again, unless the server found it too large (1009). */
  #dropPending(code) {
    const lost = code === 1009 ? tooLarge() : new Refused("NOT_CONNECTED", "The connection was lost.");
    for (const [id, { repeat, timer }] of [...this.#pending]) {
      clearTimeout(timer);
      if (!repeat || code === 1009) this.#settle(id, "reject", lost);
    }
  }

  #hurry() {
    if (this.#timer !== null) this.connect();
    else if (this.#open) this.#ping(PONG_WITHIN_SOON);
  }
}
