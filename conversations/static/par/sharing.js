/* Copies a link that is shown once; without this script the link can still be selected. */

const REFUSED = "The browser does not allow copying here. The link is selected: press Ctrl+C, or ⌘C on a Mac.";

for (const button of document.querySelectorAll("[data-copy-from]")) {
  const field = document.getElementById(button.dataset.copyFrom);
  button.hidden = false;
  button.addEventListener("click", () => copy(field));
  field.addEventListener("focus", () => field.select());
  if (document.activeElement === field) field.select();
}

async function copy(field) {
  const place = document.querySelector("[data-copied]");
  try {
    await navigator.clipboard.writeText(field.value);
    place.textContent = "Copied.";
  } catch {
    field.focus();
    field.select();
    place.textContent = REFUSED;
  }
}
