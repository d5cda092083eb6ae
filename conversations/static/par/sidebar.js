/* The sidebar of narrow screens: a button opens it; Escape, a press outside or a choice closes it. */

export function listenForSidebar(button, sidebar) {
  const show = (open) => {
    sidebar.dataset.open = open;
    button.setAttribute("aria-expanded", open);
  };
  button.addEventListener("click", () => {
    const open = sidebar.dataset.open !== "true";
    show(open);
    if (open) sidebar.querySelector("a").focus();
  });
  addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || sidebar.dataset.open !== "true") return;
    show(false);
    button.focus();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (sidebar.dataset.open === "true" && !sidebar.contains(target) && !button.contains(target)) show(false);
  });
}
