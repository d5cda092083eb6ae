/* The line that says that there is no connection, once that has lasted long enough to be worth a word. */

import { announce } from "./fragments.js";

const PATIENCE = 1500; // milliseconds

export class ConnectionLine {
  #line;
  #worry = null;

  constructor(line) {
    this.#line = line;
  }

  show(state, message) {
    clearTimeout(this.#worry);
    if (state === "open") {
      if (!this.#line.hidden) announce("Connected again.");
      this.#line.hidden = true;
      return;
    }
    const say = () => {
      this.#line.textContent = message ?? "No connection to the server. Trying again…";
      this.#line.hidden = false;
    };
    if (state === "closed") say();
    else this.#worry = setTimeout(say, this.#line.hidden ? PATIENCE : 0);
  }
}
