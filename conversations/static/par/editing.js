/* Edit a message of one's own in its place, and have an answer made again. */

import { newChip, removeChip } from "./chips.js";
import { sends } from "./composer.js";
import { filesOf } from "./files.js";
import { fragment } from "./fragments.js";

const BUSY = "Another answer is being written. It can be sent once that has ended.";
const TALLEST = 8; // lines

export class Editing {
  #page;
  #hooks;

  /* Hooks: isReady(), onEdit(message, {text, files}) sends an edited message, onAgain(message) has one answered again,
     onHomeless({text, files}, problem) takes an edit whose message is no longer part of the conversation. */
  constructor(page, hooks) {
    this.#page = page;
    this.#hooks = hooks;
    page.querySelector("#transcript").addEventListener("click", ({ target }) => {
      const button = target.closest("[data-turn]");
      const message = button?.closest(".message");
      const files = button?.dataset.turn === "edit" ? filesOf(message) : null;
      if (files !== null) this.#open(message, { text: textOf(message), files });
      else if (button?.dataset.turn === "again" && hooks.isReady()) hooks.onAgain(questionOf(message));
    });
    const kept = JSON.parse(sessionStorage.getItem(this.#key) ?? "null");
    const message = kept && page.querySelector(`.message-user[data-message-id="${CSS.escape(kept.id)}"]`);
    if (message) {
      this.#open(message, { files: [], ...kept }, kept.problem);
    } else if (kept) {
      sessionStorage.removeItem(this.#key);
      hooks.onHomeless({ files: [], ...kept }, kept.problem);
    }
  }

  /* Put what was edited back into its message, with what was the matter; it outlives a reload of the page. */
  keep(message, { text, files }, problem) {
    sessionStorage.setItem(this.#key, JSON.stringify({ id: message.dataset.messageId, text, files, problem }));
    this.#open(message, { text, files }, problem);
  }

  get #key() {
    return `par-edit:${this.#page.dataset.person}:${this.#page.dataset.conversationId}`;
  }

  #open(message, { text, files }, problem = "") {
    if (message.querySelector(".edit")) return;
    const form = fragment("edit");
    const box = form.querySelector("textarea");
    box.value = text;
    box.rows = Math.min(TALLEST, text.split("\n").length); // where `field-sizing` is unknown
    const chips = new Chips(form.querySelector(".chips"), files, box);
    const send = () => this.#send(message, form, { text: box.value, files: chips.files });
    say(form, problem);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopPropagation(); // the transcript takes other forms for questions about tools
      send();
    });
    form.querySelector("[data-cancel]").addEventListener("click", () => this.#close(message, form));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#close(message, form);
      if (!sends(event)) return;
      event.preventDefault();
      send();
    });
    message.dataset.editing = "true";
    message.querySelector(".blocks").after(form);
    box.focus();
    box.setSelectionRange(text.length, text.length);
  }

  #send(message, form, said) {
    if (said.text.trim() === "" && said.files.length === 0) return;
    if (!this.#hooks.isReady()) {
      say(form, BUSY);
      return;
    }
    this.#close(message, form);
    this.#hooks.onEdit(message, said);
  }

  #close(message, form) {
    sessionStorage.removeItem(this.#key);
    form.remove();
    delete message.dataset.editing;
    message.querySelector('[data-turn="edit"]').focus();
  }
}

/* The files of the message that is edited: each stays with it unless it is removed. */
class Chips {
  #list;
  #box;

  constructor(list, files, box) {
    this.#list = list;
    this.#box = box;
    this.files = files;
    for (const file of files) this.#show(file);
    list.hidden = files.length === 0;
  }

  #show(file) {
    const element = newChip(file.name);
    element.dataset.state = "ready";
    element.querySelector("[data-remove]").addEventListener("click", () => {
      this.files = this.files.filter((each) => each !== file);
      removeChip(element, this.#box);
      this.#list.hidden = this.files.length === 0;
    });
    this.#list.append(element);
  }
}

function say(form, problem) {
  const line = form.querySelector(".problem");
  line.textContent = problem;
  line.hidden = problem === "";
}

function textOf(message) {
  return [...message.querySelectorAll(":scope > .blocks > .said")].map((part) => part.textContent).join("\n\n");
}

/* The message of a person that an answer answers; the answer itself where the page does not show it. */
function questionOf(message) {
  const all = [...message.closest("#transcript").querySelectorAll(".message")];
  const before = all.slice(0, all.indexOf(message)).reverse();
  return before.find((each) => each.matches(".message-user") && inConversation(each)) ?? message;
}

/* Turns that came to nothing stand between the others. */
function inConversation(message) {
  const run = message.closest(".run");
  return run === null || run.dataset.status === "completed";
}
