/* The menu of a conversation: its name, its marks, and what else can be done with it. */

import { ask } from "./ask.js";
import { announce } from "./fragments.js";
import { call } from "./http.js";
import { sentence } from "./words.js";

export class Menu {
  #menu;
  #page;
  #hooks;

  /* Hooks: onChange(conversation), onProblem(text); version() gives the one that the page knows. */
  constructor(menu, page, hooks) {
    this.#menu = menu;
    this.#page = page;
    this.#hooks = hooks;
    menu.addEventListener("click", ({ target }) => {
      const button = target.closest("[data-menu], [data-toggle]");
      if (!button) return;
      this.#close();
      this.#do(button).catch((error) => this.#hooks.onProblem(sentence(error)));
    });
    menu.addEventListener("keydown", ({ key }) => key === "Escape" && menu.open && this.#close());
    document.addEventListener("pointerdown", ({ target }) => menu.contains(target) || (menu.open = false));
    menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget !== null && !menu.contains(relatedTarget)) menu.open = false;
    });
  }

  /* A new chat has become this conversation. */
  appear(conversationId, temporary) {
    for (const link of this.#menu.querySelectorAll("a")) {
      link.href = link.getAttribute("href").replace(this.#page.dataset.noId, conversationId);
    }
    this.#menu.hidden = false;
    this.#mark("temporary", temporary);
  }

  get #address() {
    return `${this.#page.dataset.basePath}/conversations/${this.#page.dataset.conversationId}`;
  }

  #close() {
    this.#menu.open = false;
    this.#menu.querySelector("summary").focus();
  }

  #do(button) {
    if (button.dataset.toggle) return this.#toggle(button);
    switch (button.dataset.menu) {
      case "rename":
        return this.#rename();
      case "tags":
        return this.#tag();
      case "reset":
        return this.#reset();
      case "fork":
        return this.#fork();
      default:
        return this.#delete();
    }
  }

  async #change(changes) {
    const { conversation } = await call("PATCH", this.#address, changes);
    this.#hooks.onChange(conversation);
  }

  async #toggle({ dataset: { toggle, said }, value }) {
    const on = value === "true";
    await this.#change({ [toggle]: on });
    this.#mark(toggle, on);
    announce(said);
  }

  /* Offer the opposite of what holds now, and show what holds where that is to be seen. */
  #mark(toggle, on) {
    for (const button of this.#menu.querySelectorAll(`[data-toggle="${toggle}"]`)) button.hidden = button.value === String(on);
    const mark = document.querySelector(`[data-mark="${toggle}"]`);
    if (mark) mark.hidden = !on;
  }

  async #rename() {
    const title = await ask({
      title: "Rename this conversation",
      label: "Title",
      value: document.querySelector("h1").textContent.trim(),
      action: "Rename",
    });
    if (title) await this.#change({ title });
  }

  async #tag() {
    const button = this.#menu.querySelector('[data-menu="tags"]');
    const given = await ask({
      title: "Tags",
      label: "Words to find it by, with commas between them",
      value: button.value,
      most: 1000,
      action: "Save",
    });
    if (given === null) return;
    const tags = given.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
    await this.#change({ tags });
    button.value = tags.join(", ");
  }

  async #reset() {
    const sure = await ask({
      title: "Drop the model's own notes?",
      text: "What the model keeps for itself, such as its signed thoughts, is dropped. All messages stay.",
      action: "Drop them",
    });
    if (sure === null) return;
    const { conversation } = await call("POST", `${this.#address}/reset-model-state`, { revision: this.#hooks.version() });
    this.#hooks.onChange(conversation);
    announce("The model's own notes are dropped.");
  }

  async #fork() {
    const { revision } = this.#page.dataset;
    const { conversation } = await call("POST", `${this.#address}/fork`, revision ? { revisionId: revision } : {});
    location.assign(this.#page.dataset.conversationPath.replace(this.#page.dataset.noId, conversation.conversationId));
  }

  async #delete() {
    const sure = await ask({
      title: "Delete this conversation?",
      text: "All its messages and versions go with it, and an answer that is being written stops. It cannot be brought back.",
      action: "Delete",
      danger: true,
    });
    if (sure === null) return;
    await call("DELETE", this.#address);
    location.replace("/");
  }
}
