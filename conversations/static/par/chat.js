/* The chat of one page: ties connection, follower, transcript and composer together. */

import { Agents } from "./agents.js";
import { listenForDecisions } from "./approvals.js";
import { Branches } from "./branches.js";
import { Composer } from "./composer.js";
import { Conflict } from "./conflict.js";
import { listenForEarlier } from "./earlier.js";
import { Editing } from "./editing.js";
import { Follower } from "./follower.js";
import { announce } from "./fragments.js";
import { ConnectionLine } from "./line.js";
import { Menu } from "./menu.js";
import { adopt, listenForOffers } from "./offers.js";
import { blocksOf, inputOf, titleOf } from "./said.js";
import { Connection } from "./socket.js";
import { Transcript } from "./transcript.js";
import { sentence } from "./words.js";

const OUT_OF_DATE = new Set(["CONVERSATION_CONFLICT", "INVALID_STATE"]); // the server knows more than this page

export class Chat {
  #page;
  #list;
  #version;
  #behind = null; // {seen, told}: the versions here and there, when a run was being followed and they differed

  constructor(page, list) {
    this.#page = page;
    this.#list = list;
    this.#version = page.dataset.version === "" ? null : Number(page.dataset.version);
    const transcript = page.querySelector("#transcript");
    this.transcript = new Transcript(transcript, page.querySelector("#newest"));
    this.line = new ConnectionLine(page.querySelector("#connection"));
    this.connection = new Connection(`${page.dataset.basePath}/ws`, Number(page.dataset.largestFrame), {
      onFrame: (frame) => this.#receive(frame),
      onOpen: () => this.follower.subscribe(),
      onState: (state, message) => this.line.show(state, message),
      onSignedOut: () => location.assign(`${page.dataset.loginUrl}?next=${encodeURIComponent(location.pathname)}`),
    });
    this.follower = new Follower(this.connection, page.dataset.conversationId || null, {
      onState: (state, event) => this.#changed(state, event),
      onRendered: (frame) => this.transcript.store(frame),
      onVersion: (version) => (this.#version = version),
      onSubscribed: (ack) => {
        this.line.show("open");
        this.#compare(ack);
      },
      onUnheard: (error) => {
        this.line.show("waiting", `${sentence(error)} Asking again…`);
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
    this.conflict = new Conflict(page.querySelector("#conflict"), page.dataset.person, (place) => {
      this.composer.submit(undefined, place);
    });
    this.#remember();
    if (this.follower.conversationId === null) this.composer.mode = "ready";
    this.agents = new Agents(page, (prompt) => this.#say(prompt));
    listenForDecisions(transcript, this.connection, (executionId) => {
      this.transcript.redraw(executionId);
      this.follower.subscribe();
    });
    listenForOffers(transcript, {
      onSay: (text) => this.#say(text),
      onAdopt: (executionId, asBranch) => this.#adopt(executionId, asBranch),
    });
    this.branches = new Branches(page, this.transcript, {
      onKnown: (state) => this.#changed(this.follower.state?.executionId === state.executionId ? this.follower.state : state),
      onChange: (conversation) => this.#altered(conversation),
      onProblem: (problem) => this.#complain(problem),
    });
    this.menu = new Menu(page.querySelector("#menu"), page, {
      version: () => this.#version ?? 0,
      onChange: (conversation) => this.#altered(conversation),
      onProblem: (problem) => this.#complain(problem),
    });
    this.editing = new Editing(page, {
      isReady: () => this.composer.mode === "ready",
      onEdit: (message, said) => this.#rewrite(message, said),
      onAgain: (message) => this.#rewrite(message, null),
      onHomeless: (said, problem) => {
        this.composer.put(said);
        this.composer.warn(problem);
      },
    });
    listenForEarlier(page, () => this.composer.invite("Write how to go on from here"));
    this.connection.connect();
  }

  /* Send what a button stands for; the button goes away, and the focus would go with it. */
  #say(text) {
    this.composer.submit(text);
    this.composer.focus();
  }

  /* `place` says where the turn belongs, unless it follows what is shown. */
  async #start({ id, text, files, place }) {
    this.transcript.expect(blocksOf({ text, files }));
    try {
      const fields = { ...this.#fields(place), input: inputOf({ text, files }) };
      const ack = await this.connection.request("start", fields, { id });
      this.#accepted(ack, titleOf(text, files), { elsewhere: place.fromRevisionId !== undefined });
    } catch (error) {
      this.transcript.withdraw();
      this.composer.refused({ text, files }, sentence(error), error.doubtful);
      if (error.code === "CONVERSATION_CONFLICT") this.conflict.open(this.#page.dataset.head);
      if (OUT_OF_DATE.has(error.code)) this.follower.subscribe();
    }
  }

  /* Make another version of the turn that begins with a message: with what is `said` now, or null for another answer. */
  async #rewrite(message, said) {
    if (this.composer.mode !== "ready") return;
    const id = message.dataset.messageId;
    const change = said === null ? { regenerateMessageId: id } : { editMessageId: id, input: inputOf(said) };
    this.composer.say("");
    this.composer.mode = "sending";
    this.composer.focus();
    this.transcript.expect(said === null ? null : blocksOf(said), message);
    try {
      this.#accepted(await this.connection.request("start", this.#fields(change)), "", { branched: true });
    } catch (error) {
      this.transcript.withdraw();
      this.composer.mode = "ready";
      if (said === null) this.composer.warn(sentence(error));
      else this.editing.keep(message, said, sentence(error));
      if (OUT_OF_DATE.has(error.code)) this.follower.subscribe();
    }
  }

  #fields(place) {
    const fields = { agent: this.agents.chosen, format: "html", ...place };
    if (this.follower.conversationId === null) {
      if (this.agents.temporary) fields.temporary = true;
      return fields;
    }
    fields.conversationId = this.follower.conversationId;
    if (this.branches.earlier) fields.fromRevisionId ??= this.#page.dataset.revision;
    if (fields.fromRevisionId === undefined && this.#version !== null) fields.baseRevision = this.#version;
    return fields;
  }

  async #adopt(executionId, asBranch) {
    const { dataset } = this.#page;
    try {
      const { revision, headRevisionId = dataset.head } = await adopt(dataset.basePath, executionId, asBranch);
      if (revision > this.#version + 1) this.follower.subscribe(); // there is more than this page shows: it catches up
      else {
        this.#version = Math.max(this.#version, revision);
        dataset.head = headRevisionId;
      }
      this.transcript.keep(executionId, revision);
      this.branches.begun({ executionId }, { branched: asBranch });
      this.branches.stored(executionId);
      this.composer.say("");
      this.composer.invite("Write how to go on from here");
      announce("The turn is part of the conversation now.");
    } catch (error) {
      this.composer.warn(sentence(error));
      if (OUT_OF_DATE.has(error.code)) this.follower.subscribe();
    }
  }

  #accepted({ executionId, conversationId, created }, title, begun = {}) {
    const { dataset } = this.#page;
    const address = dataset.conversationPath.replace(dataset.noId, conversationId);
    const { temporary } = this.agents;
    this.composer.accepted();
    this.conflict.close();
    this.transcript.accept(executionId);
    if (this.follower.conversationId !== conversationId) {
      this.agents.leave();
      history.replaceState(null, "", address);
      this.#entitle(title); // whole: the style cuts it where it has no room
      dataset.conversationId = conversationId;
      this.menu.appear(conversationId, temporary);
      this.#remember(conversationId);
      this.#version = 0;
    }
    this.#list.promote(conversationId, address, document.querySelector("h1").textContent.trim(), { temporary });
    this.follower.started(executionId, conversationId);
    this.branches.begun(this.follower.state, begun);
    this.composer.mode = this.follower.live ? "running" : "ready";
    if (created === false) this.follower.subscribe(); // an answer to a repeated start: the run may be over
  }

  /* What was not sent waits where it was left, for each conversation. */
  #remember(conversationId = this.follower.conversationId) {
    this.composer.remember(conversationId);
    this.conflict.remember(conversationId);
  }

  /* The conversation was changed from here, but for what was said in it. */
  #altered(conversation) {
    if (conversation.revision === this.#version + 1) {
      this.#version = conversation.revision;
      if (!this.branches.earlier) this.#page.dataset.head = conversation.headRevisionId ?? "";
    } else {
      this.follower.subscribe(); // there is more that this page does not know
    }
    this.#entitle(conversation.title ?? "Untitled chat");
    this.#list.update(conversation, this.branches.address);
  }

  /* Say what went wrong where it is seen: an earlier version has no box to write in. */
  #complain(problem) {
    const line = this.#page.querySelector("[data-revision-problem]");
    if (line === null) return this.composer.say(problem);
    line.textContent = problem;
    line.hidden = false;
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

  #changed(state, event = null) {
    if (this.branches.takes(state, this.composer.mode === "sending")) {
      this.transcript.update(state, event);
      if (state.revision?.id && state.revision.id !== this.#page.dataset.head) {
        this.#page.dataset.head = state.revision.id;
        this.branches.stored(state.executionId);
      }
    }
    this.#list.mark(state.conversationId, state);
    if (state.ended && this.#behind !== null) {
      const { seen, told } = this.#behind;
      this.#behind = null;
      const own = state.revision?.version; // the turn's; all that is new where nothing else has changed
      if (own !== seen + 1 || own < told) this.#refresh(Math.max(told, this.#version));
    }
    if (this.composer.mode !== "sending" || state.ended === false) {
      this.composer.mode = state.ended ? "ready" : "running";
    }
  }

  /* The server has said all there was to say about the past. */
  #loaded() {
    if (this.composer.mode === "loading") this.composer.mode = "ready";
  }

  /* Whether the page is older than the conversation. What is new may be the turn that is being followed, whose last
     events are on their way: its end shows whether it was that alone. */
  #compare({ version, executionId }) {
    const seen = this.#version;
    if (seen === null || version <= seen || this.branches.earlier) {
      this.#version ??= version;
      if (executionId === null) this.#loaded(); // else a snapshot follows
      return;
    }
    if (this.follower.live && this.follower.state.executionId === executionId) {
      this.#behind = { seen: this.#behind?.seen ?? seen, told: version };
      return;
    }
    this.#refresh(version);
  }

  /* What is missing comes with a fresh page, at most once per version. */
  #refresh(version) {
    const mark = `par-fresh:${this.follower.conversationId}`;
    if (sessionStorage.getItem(mark) === String(version)) {
      this.#version = version;
      this.#loaded();
      return;
    }
    sessionStorage.setItem(mark, String(version));
    location.reload();
  }
}
