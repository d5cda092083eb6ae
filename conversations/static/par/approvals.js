/* Approve and reject in the cards of tools that wait. */

import { announce } from "./fragments.js";
import { sentence } from "./words.js";

// What the server says when the question was answered before, or its run has ended.
const TOO_LATE = new Set(["INVALID_STATE", "EXECUTION_NOT_FOUND"]);

/* `onTooLate(executionId)` shows the state of the run: what was really decided. */
export function listenForDecisions(root, connection, onTooLate) {
  root.addEventListener("submit", (event) => {
    event.preventDefault(); // Enter in the reason, the only field: whoever gives one rejects
    const button = event.target.querySelector('[data-decision="reject"]');
    if (button && !button.disabled) decide(button, connection, onTooLate);
  });
  root.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-decision]");
    if (button && !button.disabled) decide(button, connection, onTooLate);
  });
}

async function decide(button, connection, onTooLate) {
  const card = button.closest(".tool");
  const question = card.querySelector(".tool-question");
  const problem = card.querySelector(".tool-problem");
  const reason = question.querySelector("input").value.trim();
  const fields = {
    executionId: card.closest(".run").dataset.executionId,
    interruptId: card.dataset.interruptId,
  };
  if (button.dataset.decision === "reject" && reason) fields.reason = reason;
  const buttons = question.querySelectorAll("button");
  if (question.contains(document.activeElement)) card.focus({ preventScroll: true }); // a disabled button loses it
  for (const each of buttons) each.disabled = true;
  problem.hidden = true;
  card.dataset.decidedHere = "true";
  try {
    await connection.request(button.dataset.decision, fields);
    announce(button.dataset.decision === "approve" ? "Approved." : "Rejected.");
  } catch (error) {
    delete card.dataset.decidedHere;
    for (const each of buttons) each.disabled = false;
    if (TOO_LATE.has(error.code)) {
      onTooLate(fields.executionId);
    } else {
      problem.textContent = sentence(error);
      problem.hidden = false;
    }
  }
}
