import { countStripes, LIVE_KIND } from "../../wire/live/message-kind.ts";
import type { LiveMessage } from "./messages.ts";

/** Limit of the responses that are expected at the same time: a second of the requests that one peer may get. */
const MAX_EXPECTED = 2_000;

const RESPONSES: ReadonlySet<number> = new Set([
  LIVE_KIND.header,
  LIVE_KIND.subscribed,
  LIVE_KIND.refused,
  LIVE_KIND.lacking,
  LIVE_KIND.pong,
]);

/** Counts the responses that one peer owes us: they do not count as messages of its own. */
export class ExpectedResponses {
  #expected = 0;

  /** A message was sent to the peer. */
  sent(message: LiveMessage): void {
    this.#expected = Math.min(this.#expected + responsesTo(message), MAX_EXPECTED);
  }

  /** Whether a received message of this kind is an expected response. */
  take(kind: number): boolean {
    if (this.#expected === 0 || !RESPONSES.has(kind)) return false;
    this.#expected--;
    return true;
  }
}

/** The maximum number of responses to a message, without chunks. */
function responsesTo(message: LiveMessage): number {
  if (message.kind === "headerRequest") return message.count;
  if (message.kind === "request") return message.chunks.length;
  if (message.kind === "subscribe") return countStripes(message.stripes);
  return message.kind === "ping" ? 1 : 0;
}
