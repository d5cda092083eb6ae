/* Follows one conversation over the connection: keeps the state of its run in step with the server.

   Events that follow one another are applied; a gap, a reconnect or a page that was just loaded asks for a snapshot.
   Where the server cannot give one, it is asked again after a pause. */

import { ExecutionState } from "./reducer.js";

const FIRST_PAUSE = 1000; // milliseconds
const LONGEST_PAUSE = 20_000;

/* Whether a refusal will be the same next time. */
const final = ({ code }) => code.endsWith("_NOT_FOUND") || code === "FORBIDDEN" || code === "AUTH_REQUIRED";

export class Follower {
  #connection;
  #hooks;
  #subscribing = false;
  #again = false;
  #failures = 0;
  #timer = null;

  /* Hooks: onState(state, event | null), onRendered(frame), onVersion(version), onSubscribed(ack), onUnheard(error) when
     the server will be asked again, onProblem(error) when it will not. */
  constructor(connection, conversationId, hooks) {
    this.#connection = connection;
    this.#hooks = hooks;
    this.conversationId = conversationId;
    this.state = null;
  }

  get live() {
    return this.state !== null && !this.state.ended;
  }

  /* Take up a run that `start` began; start has subscribed this socket already. */
  started(executionId, conversationId) {
    this.conversationId = conversationId;
    if (this.state?.executionId !== executionId) this.state = new ExecutionState(executionId);
    this.state.conversationId = conversationId;
  }

  /* Subscribe, again if need be: the server answers with a snapshot where there is something to catch up with. */
  async subscribe() {
    if (this.conversationId === null) return;
    if (this.#subscribing) {
      this.#again = true;
      return;
    }
    this.#subscribing = true;
    clearTimeout(this.#timer);
    const fields = { conversationId: this.conversationId, format: "html" };
    try {
      const ack = await this.#connection.request("subscribe", fields, { repeat: false });
      this.#failures = 0;
      this.#hooks.onSubscribed(ack);
    } catch (error) {
      this.#refused(error);
    } finally {
      this.#subscribing = false;
    }
    if (this.#again) {
      this.#again = false;
      await this.subscribe();
    }
  }

  #refused(error) {
    if (error.code === "NOT_CONNECTED") return; // a new connection subscribes by itself
    if (final(error)) {
      this.#hooks.onProblem(error);
      return;
    }
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures++);
    this.#timer = setTimeout(() => this.subscribe(), pause);
    this.#hooks.onUnheard(error);
  }

  /* Take in a frame of the server. */
  receive(frame) {
    if (frame.type === "snapshot") {
      if (frame.conversationId === this.conversationId) this.#replace(ExecutionState.fromWire(frame.state));
    } else if (frame.type === "rendered") {
      this.#hooks.onRendered(frame);
    } else if (frame.executionId !== undefined && frame.seq !== undefined) {
      this.#event(frame);
    }
  }

  #event(event) {
    if (event.executionId !== this.state?.executionId) {
      if (event.type !== "execution-started" || event.conversationId !== this.conversationId) return;
      this.state = new ExecutionState(event.executionId);
    }
    const verdict = this.state.judge(event);
    if (verdict === "gap") this.subscribe();
    if (verdict !== "apply") return;
    this.state.apply(event);
    this.#tell(event);
  }

  #replace(state) {
    // An ended run counts whatever its seq: after a crash the server may know less than was seen.
    if (state.executionId === this.state?.executionId && state.seq < this.state.seq && !state.ended) return;
    this.state = state;
    this.#tell(null);
  }

  #tell(event) {
    if (this.state.revision && (event === null || event.type === "revision-saved")) {
      this.#hooks.onVersion(this.state.revision.version);
    }
    this.#hooks.onState(this.state, event);
  }
}
