/* One run on the page: drawn from its state as often as the state changes. */

import { quotedFile } from "./files.js";
import { fragment } from "./fragments.js";
import { MessageView } from "./message.js";
import { noticeOf } from "./words.js";

export class RunView {
  #messages = new Map();
  #rendered;
  #notice = null;
  #expected = null;

  constructor(rendered) {
    this.#rendered = rendered;
    this.element = document.createElement("div");
    this.element.className = "run";
    this.decisions = new Map(); // call id -> {kind, arguments}, as this page saw it decided
  }

  /* Show what was typed until the run's own messages are there. */
  expect(blocks) {
    const view = new MessageView("user", "expected", this.#rendered);
    view.draw(blocks, { stored: true });
    this.expectAgain(view.element);
  }

  /* Likewise with a message that was shown before and is answered anew. */
  expectAgain(element) {
    this.#expected = { element };
    this.element.append(element);
  }

  draw(state) {
    this.element.dataset.executionId = state.executionId ?? "";
    this.element.dataset.status = state.revision ? "completed" : state.status;
    const results = resultsOf(state.messages);
    const facts = (callId) => ({
      tool: state.tools.get(callId),
      result: results.get(callId),
      interrupt: state.interruptCallId === callId ? state.interrupt : null,
      ended: state.ended,
      decision: this.decisions.get(callId),
      whole: `${basePath()}/executions/${state.executionId}/tool-results/${encodeURIComponent(callId)}`,
    });
    const wanted = this.#expected && state.messages.length === 0 ? [this.#expected] : [];
    for (const message of state.messages) {
      if (message.role !== "user" && message.role !== "assistant") continue;
      const view = this.#view(message.role, message.id);
      view.draw(message.blocks, { stored: true, ended: state.ended, facts });
      wanted.push(view);
    }
    if (state.messageId !== null) {
      const view = this.#view("assistant", state.messageId);
      view.draw(state.streamed, { stored: false, ended: state.ended, facts });
      wanted.push(view);
    }
    this.#arrange(wanted);
    this.#drawNotice(state);
  }

  /* The card of a call, if it is here. */
  card(callId) {
    for (const view of this.#messages.values()) {
      const card = view.cards.find(({ element }) => element.dataset.callId === callId);
      if (card) return card;
    }
    return null;
  }

  #view(role, id) {
    if (!this.#messages.has(id)) this.#messages.set(id, new MessageView(role, id, this.#rendered));
    return this.#messages.get(id);
  }

  #arrange(wanted) {
    if (!wanted.includes(this.#expected)) this.#expected?.element.remove();
    for (const [id, view] of this.#messages) {
      if (wanted.includes(view)) continue;
      view.element.remove();
      this.#messages.delete(id);
    }
    wanted.forEach(({ element }, at) => {
      if (this.element.children[at] !== element) this.element.insertBefore(element, this.element.children[at] ?? null);
    });
  }

  /* Whether the message can be sent again from here: it is one text, and the box holds no more than that. */
  #repeatable({ messages }) {
    const blocks = messages.find(({ role }) => role === "user")?.blocks;
    if (!blocks) return this.#expected !== null;
    return blocks.length === 1 && blocks[0].type === "text" && quotedFile(blocks[0].text) === null;
  }

  #drawNotice(state) {
    const notice = state.ended ? noticeOf(state) : null;
    const kind = notice?.kind ?? null;
    if (this.#notice?.dataset.kind === kind || (kind === null && this.#notice === null)) return;
    this.#notice?.remove();
    this.#notice = null;
    if (kind === null) return;
    this.#notice = fragment(`notice-${kind}`);
    this.#notice.querySelector(".notice-text").textContent = notice.text;
    const detail = this.#notice.querySelector(".notice-detail");
    detail.textContent = notice.detail;
    detail.hidden = notice.detail === "";
    for (const adopt of this.#notice.querySelectorAll('[data-offer="adopt"], [data-offer="branch"]')) {
      adopt.hidden = !notice.begun;
    }
    const again = this.#notice.querySelector('[data-offer="again"]');
    if (again) again.hidden = !this.#repeatable(state);
    this.element.append(this.#notice);
  }
}

const basePath = () => document.getElementById("main").dataset.basePath;

function resultsOf(messages) {
  const results = new Map();
  for (const message of messages) {
    for (const block of message.blocks) if (block.type === "tool-result") results.set(block.callId, block);
  }
  return results;
}
