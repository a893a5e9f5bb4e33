import type { TextSocket, TextSocketHandlers } from "../runtime/contract.ts";

/** Screens of one household. */
const MAX_SCREENS = 32;
/** Two pages need about thirty messages to find each other. */
const MAX_MESSAGES_EACH = 1000;
/** Longer than any offer; the answer must fit a message with the name of its sender. */
const MAX_MESSAGE_LENGTH = 32 * 1024;

/** What pages say to one another before they are connected (the words of PeerJS's signalling). */
const RELAYED = new Set(["OFFER", "ANSWER", "CANDIDATE", "LEAVE", "EXPIRE"]);

/**
 * Lets open pages find each other by a code of six digits: it hands on what they say until they are connected, and
 * hears nothing afterwards. Speaks the signalling protocol of PeerJS.
 */
export class Switchboard {
  readonly #screens = new Map<string, TextSocket>();
  readonly #randomBytes: (length: number) => Uint8Array;

  constructor(randomBytes: (length: number) => Uint8Array) {
    this.#randomBytes = randomBytes;
  }

  /** A code that no open page has. */
  freeCode(): string {
    for (;;) {
      const [a, b, c, d] = this.#randomBytes(4) as unknown as [number, number, number, number];
      const code = String((((a << 24) | (b << 16) | (c << 8) | d) >>> 0) % 1_000_000).padStart(6, "0");
      if (!this.#screens.has(code)) return code;
    }
  }

  /** A page that wants to be found by `code`. One that cannot be is told why and disconnected. */
  join(code: string, socket: TextSocket): TextSocketHandlers {
    const problem = this.#problemOf(code);
    if (problem !== undefined) {
      socket.send(JSON.stringify(problem));
      socket.close();
      return { received() {}, closed() {} };
    }
    this.#screens.set(code, socket);
    let messages = 0;
    socket.send(JSON.stringify({ type: "OPEN" }));
    return {
      received: (text) => {
        const message = readMessage(text);
        // A sign of life.
        if (message?.type === "HEARTBEAT") return;
        if (message === undefined || ++messages > MAX_MESSAGES_EACH) socket.close();
        else this.#relay(code, socket, message);
      },
      closed: () => {
        this.#screens.delete(code);
      },
    };
  }

  #problemOf(code: string): object | undefined {
    if (!/^\d{6}$/.test(code)) return error("expected a code of six digits");
    if (this.#screens.has(code)) return { type: "ID-TAKEN", payload: { msg: "the code is taken" } };
    return this.#screens.size >= MAX_SCREENS ? error("too many screens are open") : undefined;
  }

  #relay(src: string, from: TextSocket, { type, dst, payload }: Message): void {
    if (!RELAYED.has(type) || dst === undefined) return;
    const to = this.#screens.get(dst);
    if (to !== undefined) to.send(JSON.stringify({ type, src, dst, payload }));
    else if (type === "OFFER") from.send(JSON.stringify({ type: "EXPIRE", src: dst, dst: src }));
  }
}

interface Message {
  readonly type: string;
  readonly dst: string | undefined;
  readonly payload: unknown;
}

/** A message of a page, or undefined where it is none. */
function readMessage(text: string): Message | undefined {
  if (text.length > MAX_MESSAGE_LENGTH) return undefined;
  try {
    const { type, dst, payload } = JSON.parse(text) as { type?: unknown; dst?: unknown; payload?: unknown };
    if (typeof type !== "string") return undefined;
    return { type, dst: typeof dst === "string" ? dst : undefined, payload };
  } catch {
    return undefined; // No JSON, or no object: the page is disconnected.
  }
}

function error(msg: string): object {
  return { type: "ERROR", payload: { msg } };
}
