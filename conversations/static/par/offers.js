/* What a person may do with a turn that did not end well: go on from it, send it again, have the answer continued. */

import { Refused } from "./socket.js";

const CONTINUE = "Continue.";

/* `onSay(text)` sends a message, `onAdopt(executionId)` makes a turn part of the conversation. */
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
      await onAdopt(run.dataset.executionId);
      for (const each of buttons) each.disabled = false;
    }
  });
}

/* Make what a run had so far part of its conversation; returns the conversation, or throws `Refused`. */
export async function adopt(basePath, executionId) {
  const headers = { "X-CSRFToken": document.querySelector("[name=csrfmiddlewaretoken]").value };
  let answer;
  try {
    answer = await fetch(`${basePath}/executions/${executionId}/adopt`, { method: "POST", headers });
  } catch {
    throw new Refused("NOT_CONNECTED", "There is no connection to the server.");
  }
  const { conversation, error } = await answer.json().catch(() => ({}));
  if (!conversation) throw new Refused(error?.code ?? "INTERNAL_ERROR", error?.message ?? "");
  return conversation;
}

/* What was said: this is offered only where that was one text. */
function inputOf(run) {
  return run.querySelector(".message-user .said").textContent;
}
