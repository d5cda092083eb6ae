/* The line above an earlier version of the conversation: it is there to be read, until somebody wants to go on from it. */

import { listenForRevisions } from "./revisions.js";

/* `onGoOn()` is called when the box may be written in. */
export function listenForEarlier(page, onGoOn) {
  const banner = page.querySelector("#earlier");
  if (banner === null) return;
  listenForRevisions(page);
  const button = banner.querySelector("[data-go-on]");
  button.addEventListener("click", () => {
    button.hidden = true;
    delete page.dataset.readonly;
    onGoOn();
  });
}
