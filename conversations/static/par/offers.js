/* What a person may do with a turn that did not end well: go on from it, send it again, have the answer continued. */

import { call } from "./http.js";

const CONTINUE = "Continue.";

/* `onSay(text)` sends a message, `onAdopt(executionId, asBranch)` makes a turn part of the conversation. */
export function listenForOffers(root, { onSay, onAdopt }) {
  root.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-offer]");
    if (!button) return;
    const run = button.closest(".run");
    if (button.dataset.offer === "continue") onSay(CONTINUE);
    else if (button.dataset.offer === "again") onSay(inputOf(run));
    else {
      const buttons = button.parentElement.querySelectorAll("button");
      for (const each of buttons) each.disabled = true;
      await onAdopt(run.dataset.executionId, button.dataset.offer === "branch");
      for (const each of buttons) each.disabled = false;
    }
  });
}

/* Make what a run had so far part of its conversation, as a branch also where that has gone on elsewhere; returns the
   conversation, or throws `Refused`. */
export async function adopt(basePath, executionId, asBranch) {
  const address = `${basePath}/executions/${executionId}/adopt${asBranch ? "?branch=true" : ""}`;
  return (await call("POST", address)).conversation;
}

/* What was said: this is offered only where that was one text. */
function inputOf(run) {
  return run.querySelector(".message-user .said").textContent;
}
