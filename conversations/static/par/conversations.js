/* The list of conversations at the side. */

import { fragment } from "./fragments.js";

const DAY = 86_400_000; // milliseconds

export class ConversationList {
  #place;
  #pinned;
  #others;

  constructor(place) {
    this.#place = place;
    this.#pinned = place.querySelector("#pinned");
    this.#others = place.querySelector("#conversations");
    for (const time of place.querySelectorAll("time")) localise(time);
  }

  /* Put a conversation first and mark it as the one on the page. */
  promote(id, address, title, { temporary = false } = {}) {
    const item = this.#find(id) ?? this.#make(id, address, title, temporary);
    for (const link of this.#place.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    item.querySelector("a").setAttribute("aria-current", "page");
    const time = item.querySelector("time");
    time.dateTime = new Date().toISOString();
    localise(time);
    (item.parentElement ?? this.#others).prepend(item);
  }

  /* A conversation has another name or other marks. */
  update({ conversationId, title, pinned, temporary, status }, address) {
    let item = this.#find(conversationId);
    if ((status === "archived") !== (this.#place.dataset.archived === "true")) {
      item?.remove();
    } else {
      item ??= this.#make(conversationId, address, title, temporary);
      item.querySelector("a").setAttribute("aria-current", "page");
      item.querySelector(".title").textContent = title ?? "Untitled chat";
      item.querySelector("[data-temporary]").hidden = !temporary;
      const list = pinned ? this.#pinned : this.#others;
      if (item.parentElement !== list) list.prepend(item);
    }
    this.#pinned.parentElement.hidden = this.#pinned.firstElementChild === null;
  }

  #find(id) {
    return this.#place.querySelector(`[data-conversation-id="${CSS.escape(id)}"]`);
  }

  #make(id, address, title, temporary) {
    const item = fragment("conversation");
    item.dataset.conversationId = id;
    item.querySelector("a").href = address;
    item.querySelector(".title").textContent = title;
    item.querySelector("[data-temporary]").hidden = !temporary;
    document.getElementById("no-conversations")?.remove();
    return item;
  }

  /* Show whether an answer is being written in a conversation, or waits for a person. */
  mark(id, { ended, interrupt }) {
    const item = this.#find(id);
    if (item === null) return; // on another page of the list
    if (ended) delete item.dataset.run;
    else item.dataset.run = interrupt ? "waiting" : "running";
  }
}

/* The hour for the last day, the date before that, in the reader's own zone. */
export function localise(time) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  const recent = Date.now() - moment.getTime() < DAY;
  const style = recent ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  time.textContent = moment.toLocaleString(undefined, style);
}
