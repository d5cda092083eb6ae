/* Errors in words. The words come with the page, from conversations/words.py, whose `sentence` is the same rule. */

let known = null;

export function sentence(error) {
  known ??= JSON.parse(document.getElementById("words").textContent);
  const words = known.words[error?.code];
  const detail = upper(error?.message ?? "");
  if (!words) return detail || "Something went wrong.";
  return detail && !known.complete.includes(error.code) ? `${words} ${detail}` : words;
}

function upper(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return begun === "" || /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
