/* The card of one tool call: arguments, progress, the question to a person, the result. */

import { fragment, setText } from "./fragments.js";
import { decided, refusal } from "./words.js";

const DENIED = new Set(["rejected", "timeout"]);

export class ToolCard {
  #input = null;

  constructor(callId) {
    this.element = fragment("tool");
    this.element.dataset.callId = callId;
    this.asked = false;
  }

  /* `call` is {name, input} or, while the model writes it, {name, text}; the rest comes from the state of the run. */
  draw(call, facts) {
    setText(this.#part("name"), call.name);
    this.element.setAttribute("aria-label", `Tool call: ${call.name}`);
    this.#drawArguments(facts.decision?.arguments ?? facts.tool?.arguments ?? call.input, call.text ?? "");
    const decision = facts.decision ?? refusal(facts.result);
    this.element.dataset.status = status(call, { ...facts, decision });
    this.#drawProgress(facts);
    this.#drawQuestion(facts.interrupt);
    this.#drawDecision(decision);
    this.#drawResult(facts);
  }

  #part(name) {
    return this.element.querySelector(`.tool-${name}`);
  }

  /* What is run, not what was proposed: a list of names and values, or the text while the model writes it. */
  #drawArguments(input, text) {
    const list = this.#part("fields");
    const fields = Object.entries(input ?? {});
    list.hidden = fields.length === 0;
    this.#part("arguments-text").hidden = fields.length > 0;
    setText(this.#part("arguments-text"), input ? "{}" : text);
    if (this.#input === input) return;
    this.#input = input;
    list.replaceChildren(...fields.map(field));
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
    const here = this.element.dataset.decidedHere || decision.before || decision.kind === "timeout";
    setText(this.#part("decision"), decided(decision.kind) + (here ? "" : " in another window"));
    this.#part("decision").hidden = false;
  }

  /* Of a long result the server sends beginning and end; `whole` is where all of it is. */
  #drawResult({ result, whole }) {
    const text = result ? result.content.map((block) => block.text).join("\n\n") : "";
    setText(this.#part("result-text"), text);
    this.#part("result").hidden = text === "";
    this.#part("whole").hidden = !result?.omitted;
    if (result?.omitted) this.#part("whole").querySelector("a").setAttribute("href", whole);
  }
}

/* A text is shown as it is; anything else, and a text that shows nothing, as JSON. */
function field([name, value]) {
  const item = fragment("field");
  const plain = typeof value === "string" && value.trim() !== "";
  item.querySelector("dt").textContent = name;
  item.querySelector("dd").textContent = plain ? value : JSON.stringify(value, null, 2);
  item.querySelector("dd").classList.toggle("json", !plain);
  return item;
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
