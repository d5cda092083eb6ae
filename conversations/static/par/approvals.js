/* Approve and reject in the cards of tools that wait. */

import { announce } from "./fragments.js";
import { sentence } from "./words.js";

export function listenForDecisions(root, connection) {
  root.addEventListener("submit", (event) => event.preventDefault());
  root.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-decision]");
    if (button && !button.disabled) decide(button, connection);
  });
}

async function decide(button, connection) {
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
    problem.textContent = sentence(error);
    problem.hidden = false;
    delete card.dataset.decidedHere;
    for (const each of buttons) each.disabled = false;
  }
}
