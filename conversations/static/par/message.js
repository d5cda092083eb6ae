/* One message of the page: its blocks in order, kept as long as their kinds stay the same. */

import { fragment, setText } from "./fragments.js";
import { ToolCard } from "./toolcard.js";

const FRAGMENTS = { text: "answer", reasoning: "reasoning", image: "picture" };

const written = (block) => block.type === "text" || block.type === "reasoning";

/* Blocks without a word in them are not shown; the server leaves them out of stored messages too. */
const visible = (block) => !written(block) || block.text.trim() !== "";

export class MessageView {
  #rendered;
  #id;
  #drawn = []; // {kind, callId, element, card}

  constructor(role, id, rendered) {
    this.role = role;
    this.#id = id;
    this.#rendered = rendered;
    this.element = fragment(role);
    this.element.dataset.messageId = id;
    this.list = this.element.querySelector(".blocks");
  }

  get cards() {
    return this.#drawn.filter(({ card }) => card).map(({ card }) => card);
  }

  /* `stored` tells a stable message from one that is being written; `facts(callId)` gives what its card shows. */
  draw(blocks, { stored, ended, facts }) {
    const shown = blocks.filter(visible);
    const indexes = stored ? this.#rendered.indexes(this.#id) : [];
    let nth = 0;
    shown.forEach((block, at) => {
      const item = this.#item(at, block);
      if (this.role === "user") {
        setText(item.element, block.type === "text" ? block.text : "Picture");
      } else if (written(block)) {
        this.#drawText(item, block, stored ? indexes[nth++] : block.index, ended);
        if (block.type === "reasoning") this.#fold(item, !stored && !block.stopped && !ended);
      } else if (block.type === "tool-call") {
        item.card.draw(stored ? block : { name: block.name, text: block.text }, facts(block.callId));
      }
    });
    this.#cut(shown.length);
  }

  #item(at, block) {
    const known = this.#drawn[at];
    if (known && known.kind === block.type && known.callId === block.callId) return known;
    this.#cut(at);
    const card = block.type === "tool-call" ? new ToolCard(block.callId) : null;
    const name = this.role === "user" ? "said" : FRAGMENTS[block.type];
    const element = card ? card.element : fragment(name);
    const item = { kind: block.type, callId: block.callId, element, card, folded: null };
    this.#drawn.push(item);
    this.list.append(element);
    return item;
  }

  #cut(length) {
    for (const { element } of this.#drawn.splice(length)) element.remove();
  }

  /* The server's HTML; the bare text only where a run ended without any. */
  #drawText(item, block, index, ended) {
    const place = item.element.matches(".prose") ? item.element : item.element.querySelector(".prose");
    if (place.dataset.bare && this.#rendered.indexes(this.#id).includes(index)) {
      place.textContent = "";
      delete place.dataset.bare;
    }
    if (!this.#rendered.paint(place, this.#id, index) && ended && place.childElementCount === 0) {
      place.dataset.bare = "true";
      setText(place, block.text);
    }
  }

  /* Reasoning is open while it is written and closes once; after that it is the reader's. */
  #fold(item, open) {
    if (item.folded === !open) return;
    item.folded = !open;
    item.element.open = open;
  }
}
