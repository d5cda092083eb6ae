/* Follows one conversation over the connection: keeps the state of its run in step with the server.

   Events that follow one another are applied; a gap, a reconnect or a page that was just loaded asks for a snapshot. */

import { ExecutionState } from "./reducer.js";

export class Follower {
  #connection;
  #hooks;
  #subscribing = false;
  #again = false;

  /* Hooks: onState(state, event | null), onRendered(frame), onVersion(version), onSubscribed(), onProblem(error). */
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
    const fields = { conversationId: this.conversationId, format: "html" };
    try {
      const ack = await this.#connection.request("subscribe", fields, { repeat: false });
      this.#hooks.onSubscribed(ack);
    } catch (error) {
      if (error.code !== "NOT_CONNECTED") this.#hooks.onProblem(error); // a new connection subscribes by itself
    } finally {
      this.#subscribing = false;
    }
    if (this.#again) {
      this.#again = false;
      await this.subscribe();
    }
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
