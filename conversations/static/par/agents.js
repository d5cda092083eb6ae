/* The choice of an agent on an empty chat, with its suggested prompts. */

export class Agents {
  #page;
  #picker;

  constructor(page, onPrompt) {
    this.#page = page;
    this.#picker = page.querySelector("[data-agent-picker]");
    this.#picker?.addEventListener("change", () => this.#show());
    page.addEventListener("click", ({ target }) => {
      const prompt = target.closest("[data-prompt]");
      if (prompt) onPrompt(prompt.textContent.trim());
    });
    for (const prompt of page.querySelectorAll("[data-prompt]")) prompt.disabled = false;
    this.#show();
  }

  /* The slug of the agent that a message goes to. */
  get chosen() {
    return this.#picker?.value ?? this.#page.dataset.agent;
  }

  /* Whether the chat that is about to begin goes by itself after a while. */
  get temporary() {
    return document.getElementById("temporary")?.checked ?? false;
  }

  /* The chat has begun: no more choice, no more suggestions. */
  leave() {
    this.#page.dataset.agent = this.chosen;
    this.#page.querySelector(".agent-name").hidden = false;
    this.#picker = null;
    document.getElementById("welcome")?.remove();
  }

  #show() {
    for (const panel of this.#page.querySelectorAll("[data-agent-panel]")) {
      panel.hidden = panel.dataset.agentPanel !== this.chosen;
      if (!panel.hidden) this.#name(panel.getAttribute("aria-label"));
    }
  }

  /* Answers bear the name of the agent that gives them. */
  #name(name) {
    this.#page.querySelector(".agent-name").textContent = name;
    document.getElementById("template-assistant").content.querySelector(".who").textContent = name;
  }
}
