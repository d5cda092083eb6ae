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
  CONVERSATION_CONFLICT: "The conversation has gone on elsewhere. Reload the page and send your message again.",
  NOT_CONNECTED: "There is no connection to the server.",
};

export function sentence(error) {
  const words = WORDS[error?.code];
  const detail = error?.message ?? "";
  if (!words) return detail || "Something went wrong.";
  return detail && !error.code.startsWith("NOT_") && error.code !== "CONVERSATION_CONFLICT" ? `${words} ${upper(detail)}` : words;
}

function upper(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
