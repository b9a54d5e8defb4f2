/** Why something was not done, as the contract has it. */

const KINDS = ["invalid", "unsupported", "denied", "cancelled", "timeout", "unavailable", "exhausted", "internal"];

/** What the hub refused or could not do; also what an agent throws to end its task as failed. */
export class Failure extends Error {
  constructor(kind, text = "") {
    super(text || { cancelled: "the task was cancelled", timeout: "it took longer than it was given" }[kind] || kind);
    this.name = "Failure";
    this.kind = kind;
  }

  static {
    for (const kind of KINDS) Failure[kind] = (text) => new (kind === "cancelled" ? Cancelled : Failure)(kind, text);
  }

  /** As the contract's variant. */
  toContract() {
    return ["cancelled", "timeout"].includes(this.kind) ? { tag: this.kind } : { tag: this.kind, val: this.message.toWellFormed?.() ?? this.message };
  }
}

/** The task was cancelled: clean up and let it pass. */
export class Cancelled extends Failure {
  constructor() {
    super("cancelled");
    this.name = "Cancelled";
  }
}

/** A failure from what a host function threw; anything else as it is. */
export function failureOf(thrown) {
  if (thrown instanceof Failure) return thrown;
  const variant = thrown?.payload ?? thrown;
  if (!KINDS.includes(variant?.tag)) return thrown;
  return variant.tag === "cancelled" ? new Cancelled() : new Failure(variant.tag, variant.val ?? "");
}

/** Calls the host, and throws a `Failure` where the host says one. */
export function asking(call) {
  try {
    return call();
  } catch (thrown) {
    throw failureOf(thrown);
  }
}
