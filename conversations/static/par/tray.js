/* The files beside the message box: chosen, pasted or dropped, uploaded at once, sent with the next message. */

import { newChip, removeChip } from "./chips.js";
import { announce } from "./fragments.js";
import { token } from "./http.js";
import { sentence } from "./words.js";

const MOST = 15; // with a text, what a message may hold

export class Tray {
  #list;
  #address;
  #largest;
  #onChange;
  #chips = []; // {element, file, request} of File and XMLHttpRequest, or {element, sent} once the server has it

  constructor(form, { address, largest, onChange }) {
    this.#list = form.querySelector(".chips");
    this.#address = address;
    this.#largest = largest;
    this.#onChange = onChange;
    const chooser = form.querySelector("[data-files]");
    form.querySelector("[data-attach]").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
      this.add([...chooser.files]);
      chooser.value = ""; // or the same file could not be chosen again
    });
    form.querySelector("textarea").addEventListener("paste", (event) => this.#pasted(event));
    this.#list.addEventListener("click", ({ target }) => {
      const element = target.closest("[data-remove]")?.closest(".chip");
      if (element) this.#remove(this.#chips.find((chip) => chip.element === element));
    });
    this.#listenForDrops(document.getElementById("main"));
  }

  get empty() {
    return this.#chips.length === 0;
  }

  /* Whether everything here is with the server, so that it can be sent. */
  get ready() {
    return this.#chips.every(({ sent }) => sent);
  }

  /* What the server says of the files that it has: {attachmentId, name, mediaType, size}. */
  get files() {
    return this.#chips.flatMap(({ sent }) => sent ?? []);
  }

  /* Upload files of this computer. */
  add(files) {
    for (const file of files) {
      if (this.#chips.length >= MOST) {
        announce(`A message takes at most ${MOST} files.`);
        break;
      }
      const chip = this.#show(file.name || "picture", file.size);
      if (file.size > this.#largest) this.#fail(chip, `The file is larger than ${inWords(this.#largest)}.`);
      else this.#upload(chip, file);
    }
    this.#changed();
  }

  /* Bring back files that the server has. */
  put(files) {
    for (const sent of files) this.#finish(this.#show(sent.name, sent.size), sent);
    this.#changed();
  }

  /* Take everything out, to be sent. */
  take() {
    const { files } = this;
    for (const { element } of this.#chips) element.remove();
    this.#chips = [];
    this.#changed();
    return files;
  }

  #show(name, size) {
    const element = newChip(name, size === undefined ? "" : inWords(size));
    this.#list.append(element);
    const chip = { element, name, sent: null, request: null };
    this.#chips.push(chip);
    return chip;
  }

  /* XMLHttpRequest, because fetch does not tell how far an upload is. */
  #upload(chip, file) {
    const request = (chip.request = new XMLHttpRequest());
    const progress = chip.element.querySelector("progress");
    request.open("POST", `${this.#address}?name=${encodeURIComponent(wellFormed(chip.name.slice(-200)))}`);
    request.setRequestHeader("X-CSRFToken", token());
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => (progress.value = total ? loaded / total : 0);
    request.onload = () => {
      const { response } = request;
      if (request.status === 201 && response) this.#finish(chip, response, `${chip.name} is attached.`);
      else this.#fail(chip, sentence(response?.error ?? { code: "INTERNAL_ERROR", message: "" }));
      this.#changed();
    };
    request.onerror = () => {
      this.#fail(chip, sentence({ code: "NOT_CONNECTED", message: "" }));
      this.#changed();
    };
    request.send(file);
  }

  #finish(chip, sent, words = "") {
    chip.sent = sent;
    chip.request = null;
    chip.element.dataset.state = "ready";
    if (words) announce(words);
  }

  #fail(chip, problem) {
    chip.request = null;
    chip.element.dataset.state = "failed";
    chip.element.querySelector(".chip-problem").textContent = problem;
  }

  #remove(chip) {
    chip.request?.abort();
    if (chip.sent) {
      const headers = { "X-CSRFToken": token() };
      fetch(`${this.#address}/${chip.sent.attachmentId}`, { method: "DELETE", headers }).catch(() => {}); // it is pruned, else
    }
    this.#chips = this.#chips.filter((each) => each !== chip);
    removeChip(chip.element, document.getElementById("box"));
    this.#changed();
  }

  #changed() {
    this.#list.hidden = this.empty;
    this.#onChange();
  }

  /* A copy out of a text program has a picture of the text, too: the text is meant. */
  #pasted(event) {
    const { files, types } = event.clipboardData;
    if (files.length === 0 || types.includes("text/plain")) return;
    event.preventDefault();
    this.add([...files]);
  }

  #listenForDrops(place) {
    const brings = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
    const mark = (on) => place.classList.toggle("dropping", on);
    place.addEventListener("dragover", (event) => {
      if (!brings(event)) return;
      event.preventDefault();
      mark(true);
    });
    place.addEventListener("dragleave", ({ relatedTarget }) => place.contains(relatedTarget) || mark(false));
    place.addEventListener("drop", (event) => {
      mark(false);
      if (!brings(event)) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }
}

const wellFormed = (name) => name.toWellFormed?.() ?? name;

function inWords(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
