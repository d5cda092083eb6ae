/* Turns that do not begin at the end of what the page shows, and the versions of a turn. */

import { announce, fragment } from "./fragments.js";
import { call } from "./http.js";
import { nameRevision } from "./revisions.js";
import { sentence } from "./words.js";

const SWITCHED = "par-switched"; // the version that was chosen last, for the page that then shows it
const SHOWN = "shown";
const HIDDEN = "hidden"; // it belongs to another branch

export class Branches {
  #page;
  #transcript;
  #hooks;
  #runs = new Map(); // execution id -> SHOWN | HIDDEN
  #asked = new Set(); // ids of those whose place is being asked for
  #branched = new Set(); // ids of those that took the place of something

  /* Hooks: onKnown(state) when a run has its place, onChange(conversation) after a change, onProblem(text). */
  constructor(page, transcript, hooks) {
    this.#page = page;
    this.#transcript = transcript;
    this.#hooks = hooks;
    page.querySelector("#transcript").addEventListener("click", ({ target }) => {
      const button = target.closest("[data-sibling]");
      if (button?.dataset.sibling === "name") this.#name(button.closest(".versions"));
      else if (button) this.#switch(button);
    });
    this.#greet();
  }

  /* Whether the page shows the conversation as it was, not as it is. */
  get earlier() {
    return this.#page.dataset.revision !== "";
  }

  get address() {
    return this.#page.dataset.conversationPath.replace(this.#page.dataset.noId, this.#page.dataset.conversationId);
  }

  get #conversation() {
    return `${this.#page.dataset.basePath}/conversations/${this.#page.dataset.conversationId}`;
  }

  /* A run that was begun here stands where the page has put it. `branched` tells that it is another version of a turn,
     `elsewhere` that it began at a revision that need not be the last one shown. */
  begun(state, { branched = false, elsewhere = false } = {}) {
    this.#runs.set(state.executionId, SHOWN);
    if (branched) this.#branched.add(state.executionId);
    if (elsewhere) this.#find(state);
  }

  /* Tell whether a run may be drawn. Of one that was begun elsewhere the place is asked for, once; meanwhile one that is
     live stands at the end, where it nearly always belongs. While this page starts a run, it may be that. */
  takes(state, starting) {
    const { executionId } = state;
    if (!this.#runs.has(executionId)) {
      if (starting) return true;
      this.#runs.set(executionId, state.ended || this.earlier ? HIDDEN : SHOWN);
      this.#find(state);
    } else if (this.#runs.get(executionId) === HIDDEN && state.revision && !this.#asked.has(executionId)) {
      this.#outdated();
    }
    return this.#runs.get(executionId) === SHOWN;
  }

  /* A turn is stored, and the end of what is shown: it may have other versions. */
  async stored(executionId) {
    const { dataset } = this.#page;
    const wanted = this.#branched.has(executionId) || this.earlier || dataset.later === "true";
    if (this.earlier) this.#catchUp();
    dataset.later = "";
    document.getElementById("later")?.remove();
    if (!wanted) return;
    const { versions } = await this.#ask(executionId);
    await this.#transcript.drawn();
    const message = this.#transcript.run(executionId)?.querySelector(".message");
    if (versions && message) this.#show(message, versions);
  }

  async #ask(executionId) {
    const { head } = this.#page.dataset;
    return call("GET", `${this.address}runs/${executionId}/${head ? `?seen=${head}` : ""}`).catch(() => ({ onPath: true }));
  }

  async #find(state) {
    const { executionId } = state;
    this.#asked.add(executionId);
    const { onPath, before, revisionId } = await this.#ask(executionId);
    this.#asked.delete(executionId);
    const message = before ? this.#transcript.message(before) : null;
    if (onPath && (!before || message)) {
      this.#runs.set(executionId, SHOWN);
      if (message) this.#branched.add(executionId);
      this.#hooks.onKnown(state);
      if (message) this.#transcript.replace(executionId, message);
      return;
    }
    this.#runs.set(executionId, HIDDEN);
    this.#transcript.forget(executionId);
    if (state.revision || revisionId) this.#outdated();
  }

  /* The conversation stands on a branch that this page does not show. */
  #outdated() {
    if (!this.earlier) location.reload();
  }

  /* The earlier version has been gone on from: this is the conversation now. */
  #catchUp() {
    this.#page.dataset.revision = "";
    document.getElementById("earlier")?.remove();
    history.replaceState(null, "", this.address);
  }

  #show(message, { revisionId, at, count, previous, next, label }) {
    const versions = fragment("versions");
    versions.dataset.revisionId = revisionId;
    versions.querySelector(".versions-words").textContent = `Version ${at} of ${count}`;
    versions.querySelector(".versions-at").textContent = `${at}/${count}`;
    versions.querySelector(".versions-label").textContent = label;
    for (const [name, value] of [["previous", previous], ["next", next]]) {
      const button = versions.querySelector(`[data-sibling="${name}"]`);
      button.value = value ?? "";
      button.disabled = value === null;
    }
    message.querySelector(".versions")?.remove();
    message.querySelector(".message-actions").prepend(versions);
  }

  async #switch(button) {
    if (this.earlier) {
      location.assign(`?revision=${button.value}`);
      return;
    }
    button.disabled = true;
    try {
      const body = { revisionId: button.value, newest: true };
      await call("POST", `${this.#conversation}/restore`, body);
      sessionStorage.setItem(SWITCHED, JSON.stringify([button.value, button.dataset.sibling]));
      location.assign(this.address);
    } catch (error) {
      button.disabled = false;
      this.#hooks.onProblem(sentence(error));
    }
  }

  /* The page was loaded to show another version: this is where the person looked. */
  #greet() {
    const [id, direction] = JSON.parse(sessionStorage.getItem(SWITCHED) ?? "[]");
    sessionStorage.removeItem(SWITCHED);
    const versions = id && this.#page.querySelector(`.versions[data-revision-id="${CSS.escape(id)}"]`);
    if (!versions) return;
    const buttons = [versions.querySelector(`[data-sibling="${direction}"]`), ...versions.querySelectorAll("button")];
    buttons.find((button) => !button.disabled).focus({ preventScroll: true });
    this.#transcript.lookAt(versions);
    announce(`${versions.querySelector(".versions-words").textContent}.`);
  }

  async #name(versions) {
    const label = versions.querySelector(".versions-label");
    const { revisionId } = versions.dataset;
    try {
      const named = await nameRevision(this.#conversation, revisionId, "Name this version", label.textContent);
      if (named === null) return;
      label.textContent = named.name;
      this.#hooks.onChange(named.conversation);
    } catch (error) {
      this.#hooks.onProblem(sentence(error));
    }
  }
}
