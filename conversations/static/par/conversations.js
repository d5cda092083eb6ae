/* The list of conversations at the side. */

import { fragment } from "./fragments.js";

const DAY = 86_400_000; // milliseconds

export class ConversationList {
  constructor(list) {
    this.list = list;
    for (const time of list.querySelectorAll("time")) localise(time);
  }

  /* Put a conversation first and mark it as the one on the page; a new one is made from its first words. */
  promote(id, address, opening) {
    let item = this.list.querySelector(`[data-conversation-id="${CSS.escape(id)}"]`);
    if (item === null) {
      item = fragment("conversation");
      item.dataset.conversationId = id;
      item.querySelector("a").href = address;
      item.querySelector(".title").textContent = opening;
      document.getElementById("no-conversations")?.remove();
    }
    for (const link of this.list.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    item.querySelector("a").setAttribute("aria-current", "page");
    const time = item.querySelector("time");
    time.dateTime = new Date().toISOString();
    localise(time);
    this.list.prepend(item);
  }

  /* Show whether an answer is being written in a conversation, or waits for a person. */
  mark(id, { ended, interrupt }) {
    const item = this.list.querySelector(`[data-conversation-id="${CSS.escape(id)}"]`);
    if (item === null) return; // on another page of the list
    if (ended) delete item.dataset.run;
    else item.dataset.run = interrupt ? "waiting" : "running";
  }
}

/* The hour for the last day, the date before that, in the reader's own zone. */
function localise(time) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.getTime())) return;
  const recent = Date.now() - moment.getTime() < DAY;
  const style = recent ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  time.textContent = moment.toLocaleString(undefined, style);
}
