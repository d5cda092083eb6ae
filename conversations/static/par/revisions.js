/* What can be done with a revision: the buttons of the history page and of the page that shows an earlier version. */

import { ask } from "./ask.js";
import { call } from "./http.js";
import { sentence } from "./words.js";

/* Ask for a revision's name and store it; returns the name and the conversation, or null if the person thought better. */
export async function nameRevision(conversation, id, title, label) {
  const name = await ask({ title, label: "Name", value: label, most: 100, action: "Save" });
  if (name === null) return null;
  return { name, ...(await call("PATCH", `${conversation}/revisions/${id}`, { label: name || null })) };
}

/* `place` holds the buttons and a line for problems; its data say which conversation it is. */
export function listenForRevisions(place) {
  const { basePath, conversationId, conversationPath, noId } = place.dataset;
  const conversation = `${basePath}/conversations/${conversationId}`;
  const addressOf = (id) => conversationPath.replace(noId, id);
  const problem = place.querySelector("[data-revision-problem]");
  const deeds = {
    async restore({ value }) {
      await call("POST", `${conversation}/restore`, { revisionId: value });
      location.assign(addressOf(conversationId));
    },
    async fork({ value, dataset: { scope } }) {
      const answer = await call("POST", `${conversation}/fork`, { revisionId: value, scope });
      location.assign(addressOf(answer.conversation.conversationId));
    },
    async name({ value, dataset: { label } }) {
      if (await nameRevision(conversation, value, "Name this revision", label)) location.reload();
    },
  };
  for (const button of place.querySelectorAll("[data-revision-do], [data-go-on]")) button.disabled = false;
  place.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-revision-do]");
    if (!button) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      await deeds[button.dataset.revisionDo](button);
    } catch (error) {
      problem.textContent = sentence(error);
      problem.hidden = false;
    }
    button.disabled = false;
  });
}
