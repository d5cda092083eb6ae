/* Errors and endings of runs in words. The words come with the page, from conversations/words.py, whose functions are the
   same rules. */

let known = null;

function vocabulary() {
  known ??= JSON.parse(document.getElementById("words").textContent);
  return known;
}

export function sentence(error) {
  const { words, complete, something } = vocabulary();
  const detail = whole(error?.message ?? "");
  const said = words[error?.code];
  if (!said) return detail || something;
  return detail && !complete.includes(error.code) ? `${said} ${detail}` : said;
}

/* What stands below an ended run as {kind, text, detail, begun}; null where it simply is complete. */
export function noticeOf(state) {
  const { cancelled, stopped, cutOff } = vocabulary();
  if (state.outcome?.type === "max-tokens") return { kind: "max-tokens", text: cutOff, detail: "" };
  if (state.revision) return null; // somebody has continued from it: a turn like any other
  const answered = begun(state);
  if (state.status === "failed") return { kind: "failed", begun: answered, ...failure(state.error, answered) };
  if (state.status !== "cancelled") return null;
  return { kind: "cancelled", begun: answered, text: cancelled[state.outcome?.reason] ?? stopped, detail: "" };
}

function failure(error, answered) {
  const { words, complete, begun, something } = vocabulary();
  const text = (answered && begun[error?.code]) || words[error?.code];
  const detail = whole(error?.message ?? "");
  if (!text) return { text: detail || something, detail: "" };
  return { text, detail: complete.includes(error.code) ? "" : detail };
}

/* How a question about a tool was decided, in words. */
export function decided(kind) {
  return vocabulary().decisions[kind];
}

/* How a call was decided whose result this is; undefined where it ran, or nobody was asked. */
export function refusal(result) {
  if (result?.execution !== "not-executed") return undefined;
  const text = result.content.map((block) => block.text).join("");
  const found = Object.entries(vocabulary().refusals).find(([, opening]) => text.startsWith(opening));
  return found && { kind: found[0], before: true };
}

/* Whether the model had answered anything; a thought or half a call is no answer. */
function begun({ messages, streamed }) {
  const written = streamed.some(({ type, text }) => type === "text" && text.trim() !== "");
  return written || messages.some(({ role }) => role === "assistant");
}

function whole(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return begun === "" || /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
