/* The end of a transcript, out of view while something else is written in its place. */

export class Cut {
  #nodes = [];
  #mark = document.createComment("");

  /* `message` is the first that goes; the run that `stays` is not taken along. */
  constructor(root, message, stays = null) {
    let node = message;
    while (node.parentElement !== root) node = node.parentElement;
    node.before(this.#mark);
    while (node !== null) {
      const next = node.nextElementSibling;
      if (node !== stays) {
        this.#nodes.push(node);
        node.remove();
      }
      node = next;
    }
  }

  /* Put everything back: after what was written meanwhile, if that is to stay. */
  undo(written = null) {
    if (written === null) this.#mark.replaceWith(...this.#nodes);
    else written.after(...this.#nodes);
    this.drop();
  }

  /* What was cut off is not coming back. */
  drop() {
    this.#mark.remove();
    this.#nodes = [];
  }
}
