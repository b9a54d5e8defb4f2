/** Variants of the contract's `failure`. */

const KINDS = ["invalid", "unsupported", "denied", "cancelled", "timeout", "unavailable", "exhausted", "internal"];

/** Refusal or error of the hub. An agent can throw one to end its task as failed. */
export class Failure extends Error {
  constructor(kind, text = "") {
    super(text || { cancelled: "the task was cancelled", timeout: "it took longer than it was given" }[kind] || kind);
    this.name = "Failure";
    this.kind = kind;
  }

  static {
    for (const kind of KINDS) Failure[kind] = (text) => new (kind === "cancelled" ? Cancelled : Failure)(kind, text);
  }

  /** Converts to the contract's variant. */
  toContract() {
    return ["cancelled", "timeout"].includes(this.kind) ? { tag: this.kind } : { tag: this.kind, val: this.message.toWellFormed?.() ?? this.message };
  }
}

/** The task was cancelled: clean up, and let the error propagate. */
export class Cancelled extends Failure {
  constructor() {
    super("cancelled");
    this.name = "Cancelled";
  }
}

/** Converts a failure that a host function threw; returns any other value as it is. */
export function failureOf(thrown) {
  if (thrown instanceof Failure) return thrown;
  const variant = thrown?.payload ?? thrown;
  if (!KINDS.includes(variant?.tag)) return thrown;
  return variant.tag === "cancelled" ? new Cancelled() : new Failure(variant.tag, variant.val ?? "");
}

/** Calls the host, and throws a `Failure` if the host returns one. */
export function asking(call) {
  try {
    return call();
  } catch (thrown) {
    throw failureOf(thrown);
  }
}
