/* A message was not sent because the conversation had gone on elsewhere: both stay, and the person says where it goes. */

export class Conflict {
  #panel;
  #person;
  #key = "";
  #seen = null; // the revision that the person had before their eyes

  /* `onSend(place)` sends what is in the box. */
  constructor(panel, person, onSend) {
    this.#panel = panel;
    this.#person = person;
    panel.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-conflict]");
      if (button) onSend(button.dataset.conflict === "branch" ? { fromRevisionId: this.#seen } : {});
    });
  }

  /* What was left open for this conversation is still to be answered. */
  remember(conversationId) {
    this.#key = `par-conflict:${this.#person}:${conversationId ?? "new"}`;
    this.#show(sessionStorage.getItem(this.#key));
  }

  /* `seen` is the revision that the page had shown; empty where there was none. */
  open(seen) {
    sessionStorage.setItem(this.#key, seen);
    this.#show(seen);
  }

  close() {
    sessionStorage.removeItem(this.#key);
    this.#show(null);
  }

  #show(seen) {
    this.#seen = seen;
    this.#panel.hidden = seen === null;
    this.#panel.querySelector('[data-conflict="branch"]').hidden = !seen;
  }
}
