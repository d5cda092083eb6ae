/* The one dialog of the page: asks for a text or for agreement. */

/* Return the text, true where none was asked for, or null if the person thought better of it. */
export function ask({ title, text = "", label = "", value = "", most = 256, action, danger = false }) {
  const dialog = document.getElementById("ask");
  const field = dialog.querySelector("input");
  const [yes] = dialog.querySelectorAll("button");
  dialog.querySelector("h2").textContent = title;
  dialog.querySelector("p").textContent = text;
  dialog.querySelector("p").hidden = text === "";
  dialog.querySelector(".field").hidden = label === "";
  dialog.querySelector("label").textContent = label;
  field.value = value;
  field.maxLength = most;
  yes.textContent = action;
  yes.className = `button ${danger ? "danger" : "primary"}`;
  dialog.returnValue = "";
  dialog.showModal();
  if (label) field.select();
  return new Promise((resolve) => {
    const closed = () => resolve(dialog.returnValue === "yes" ? (label === "" ? true : field.value.trim()) : null);
    dialog.addEventListener("close", closed, { once: true });
  });
}
