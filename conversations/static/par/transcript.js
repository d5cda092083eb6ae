/* All runs that this page has seen, below the stored messages that came with it. */

import { addCopying, listenForCopying } from "./copying.js";
import { Cut } from "./cut.js";
import { announce } from "./fragments.js";
import { Rendered } from "./rendered.js";
import { RunView } from "./run.js";
import { noticeOf } from "./words.js";

const NEAR = 120; // pixels from the end within which the reader counts as being at it

export class Transcript {
  #root;
  #rendered = new Rendered();
  #runs = new Map(); // execution id -> {view, state, asked}
  #complete; // ids of the ended runs that came with the page
  #expected = null;
  #cut = null; // what the expected run takes the place of
  #cuts = new Map(); // execution id -> what it takes the place of
  #changed = new Set();
  #due = false;
  #waiting = [];
  #atEnd = true;
  #newest;

  /* `newest` is the button that leads to what came below while somebody read above. */
  constructor(root, newest) {
    this.#root = root;
    this.#newest = newest;
    addCopying(root);
    listenForCopying(root);
    this.#complete = new Set([...root.querySelectorAll(".run")].map(({ dataset }) => dataset.executionId));
    addEventListener("scroll", () => this.#scrolled(), { passive: true });
    newest.addEventListener("click", () => this.#toNewest());
    new ResizeObserver(() => this.#follow()).observe(root);
    this.#follow();
  }

  #scrolled() {
    this.#atEnd = distance() < NEAR;
    if (this.#atEnd) this.#newest.hidden = true;
  }

  #toNewest() {
    this.#atEnd = true;
    this.#newest.hidden = true;
    toEnd();
  }

  /* An empty chat is read from its beginning. */
  #follow() {
    if (this.#atEnd && this.#root.firstElementChild !== null) toEnd();
  }

  /* Show a message that is on its way to the server, in the `place` of another one and all that follows it; without a
     blocks it is that message again. */
  expect(blocks, place = null) {
    this.#expected = new RunView(this.#rendered);
    if (blocks === null) this.#expected.expectAgain(place.cloneNode(true));
    else this.#expected.expect(blocks);
    this.#cut = place && new Cut(this.#root, place);
    this.#root.append(this.#expected.element);
    this.#toNewest();
  }

  /* The server has taken the message up as this run. */
  accept(executionId) {
    const expected = this.#expected;
    this.#expected = null;
    if (expected === null) return;
    if (this.#cut) this.#cuts.set(executionId, this.#cut);
    this.#cut = null;
    if (this.#runs.has(executionId)) expected.element.remove();
    else this.#runs.set(executionId, { view: expected, state: null, asked: null });
    this.#settle(executionId);
  }

  /* The server refused the message. */
  withdraw() {
    this.#expected?.element.remove();
    this.#expected = null;
    this.#cut?.undo();
    this.#cut = null;
  }

  /* A run that was begun elsewhere takes the place of this message and all that follows it. */
  replace(executionId, message) {
    const run = this.#runs.get(executionId);
    if (!run || this.#cuts.has(executionId) || run.view.element.contains(message)) return;
    this.#cuts.set(executionId, new Cut(this.#root, message, run.view.element));
    this.#settle(executionId);
  }

  /* A run does not belong to what is shown. */
  forget(executionId) {
    this.#runs.get(executionId)?.view.element.remove();
    this.#runs.delete(executionId);
  }

  /* Bring a part into view and stay there. */
  lookAt(element) {
    this.#atEnd = false;
    element.scrollIntoView({ block: "center" });
  }

  /* Resolves when everything is drawn that is known. */
  drawn() {
    return this.#due ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve();
  }

  message(id) {
    return this.#root.querySelector(`.message[data-message-id="${CSS.escape(id)}"]`);
  }

  run(executionId) {
    return this.#root.querySelector(`.run[data-execution-id="${CSS.escape(executionId)}"]`);
  }

  /* What a run took the place of is gone once the run is stored, and back where it came to nothing. */
  #settle(executionId) {
    const { state, view } = this.#runs.get(executionId);
    if (!state?.ended || !this.#cuts.has(executionId)) return;
    if (state.revision) this.#cuts.get(executionId).drop();
    else this.#cuts.get(executionId).undo(view.element);
    this.#cuts.delete(executionId);
  }

  /* A run has a new state; `event` is what changed it, null after a snapshot. */
  update(state, event) {
    if (this.#complete.has(state.executionId)) {
      if (state.revision) this.keep(state.executionId, state.revision.version);
      return;
    }
    if (!this.#runs.has(state.executionId)) {
      const view = new RunView(this.#rendered);
      this.#runs.set(state.executionId, { view, state, asked: null });
      this.#root.insertBefore(view.element, this.#expected?.element ?? null);
    }
    const run = this.#runs.get(state.executionId);
    if (run.kept) return;
    if (state.revision && run.state?.ended && !run.state.revision) {
      this.keep(state.executionId, state.revision.version);
      return;
    }
    run.state = state;
    this.#settle(state.executionId);
    if (state.interrupt) this.#asked(run, state);
    if (event?.type === "interrupt-resolved") this.#answered(run, event);
    if (event?.type === "execution-started") announce(`${agentName()} is answering.`);
    if (event?.type === "execution-completed" || event?.type === "execution-failed") {
      announce(noticeOf(state)?.text ?? "The answer is complete.");
    }
    this.#later(run);
  }

  /* A turn that had not ended well is part of the conversation from now on. It stays as it was drawn: the server keeps
     less of a half-written message than was seen, and numbers its blocks anew. */
  keep(executionId, version) {
    const run = this.#runs.get(executionId);
    if (run?.kept) return;
    if (run?.state) {
      run.kept = true;
      run.state.revision ??= { version };
      this.#end(run.view.element);
      this.#later(run);
      return;
    }
    const element = this.run(executionId);
    if (element === null || element.dataset.status === "completed") return; // taken away since, or kept before
    element.dataset.status = "completed";
    element.querySelector(":scope > .notice")?.remove();
    this.#end(element);
  }

  /* The conversation ends with this turn from now on; others that came to nothing stand before it. */
  #end(element) {
    let beside = true;
    let next = element.nextElementSibling;
    while (next !== null && next !== this.#expected?.element) {
      const following = next.nextElementSibling;
      beside &&= next.matches(".run:is([data-status=failed], [data-status=cancelled])");
      if (beside) element.before(next);
      else next.remove();
      next = following;
    }
  }

  store(frame) {
    if (this.#runs.get(frame.executionId)?.kept) return;
    this.#rendered.store(frame);
    this.redraw(frame.executionId);
  }

  redraw(executionId) {
    const run = this.#runs.get(executionId);
    if (run?.state) this.#later(run);
  }

  card(executionId, callId) {
    return this.#runs.get(executionId)?.view.card(callId) ?? null;
  }

  #asked(run, { interrupt, interruptCallId }) {
    if (run.asked?.interruptId === interrupt.id) return;
    run.asked = { interruptId: interrupt.id, callId: interruptCallId };
    announce(`The agent asks before it uses ${interrupt.tool.name}. Approve or reject it.`);
  }

  #answered(run, { interruptId, decision, arguments: changed }) {
    if (run.asked?.interruptId !== interruptId) return;
    run.view.decisions.set(run.asked.callId, { kind: decision, arguments: changed });
    if (decision === "timeout") announce("The question was not answered in time.");
  }

  /* Draw with the next frame of the screen, or soon where nobody looks. */
  #later(run) {
    this.#changed.add(run);
    if (this.#due) return;
    this.#due = true;
    if (document.hidden) setTimeout(() => this.#draw(), 200);
    else requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#due = false;
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const { view, state } of changed) view.draw(state);
    for (const resolve of this.#waiting.splice(0)) resolve();
    if (!this.#atEnd) this.#newest.hidden = false;
  }
}

function agentName() {
  return document.querySelector(".agent-name").textContent.trim();
}

function distance() {
  const page = document.documentElement;
  return page.scrollHeight - page.clientHeight - page.scrollTop;
}

function toEnd() {
  document.documentElement.scrollTop = document.documentElement.scrollHeight;
}
