/** Longer than any offer; in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 32 * 1024;

/** The PeerJS messages that pages exchange before they are connected. */
export const RELAYED_TYPES = new Set(["OFFER", "ANSWER", "CANDIDATE", "LEAVE", "EXPIRE"]);

/** A message of the PeerJS signaling protocol. */
export interface PeerJsMessage {
  readonly type: string;
  readonly dst: string | undefined;
  readonly payload: unknown;
}

/** Parses a message; returns undefined if it is invalid. */
export function readPeerJsMessage(text: string): PeerJsMessage | undefined {
  if (text.length > MAX_MESSAGE_LENGTH) return undefined;
  try {
    const { type, dst, payload } = JSON.parse(text) as { type?: unknown; dst?: unknown; payload?: unknown };
    if (typeof type !== "string") return undefined;
    return { type, dst: typeof dst === "string" ? dst : undefined, payload };
  } catch {
    return undefined; // Not a JSON object: the caller disconnects the page.
  }
}

/** Returns the message that reports a problem to a page. */
export function errorMessage(msg: string): string {
  return JSON.stringify({ type: "ERROR", payload: { msg } });
}
