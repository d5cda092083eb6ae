/* The HTML that the server made of a run's text and reasoning. This is the one place where HTML enters the page:
   it comes from conversations/rendering.py, which lets nothing through but a short list of harmless tags. */

import { addCopying } from "./copying.js";

const NOTHING = new Map();

export class Rendered {
  #messages = new Map(); // message id -> block index -> part number -> {html, final}
  #painted = new WeakMap(); // element of a part -> the html in it

  store({ messageId, blockIndex, part, html, final }) {
    if (!this.#messages.has(messageId)) this.#messages.set(messageId, new Map());
    const blocks = this.#messages.get(messageId);
    if (!blocks.has(blockIndex)) blocks.set(blockIndex, new Map());
    blocks.get(blockIndex).set(part, { html, final });
  }

  /* Whether all of a block is here, as far as can be told: its parts are final. */
  complete(messageId, blockIndex) {
    const parts = [...this.#parts(messageId, blockIndex).values()];
    return parts.length > 0 && parts.every(({ final }) => final);
  }

  /* The block indexes of a message that have HTML, ascending. */
  indexes(messageId) {
    return [...(this.#messages.get(messageId) ?? NOTHING).keys()].sort((one, other) => one - other);
  }

  /* Bring the parts of a block into `element`. */
  paint(element, messageId, blockIndex) {
    for (const [number, { html }] of this.#parts(messageId, blockIndex)) {
      while (element.children.length <= number) element.append(document.createElement("div"));
      const place = element.children[number];
      if (this.#painted.get(place) === html) continue;
      place.innerHTML = html;
      this.#painted.set(place, html);
      addCopying(place);
    }
  }

  #parts(messageId, blockIndex) {
    return this.#messages.get(messageId)?.get(blockIndex) ?? NOTHING;
  }
}
