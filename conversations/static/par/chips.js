/* A file beside what somebody writes, as a chip with a button that removes it. */

import { fragment } from "./fragments.js";

export function newChip(name, size = "") {
  const element = fragment("chip");
  element.querySelector(".chip-name").textContent = name;
  element.querySelector(".chip-size").textContent = size;
  element.querySelector("[data-remove]").setAttribute("aria-label", `Remove ${name}`);
  return element;
}

/* Take a chip away; the focus goes to its neighbour, or to the box that it stands beside. */
export function removeChip(element, box) {
  const next = element.nextElementSibling ?? element.previousElementSibling;
  element.remove();
  (next?.querySelector("[data-remove]") ?? box).focus();
}
