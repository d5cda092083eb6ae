/* The card of one tool call: arguments, progress, the question to a person, the result. */

import { fragment, setText } from "./fragments.js";

const DECISIONS = {
  approved: "Approved",
  modified: "Approved with other arguments",
  rejected: "Rejected",
  timeout: "Not answered in time",
};
const DENIED = new Set(["rejected", "timeout"]);

export class ToolCard {
  constructor(callId) {
    this.element = fragment("tool");
    this.element.dataset.callId = callId;
    this.asked = false;
  }

  /* `call` is {name, input} or, while the model writes it, {name, text}; the rest comes from the state of the run. */
  draw(call, facts) {
    setText(this.#part("name"), call.name);
    this.element.setAttribute("aria-label", `Tool call: ${call.name}`);
    const input = facts.decision?.arguments ?? call.input; // what is run, not what was proposed
    setText(this.#part("arguments-text"), input ? JSON.stringify(input, null, 2) : call.text);
    this.element.dataset.status = status(call, facts);
    this.#drawProgress(facts);
    this.#drawQuestion(facts.interrupt);
    this.#drawDecision(facts.decision);
    this.#drawResult(facts.result);
  }

  #part(name) {
    return this.element.querySelector(`.tool-${name}`);
  }

  #drawProgress({ tool, result }) {
    const line = tool && !result ? (tool.progress.at(-1) ?? "") : "";
    setText(this.#part("progress"), line);
    this.#part("progress").hidden = line === "";
  }

  #drawQuestion(interrupt) {
    const asks = interrupt !== null;
    if (asks === this.asked) return;
    this.asked = asks;
    const question = this.#part("question");
    const hadFocus = question.contains(document.activeElement);
    question.hidden = !asks;
    if (asks) {
      this.element.dataset.interruptId = interrupt.id;
      this.#part("arguments").open = true; // nobody should agree to what they cannot see
      this.#say("why", interrupt.reason);
      this.#say("description", interrupt.tool.description);
      this.#part("destructive").hidden = !interrupt.tool.annotations?.destructiveHint;
      if (nobodyWrites()) this.element.focus({ preventScroll: true });
    } else {
      this.#part("problem").hidden = true;
      this.#part("arguments").open = false;
      for (const button of question.querySelectorAll("button")) button.disabled = false;
      if (hadFocus) this.element.focus();
    }
  }

  #say(name, text) {
    setText(this.#part(name), text ?? "");
    this.#part(name).hidden = !text;
  }

  #drawDecision(decision) {
    if (decision === undefined) return;
    const where = this.element.dataset.decidedHere || decision.kind === "timeout" ? "" : " in another window";
    setText(this.#part("decision"), DECISIONS[decision.kind] + where);
    this.#part("decision").hidden = false;
  }

  #drawResult(result) {
    const text = result ? result.content.map((block) => block.text).join("\n\n") : "";
    setText(this.#part("result-text"), text);
    this.#part("result").hidden = text === "";
  }
}

function status(call, { tool, result, interrupt, ended, decision }) {
  if (interrupt) return "waiting";
  if (DENIED.has(decision?.kind) && (!result || result.execution === "not-executed")) return "rejected";
  if (result) {
    if (result.execution !== "completed") return result.execution;
    return result.status === "error" ? "error" : "done";
  }
  if (tool?.status === "running") return ended ? "unknown" : "running";
  if (tool) return tool.isError ? "error" : "done";
  if (ended) return "not-executed";
  return call.input ? "pending" : "writing";
}

/* Whether the focus may go to a question: not while somebody fills in a field. */
function nobodyWrites() {
  const { activeElement } = document;
  return activeElement === document.body || (activeElement.matches("textarea, input") && activeElement.value === "");
}
