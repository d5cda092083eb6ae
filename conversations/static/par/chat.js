/* The chat of one page: ties connection, follower, transcript and composer together. */

import { Agents } from "./agents.js";
import { listenForDecisions } from "./approvals.js";
import { Composer } from "./composer.js";
import { blockOf } from "./files.js";
import { Follower } from "./follower.js";
import { announce } from "./fragments.js";
import { adopt, listenForOffers } from "./offers.js";
import { Connection } from "./socket.js";
import { Transcript } from "./transcript.js";
import { sentence } from "./words.js";

const NO_ID = "00000000-0000-0000-0000-000000000000";
const OUT_OF_DATE = new Set(["CONVERSATION_CONFLICT", "INVALID_STATE"]); // the server knows more than this page
const PATIENCE = 1500; // milliseconds before a missing connection is worth a word

export class Chat {
  #page;
  #list;
  #version;
  #worry = null;

  constructor(page, list) {
    this.#page = page;
    this.#list = list;
    this.#version = page.dataset.version === "" ? null : Number(page.dataset.version);
    const transcript = page.querySelector("#transcript");
    this.transcript = new Transcript(transcript, page.querySelector("#newest"));
    this.connection = new Connection(`${page.dataset.basePath}/ws`, Number(page.dataset.largestFrame), {
      onFrame: (frame) => this.#receive(frame),
      onOpen: () => this.follower.subscribe(),
      onState: (state, message) => this.#showConnection(state, message),
      onSignedOut: () => location.assign(`${page.dataset.loginUrl}?next=${encodeURIComponent(location.pathname)}`),
    });
    this.follower = new Follower(this.connection, page.dataset.conversationId || null, {
      onState: (state, event) => this.#changed(state, event),
      onRendered: (frame) => this.transcript.store(frame),
      onVersion: (version) => (this.#version = version),
      onSubscribed: (ack) => {
        this.#showConnection("open");
        this.#compare(ack);
      },
      onUnheard: (error) => {
        this.#showConnection("waiting", `${sentence(error)} Asking again…`);
        this.#loaded();
      },
      onProblem: (error) => {
        this.composer.say(sentence(error));
        this.#loaded();
      },
    });
    this.composer = new Composer(page.querySelector("#composer"), page.dataset.person, {
      onSend: (message) => this.#start(message),
      onStop: () => this.#stop(),
      files: { address: `${page.dataset.basePath}/attachments`, largest: Number(page.dataset.largestFile) },
    });
    this.composer.remember(this.follower.conversationId);
    if (this.follower.conversationId === null) this.composer.mode = "ready";
    this.agents = new Agents(page, (prompt) => this.#say(prompt));
    listenForDecisions(transcript, this.connection, (executionId) => {
      this.transcript.redraw(executionId);
      this.follower.subscribe();
    });
    listenForOffers(transcript, {
      onSay: (text) => this.#say(text),
      onAdopt: (executionId) => this.#adopt(executionId),
    });
    this.connection.connect();
  }

  /* Send what a button stands for; the button goes away, and the focus would go with it. */
  #say(text) {
    this.composer.submit(text);
    this.composer.focus();
  }

  async #start({ id, text, files }) {
    const said = text.trim() === "" ? [] : [{ type: "text", text }];
    this.transcript.expect([...said, ...files.map(blockOf)]);
    const input = [...said, ...files.map(({ attachmentId }) => ({ type: "attachment", attachmentId }))];
    const fields = { agent: this.agents.chosen, input, format: "html" };
    if (this.follower.conversationId !== null) {
      fields.conversationId = this.follower.conversationId;
      if (this.#version !== null) fields.baseRevision = this.#version;
    }
    try {
      this.#accepted(await this.connection.request("start", fields, { id }), titleOf(text, files));
    } catch (error) {
      this.transcript.withdraw();
      this.composer.refused({ text, files }, sentence(error), error.doubtful);
      if (OUT_OF_DATE.has(error.code)) this.follower.subscribe();
    }
  }

  async #adopt(executionId) {
    try {
      const { revision } = await adopt(this.#page.dataset.basePath, executionId);
      if (revision > this.#version + 1) this.follower.subscribe(); // there is more than this page shows: it catches up
      else this.#version = Math.max(this.#version, revision);
      this.transcript.keep(executionId, revision);
      this.composer.say("");
      this.composer.invite("Write how to go on from here");
      announce("The turn is part of the conversation now.");
    } catch (error) {
      this.composer.warn(sentence(error));
      if (OUT_OF_DATE.has(error.code)) this.follower.subscribe();
    }
  }

  #accepted({ executionId, conversationId, created }, title) {
    this.composer.accepted();
    this.transcript.accept(executionId);
    const address = this.#page.dataset.conversationPath.replace(NO_ID, conversationId);
    if (this.follower.conversationId !== conversationId) {
      this.agents.leave();
      history.replaceState(null, "", address);
      this.#entitle(title);
      this.composer.remember(conversationId);
      this.#version = 0;
    }
    this.#list.promote(conversationId, address, title);
    this.follower.started(executionId, conversationId);
    this.composer.mode = this.follower.live ? "running" : "ready";
    if (created === false) this.follower.subscribe(); // an answer to a repeated start: the run may be over
  }

  #entitle(title) {
    document.querySelector("h1").textContent = title;
    document.title = `${title} · PAR`;
  }

  async #stop() {
    try {
      await this.connection.request("cancel", { executionId: this.follower.state.executionId });
    } catch (error) {
      if (this.follower.live) this.composer.unstopped(sentence(error));
    }
  }

  #receive(frame) {
    if (frame.type === "error") this.composer.say(sentence(frame));
    else if (frame.type === "ack") this.#acceptedLate(frame);
    else this.follower.receive(frame);
  }

  #acceptedLate(ack) {
    const late = this.composer.late(ack.id);
    if (late !== null) this.#accepted(ack, titleOf(late.text, late.files));
  }

  #changed(state, event) {
    this.transcript.update(state, event);
    this.#list.mark(state.conversationId, state);
    if (this.composer.mode !== "sending" || state.ended === false) {
      this.composer.mode = state.ended ? "ready" : "running";
    }
  }

  /* The server has said all there was to say about the past. */
  #loaded() {
    if (this.composer.mode === "loading") this.composer.mode = "ready";
  }

  /* The page is older than the conversation: what is missing comes with a fresh page, at most once per version. */
  #compare({ version, executionId }) {
    const seen = this.#version;
    if (seen === null || version <= seen) {
      this.#version ??= version;
      if (executionId === null) this.#loaded(); // else a snapshot follows
      return;
    }
    const mark = `par-fresh:${this.follower.conversationId}`;
    if (sessionStorage.getItem(mark) === String(version)) {
      this.#version = version;
      this.#loaded();
      return;
    }
    sessionStorage.setItem(mark, String(version));
    location.reload();
  }

  #showConnection(state, message) {
    const line = document.getElementById("connection");
    clearTimeout(this.#worry);
    if (state === "open") {
      if (!line.hidden) announce("Connected again.");
      line.hidden = true;
      return;
    }
    const show = () => {
      line.textContent = message ?? "No connection to the server. Trying again…";
      line.hidden = false;
    };
    if (state === "closed") show();
    else this.#worry = setTimeout(show, line.hidden ? PATIENCE : 0);
  }
}

/* What a conversation is called after its first message, whole: the style cuts it where it has no room. */
function titleOf(text, files) {
  return text.trim().replaceAll(/\s+/g, " ") || files.map(({ name }) => name).join(", ");
}
