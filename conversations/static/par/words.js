/* Error codes of the protocol in words. A code that is not here speaks with the server's own message. */

const WORDS = {
  MODEL_FAILED: "The model did not answer.",
  MODEL_REFUSED: "The model refused to answer.",
  MODEL_CONTENT_FILTERED: "The provider's content filter stopped the answer.",
  MODEL_PROTOCOL_ERROR: "The model sent something that cannot be understood.",
  TOOL_FAILED: "A tool failed.",
  EXECUTION_LOST: "The server was interrupted while it worked on this.",
  AGENT_EXECUTION_FAILED: "The run failed.",
  INTERNAL_ERROR: "The server failed.",
  DRAINING: "The server is being restarted. Send it again in a moment.",
  RATE_LIMITED: "That was too fast. Try again in a moment.",
  CONVERSATION_CONFLICT: "The conversation has gone on elsewhere. Reload the page and send your message again.",
  NOT_CONNECTED: "There is no connection to the server.",
};

// Their words say all there is to say; the server's message would only repeat it.
const COMPLETE = new Set(["DRAINING", "RATE_LIMITED", "CONVERSATION_CONFLICT", "NOT_CONNECTED"]);

export function sentence(error) {
  const words = WORDS[error?.code];
  const detail = upper(error?.message ?? "");
  if (!words) return detail || "Something went wrong.";
  return detail && !COMPLETE.has(error.code) ? `${words} ${detail}` : words;
}

function upper(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return begun === "" || /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
