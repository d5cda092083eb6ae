/* The message box. What is typed is kept in this tab until the server has taken it up, and never sent twice. */

import { uuid } from "./socket.js";
import { Tray } from "./tray.js";

const TALLEST = 8; // lines
const touchOnly = matchMedia("(hover: none) and (pointer: coarse)"); // no Shift + Enter there: Enter makes a new line

const NOTHING = { text: "", files: [] };

const isNothing = ({ text, files }) => text.trim() === "" && files.length === 0;

const same = (one, other) =>
  one.text === other.text &&
  one.files.map(({ attachmentId }) => attachmentId).join() === (other.files ?? []).map(({ attachmentId }) => attachmentId).join();

/* Whether Enter belongs to an input method; Safari ends the composition before it tells of the key. */
const composing = ({ isComposing, keyCode }) => isComposing || keyCode === 229;

/* Whether a key sends what is written. */
export const sends = (event) => event.key === "Enter" && !event.shiftKey && !composing(event) && !touchOnly.matches;

export class Composer {
  #form;
  #box;
  #send;
  #stop;
  #problem;
  #onSend;
  #person;
  #mode = "loading"; // | "ready" | "sending" | "running"
  #key = "";
  #id = null;
  #sent = NOTHING; // what is on its way and not taken up yet
  #restored = null;
  #tray;
  #attach;

  /* `files` says where they are uploaded to, and how large they may be. */
  constructor(form, person, { onSend, onStop, files }) {
    this.#form = form;
    this.#person = person;
    this.#box = form.querySelector("textarea");
    this.#send = form.querySelector("[data-send]");
    this.#stop = form.querySelector("[data-stop]");
    this.#problem = form.querySelector("[data-problem]");
    this.#onSend = onSend;
    this.#attach = form.querySelector("[data-attach]");
    this.#tray = new Tray(form, { ...files, onChange: () => this.#edited() });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.#box.addEventListener("keydown", (event) => {
      if (!sends(event)) return;
      event.preventDefault();
      this.submit();
    });
    this.#box.addEventListener("input", () => this.#edited());
    this.#stop.addEventListener("click", () => {
      this.focus(); // a disabled button would lose it
      this.#stop.disabled = true;
      onStop();
    });
  }

  /* Where the draft is kept: each conversation of each person has one of its own. Brings back what was kept there. */
  remember(conversationId) {
    if (this.#key) sessionStorage.removeItem(this.#key);
    this.#key = `par-draft:${this.#person}:${conversationId ?? "new"}`;
    const kept = read(this.#key);
    if (kept && this.#box.value === "") {
      this.#box.value = kept.text;
      this.#tray.put(kept.files ?? []);
      this.#restored = kept;
      this.say(kept.problem ?? "");
    }
    this.#edited();
  }

  /* Send what is in the box and beside it, or `text` past both; nothing happens while a run is live. `place` says where it
     belongs if that is not the end of what is shown. */
  submit(text, place = {}) {
    const typed = this.#box.value;
    const said = { text: text ?? typed, files: text === undefined ? this.#tray.files : [] };
    if (this.#mode !== "ready" || (text === undefined && !this.#sendable) || isNothing(said)) return;
    // A restored message may have been on its way when the page went: under the same id it starts no second run.
    this.#id = (this.#restored && same(said, this.#restored) && this.#restored.id) || uuid();
    this.#sent = said;
    this.mode = "sending";
    if (text === undefined) {
      this.#box.value = "";
      this.#tray.take();
    }
    this.say("");
    this.#edited();
    this.#onSend({ id: this.#id, ...said, place });
  }

  get #sendable() {
    return this.#tray.ready && !(this.#box.value.trim() === "" && this.#tray.empty);
  }

  /* The server has the text. */
  accepted() {
    this.#sent = NOTHING;
    this.#restored = null;
    this.#keep();
  }

  /* Put a text into the box, before what stands in it, and files beside it. */
  put({ text, files }) {
    this.#box.value = [text, this.#box.value].filter((each) => each !== "").join("\n");
    this.#tray.put(files);
    this.#edited();
  }

  /* The server has refused the message: it is put back. In doubt it keeps its id. */
  refused({ text, files }, problem, doubtful) {
    this.#sent = NOTHING;
    this.put({ text, files });
    this.#restored = doubtful ? { text, files, id: this.#id } : null;
    this.#edited();
    this.mode = "ready";
    this.warn(problem);
    this.focus();
  }

  /* The server has taken up this message after all: returns it and takes it out of the box, or null for another one. */
  late(id) {
    if (this.#mode === "sending" || this.#restored?.id !== id) return null;
    const { text, files = [] } = this.#restored;
    const { value } = this.#box;
    const others = this.#tray.files.filter(({ attachmentId }) => !files.some((sent) => sent.attachmentId === attachmentId));
    this.#tray.take();
    this.#tray.put(others);
    if (value === text || value.startsWith(`${text}\n`)) this.#box.value = value.slice(text.length + 1);
    this.say("");
    this.#edited();
    return { text, files };
  }

  /* The run could not be stopped; the button may be pressed again. */
  unstopped(problem) {
    this.say(problem);
    this.#stop.disabled = this.#mode !== "running";
  }

  /* Show a problem beside the box, or none. */
  say(problem) {
    this.#problem.textContent = problem;
    this.#problem.hidden = problem === "";
  }

  /* Show a problem because of which the page may be loaded anew: it is shown there again. */
  warn(problem) {
    this.say(problem);
    this.#keep(problem);
  }

  get mode() {
    return this.#mode;
  }

  set mode(mode) {
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#form.dataset.mode = mode;
    this.#stop.hidden = mode === "ready" || mode === "loading";
    this.#stop.disabled = mode !== "running";
    this.#send.hidden = mode === "sending" || mode === "running";
    for (const button of this.#form.querySelectorAll("[data-conflict]")) button.disabled = mode !== "ready";
    this.#edited();
  }

  focus() {
    this.#box.focus({ preventScroll: true });
  }

  /* Say in the empty box what may be written now, until something is. */
  invite(words) {
    const usual = this.#box.placeholder;
    this.#box.placeholder = words;
    this.#box.addEventListener("input", () => (this.#box.placeholder = usual), { once: true });
    this.focus();
  }

  #edited() {
    this.#keep();
    this.#box.rows = Math.min(TALLEST, this.#box.value.split("\n").length); // where `field-sizing` is unknown
    this.#send.disabled = this.#mode !== "ready" || !this.#sendable;
    this.#attach.disabled = this.#mode === "loading";
  }

  /* The id of what may have reached the server belongs to that very message. */
  #idOf(draft) {
    if (this.#sent !== NOTHING) return this.#id;
    return this.#restored && same(draft, this.#restored) ? this.#restored.id : null;
  }

  #keep(problem = "") {
    const text = [this.#sent.text, this.#box.value].filter((each) => each !== "").join("\n");
    const files = [...this.#sent.files, ...this.#tray.files];
    const draft = { text, files, id: this.#idOf({ text, files }), problem };
    if (text || files.length > 0 || problem) sessionStorage.setItem(this.#key, JSON.stringify(draft));
    else sessionStorage.removeItem(this.#key);
  }
}

function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}
