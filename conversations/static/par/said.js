/* What a person says, as a text and files, in the forms that others need of it. */

import { blockOf } from "./files.js";

const textOf = (text) => (text.trim() === "" ? [] : [{ type: "text", text }]);

/* What is sent to the server. */
export const inputOf = ({ text, files }) => [
  ...textOf(text),
  ...files.map(({ attachmentId }) => ({ type: "attachment", attachmentId })),
];

/* The blocks that the message will have. */
export const blocksOf = ({ text, files }) => [...textOf(text), ...files.map(blockOf)];

/* What a conversation is called after it, whole: the style cuts it where it has no room. */
export const titleOf = (text, files) =>
  text.trim().replaceAll(/\s+/g, " ") || files.map(({ name }) => name).join(", ");
