/* The reducer of one run: events in, state out. It mirrors ExecutionState in agent/runtime/state.py, field by field,
   and both are tested with the same recordings. A snapshot of the server is a state as toWire() gives it. */

const ENDED = new Set(["completed", "failed", "cancelled"]);

export class ExecutionState {
  constructor(executionId) {
    this.executionId = executionId;
    this.conversationId = null;
    this.agent = "";
    this.seq = 0;
    this.status = "running";
    this.phase = null;
    this.messages = [];
    this.messageId = null;
    this.blocks = new Map();
    this.tools = new Map();
    this.interrupt = null;
    this.interruptCallId = null;
    this.revision = null;
    this.outcome = null;
    this.error = null;
  }

  get ended() {
    return ENDED.has(this.status);
  }

  /* Say what to do with a frame: "apply" it, "ignore" it (seen before), or ask for a snapshot because of a "gap". */
  judge(event) {
    if ((event.fromSeq ?? event.seq) === this.seq + 1) return "apply";
    return event.seq <= this.seq ? "ignore" : "gap";
  }

  /* Take in the next event or merged delta; throws unless it follows the last one. */
  apply(event) {
    if (this.judge(event) !== "apply") {
      throw new Error(`event ${event.fromSeq ?? event.seq} cannot follow event ${this.seq}`);
    }
    this.seq = event.seq;
    switch (event.type) {
      case "block-delta":
        this.blocks.get(event.index).text += event.delta.text ?? event.delta.argumentsDelta;
        break;
      case "execution-started":
        this.conversationId = event.conversationId;
        this.agent = event.agent;
        break;
      case "status":
        this.phase = event.status;
        break;
      case "model-call-started":
        this.messageId = event.responseMessageId;
        this.blocks = new Map();
        break;
      case "block-start": {
        const { type, callId = "", name = "" } = event.block;
        this.blocks.set(event.index, { index: event.index, type, callId, name, text: "", stopped: false });
        break;
      }
      case "block-stop":
        this.blocks.get(event.index).stopped = true;
        break;
      case "messages":
        this.#add(event.messages, event.fromIndex);
        break;
      case "tool-call-started":
        this.tools.set(event.callId, {
          callId: event.callId,
          toolName: event.toolName,
          arguments: event.arguments,
          status: "running",
          isError: false,
          progress: [],
        });
        break;
      case "tool-progress":
        this.tools.get(event.callId).progress.push(event.text);
        break;
      case "tool-call-completed": {
        const tool = this.tools.get(event.callId);
        if (tool) Object.assign(tool, { status: "completed", isError: event.isError });
        break;
      }
      case "interrupt-requested":
        this.interrupt = event.interrupt;
        this.interruptCallId = event.callId;
        this.status = "waiting_input";
        break;
      case "interrupt-resolved":
        this.interrupt = this.interruptCallId = null;
        this.status = "running";
        break;
      case "agent-handoff":
        this.agent = event.toAgent;
        break;
      case "execution-suspended":
        this.status = "suspended";
        this.phase = null;
        break;
      case "revision-saved":
        this.revision = { id: event.revisionId, number: event.number, version: event.version };
        break;
      case "execution-completed":
        this.outcome = event.outcome;
        this.#end(event.outcome.type === "cancelled" ? "cancelled" : "completed");
        break;
      case "execution-failed":
        this.error = { code: event.errorCode, message: event.errorMessage, retryable: event.retryable };
        this.#end("failed");
        break;
      default: // an event of a newer server: its place in the order is all that counts here
    }
  }

  #add(added, fromIndex) {
    this.messages.splice(fromIndex, Infinity, ...added);
    if (added.some((message) => message.id === this.messageId)) {
      this.messageId = null;
      this.blocks = new Map();
    }
  }

  #end(status) {
    this.status = status;
    this.phase = this.interrupt = this.interruptCallId = null;
  }

  /* The blocks of the message that is being written, in order. */
  get streamed() {
    return [...this.blocks.values()].sort((one, other) => one.index - other.index);
  }

  toWire() {
    return {
      executionId: this.executionId,
      conversationId: this.conversationId,
      agent: this.agent,
      seq: this.seq,
      status: this.status,
      phase: this.phase,
      messages: this.messages,
      current: this.messageId === null ? null : { messageId: this.messageId, blocks: this.streamed },
      tools: [...this.tools.values()],
      interrupt: this.interrupt,
      interruptCallId: this.interruptCallId,
      revision: this.revision,
      outcome: this.outcome,
      error: this.error,
    };
  }

  /* Rebuild a state from a snapshot; the next event may be applied to it. */
  static fromWire(data) {
    const { current, tools, messages, ...plain } = data;
    const state = Object.assign(new ExecutionState(data.executionId), plain);
    state.messages = [...messages];
    if (current) {
      state.messageId = current.messageId;
      for (const block of current.blocks) state.blocks.set(block.index, { ...block });
    }
    for (const tool of tools) state.tools.set(tool.callId, { ...tool, progress: [...tool.progress] });
    return state;
  }
}
