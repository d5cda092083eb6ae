/* Buttons that copy a block of code or a whole answer. Their words stand in the style, so that they are no part of a text. */

import { announce, fragment } from "./fragments.js";

const REFUSED = "The browser does not allow copying here. The text is selected: press Ctrl+C, or ⌘C on a Mac.";
const SHOWN = 2000; // milliseconds

export function listenForCopying(root) {
  root.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-copy]");
    if (button) copy(button, button.dataset.copy === "code" ? [codeOf(button)] : answerOf(button));
  });
}

/* Give each block of code in `place` its button. */
export function addCopying(place) {
  for (const code of place.querySelectorAll(".prose pre")) {
    if (code.parentElement.matches(".code")) continue;
    const frame = document.createElement("div");
    frame.className = "code";
    code.replaceWith(frame);
    frame.append(code, fragment("copy"));
  }
}

const codeOf = (button) => button.parentElement.querySelector("pre");

/* The answer is all that the agent said in this turn, without its thoughts and its tools. */
function answerOf(button) {
  const parts = [];
  let message = button.closest(".message");
  while (message?.matches(".message-assistant")) {
    parts.unshift(...message.querySelectorAll(":scope > .blocks > .prose"));
    message = message.previousElementSibling;
  }
  return parts;
}

async function copy(button, parts) {
  const text = parts.map((part) => part.innerText.trim()).join("\n\n");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    select(parts);
    tell(button, "refused", REFUSED);
    return;
  }
  tell(button, "copied", "Copied.");
}

function tell(button, state, words) {
  button.dataset.state = state;
  announce(words);
  setTimeout(() => delete button.dataset.state, SHOWN);
}

function select(parts) {
  const selection = getSelection();
  selection.removeAllRanges();
  const range = document.createRange();
  range.setStartBefore(parts[0]);
  range.setEndAfter(parts.at(-1));
  selection.addRange(range);
}
