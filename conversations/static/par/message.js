/* One message of the page: its blocks in order, kept as long as their kinds stay the same. */

import { drawFile, drawPicture, quotedFile } from "./files.js";
import { fragment, setText } from "./fragments.js";
import { ToolCard } from "./toolcard.js";

const FRAGMENTS = { text: "answer", reasoning: "reasoning", image: "picture", file: "file" };

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
    const indexes = this.#indexes(blocks, stored);
    shown.forEach((block, at) => {
      const item = this.#item(at, block);
      if (block.type === "image") {
        drawPicture(item.element, block);
      } else if (item.kind === "file") {
        drawFile(item.element, quotedFile(block.text));
      } else if (this.role === "user") {
        setText(item.element, block.text);
      } else if (written(block)) {
        this.#drawText(item, block, indexes.get(block), ended);
        if (block.type === "reasoning") this.#fold(item, !stored && !block.stopped && !ended);
      } else if (block.type === "tool-call") {
        item.card.draw(stored ? block : { name: block.name, text: block.text }, facts(block.callId));
      }
    });
    this.#cut(shown.length);
  }

  /* Under which index the server renders each block; a stored message has only their order, and invisible ones count. */
  #indexes(blocks, stored) {
    const known = stored ? this.#rendered.indexes(this.#id) : [];
    return new Map(blocks.filter(written).map((block, nth) => [block, stored ? known[nth] : block.index]));
  }

  #item(at, block) {
    const known = this.#drawn[at];
    const kind = this.role === "user" && block.type === "text" && quotedFile(block.text) ? "file" : block.type;
    if (known && known.kind === kind && known.callId === block.callId) return known;
    this.#cut(at);
    const card = block.type === "tool-call" ? new ToolCard(block.callId) : null;
    const name = this.role === "user" && kind === "text" ? "said" : FRAGMENTS[kind];
    const element = card ? card.element : fragment(name);
    const item = { kind, callId: block.callId, element, card, folded: null };
    this.#drawn.push(item);
    this.list.append(element);
    return item;
  }

  #cut(length) {
    for (const { element } of this.#drawn.splice(length)) element.remove();
  }

  /* The server's HTML; the bare text where a run has ended and some of that is missing. */
  #drawText(item, block, index, ended) {
    const place = item.element.matches(".prose") ? item.element : item.element.querySelector(".prose");
    if (ended && !this.#rendered.complete(this.#id, index)) {
      place.dataset.bare = "true";
      setText(place, block.text);
      return;
    }
    if (place.dataset.bare) {
      place.textContent = "";
      delete place.dataset.bare;
    }
    this.#rendered.paint(place, this.#id, index);
  }

  /* Reasoning is open while it is written and closes once; after that it is the reader's. */
  #fold(item, open) {
    if (item.folded === !open) return;
    item.folded = !open;
    item.element.open = open;
  }
}
