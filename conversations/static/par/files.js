/* Files and pictures in messages: what mentions one, and how it is shown. */

import { setText } from "./fragments.js";

/* The same rule as `quoted_file` in conversations/attachments/references.py. */
const QUOTED =
  /^<attachment id="([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})" name="([^"<>\n]+)" type="([a-z]+\/[a-z0-9.+-]+)"(?: pages="(\d+)")?>\n([^]*)\n<\/attachment>$/;
const PICTURE = /^attachment:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const CHARACTERS = new Map([
  ["&quot;", '"'],
  ["&#x27;", "'"],
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&amp;", "&"],
]);
const names = new Map(); // of the pictures that this page sent: messages do not have them

const address = (id) => `${document.getElementById("main").dataset.basePath}/attachments/${id}`;

/* The file that a text block quotes; null for a text that somebody wrote. */
export function quotedFile(text) {
  const found = text.startsWith("<attachment ") ? QUOTED.exec(text) : null;
  if (found === null) return null;
  const [, id, name, type, pages, quoted] = found;
  return { id, name: name.replaceAll(/&[a-z0-9#]+;/g, (each) => CHARACTERS.get(each) ?? each), type, pages, text: quoted };
}

/* The blocks that a message will have for files which were uploaded, before the server has taken it up. */
export function blockOf({ attachmentId, name, mediaType }) {
  if (mediaType.startsWith("image/")) {
    names.set(attachmentId, name);
    return { type: "image", source: { type: "url", url: `attachment:${attachmentId}` } };
  }
  const escaped = name.replaceAll(/["'<>&]/g, (each) => [...CHARACTERS].find(([, one]) => one === each)[0]);
  return { type: "text", text: `<attachment id="${attachmentId}" name="${escaped}" type="${mediaType}">\n…\n</attachment>` };
}

/* The files that a message shows, as they are sent: {attachmentId, name, mediaType}; null if one is no attachment. */
export function filesOf(message) {
  const source = (element) => element.querySelector("a").getAttribute("href");
  const shown = [...message.querySelectorAll(":scope > .blocks > :is(.picture, .file)")];
  if (!shown.every(source)) return null;
  return shown.map((element) => {
    const attachmentId = source(element).split("/").at(-1);
    if (element.matches(".picture")) {
      return { attachmentId, name: element.querySelector("img").alt, mediaType: "image/*" };
    }
    const isPdf = element.querySelector(".file-kind").textContent.startsWith("PDF");
    return { attachmentId, name: element.querySelector(".file-name").textContent, mediaType: isPdf ? "application/pdf" : "text/plain" };
  });
}

export function drawFile(element, { id, name, type, pages, text }) {
  setText(element.querySelector(".file-name"), name);
  const count = pages === undefined ? "" : `, ${pages} page${pages === "1" ? "" : "s"}`;
  setText(element.querySelector(".file-kind"), (type === "application/pdf" ? "PDF" : "Text") + count);
  const link = element.querySelector(".file-link a");
  link.parentElement.hidden = false;
  link.setAttribute("href", address(id));
  link.download = name;
  setText(element.querySelector(".file-text"), text);
}

/* A picture that is an attachment is shown; any other by name only, and nothing is fetched. */
export function drawPicture(element, { source }) {
  const id = source.type === "url" ? PICTURE.exec(source.url)?.[1] : undefined;
  const link = element.querySelector("a");
  const caption = element.querySelector("figcaption");
  link.hidden = id === undefined;
  caption.hidden = id !== undefined;
  if (id === undefined) {
    setText(caption, `Picture: ${source.type === "url" ? source.url : source.mediaType}`);
    return;
  }
  const picture = link.querySelector("img");
  if (picture.getAttribute("src") === address(id)) return;
  link.setAttribute("href", address(id));
  picture.alt = names.get(id) ?? "Picture";
  picture.src = address(id);
}
