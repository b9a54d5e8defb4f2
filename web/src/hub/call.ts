// JSON-RPC calls and streams of the hub.

import { HubError, post } from "./request.ts";
import { readServerEvents } from "./server-events.ts";
import { reportReachable, reportUnreachable } from "./reachability.ts";
import type { JsonObject } from "./types.ts";

let nextId = 1;

interface Answer {
  result?: unknown;
  error?: { code: number; message: string; data?: JsonObject };
}

function toError(error: NonNullable<Answer["error"]>): HubError {
  const failure = new HubError("rpc", error.message, error.data ?? {}, error.code);
  if (failure.isTemporary) reportUnreachable("starting");
  return failure;
}

async function send(path: string, method: string, params: object, abort?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params });
  let response: Response;
  try {
    response = await post(path, body, abort);
  } catch (error) {
    if (error instanceof HubError && error.kind === "network") reportUnreachable("offline");
    throw error;
  }
  if (response.status === 502 || response.status === 503 || response.status === 504) {
    reportUnreachable("starting");
    throw new HubError("network", "The hub is not ready.");
  }
  const type = response.headers.get("content-type") ?? "";
  if (!response.ok && !type.includes("json")) {
    throw new HubError("http", `The hub answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }
  return response;
}

async function parse(response: Response): Promise<Answer> {
  try {
    return (await response.json()) as Answer;
  } catch {
    throw new HubError("network", "The hub's answer broke off.");
  }
}

/** Calls a method and returns its result. */
export async function call<T>(method: string, params: object = {}, abort?: AbortSignal): Promise<T> {
  const answer = await parse(await send("/", method, params, abort));
  if (answer.error) throw toError(answer.error);
  reportReachable();
  return answer.result as T;
}

export interface StreamItem<T> {
  value: T;
  seq?: number;
}

/** Calls a method that streams. Ends with the stream; throws a `HubError` if it breaks off. */
export async function* stream<T>(method: string, params: object, abort: AbortSignal): AsyncGenerator<StreamItem<T>> {
  const response = await send("/stream", method, params, abort);
  if (!response.body || !(response.headers.get("content-type") ?? "").includes("text/event-stream")) {
    const answer = await parse(response);
    if (answer.error) throw toError(answer.error);
    yield { value: answer.result as T };
    return;
  }
  reportReachable();
  try {
    for await (const event of readServerEvents(response.body)) {
      const answer = JSON.parse(event.data) as Answer;
      if (answer.error) throw toError(answer.error);
      const seq = event.id === undefined ? undefined : Number(event.id);
      yield seq === undefined ? { value: answer.result as T } : { value: answer.result as T, seq };
    }
  } catch (error) {
    if (error instanceof HubError) throw error;
    if (abort.aborted) throw new HubError("aborted", "aborted");
    throw new HubError("network", "The stream broke off.");
  }
}
