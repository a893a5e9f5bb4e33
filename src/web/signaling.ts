import { HouseholdLimit } from "../base/household-limit.ts";
import { householdOf } from "../base/network.ts";
import { TokenBucket } from "../base/rate.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, TextSocket, TextSocketHandlers } from "../runtime/contract.ts";
import { errorMessage, type PeerJsMessage, RELAYED_TYPES, readPeerJsMessage } from "./peerjs-message.ts";

/** Codes in use at the same time: by all devices, and by one device (an IPv6 /64 counts as one). */
const MAX_CODES = 64;
const MAX_DEVICE_CODES = 8;
/** A page connects with its code within this time, and is disconnected after the other. */
const CONNECT_MS = 30_000;
const CODE_LIFETIME_MS = 10 * 60_000;
const CODE_DIGITS = 8;
/** Codes that a device, and all devices, may try: 1,100 while a code is open, of 100 million. */
const DEVICE_TRIES = { perSecond: 1 / 6, burst: 10, maxHouseholds: 1_000 };
const ALL_TRIES = { perSecond: 100 / 60, burst: 100 };
/** Two pages exchange about thirty messages before they are connected. */
const MAX_MESSAGES_PER_PAGE = 1000;

/**
 * A PeerJS signaling server. A page that wants to receive registers a code of eight digits; another page sends to that
 * code. The server relays their messages until they are connected directly. Codes expire, and trying them is limited.
 */
export class SignalingServer {
  readonly #codes = new Map<string, Code>();
  readonly #randomBytes: (length: number) => Uint8Array;
  readonly #clock: Pick<Clock, "now" | "at">;
  readonly #deviceTries = new HouseholdLimit(DEVICE_TRIES);
  readonly #allTries = new TokenBucket(ALL_TRIES.perSecond, ALL_TRIES.burst);

  constructor(randomBytes: (length: number) => Uint8Array, clock: Pick<Clock, "now" | "at">) {
    this.#randomBytes = randomBytes;
    this.#clock = clock;
  }

  /** Assigns a random code to the device at `host`; returns undefined if too many codes are in use. */
  assignCode(host: string): string | undefined {
    const now = this.#clock.now();
    for (const [code, { page, expiresAt }] of this.#codes)
      if (page === undefined && expiresAt <= now) this.#codes.delete(code);
    const household = householdOf(host);
    const own = [...this.#codes.values()].filter((code) => code.household === household);
    if (this.#codes.size >= MAX_CODES || own.length >= MAX_DEVICE_CODES) return undefined;
    let code: string;
    do code = this.#randomCode();
    while (this.#codes.has(code));
    this.#codes.set(code, { household, expiresAt: after(now, CONNECT_MS), page: undefined });
    return code;
  }

  /**
   * Connects a page of the device at `host` under a code that the device was assigned. If that is not possible, sends the
   * reason and closes the connection.
   */
  join(code: string, host: string, socket: TextSocket): TextSocketHandlers {
    const assigned = this.#codes.get(code);
    // The same answer for codes of other devices: it must not show whether a code is in use.
    if (assigned === undefined || assigned.household !== householdOf(host) || assigned.page !== undefined) {
      socket.send(errorMessage("the code is invalid or has expired"));
      socket.close();
      return { received() {}, closed() {} };
    }
    const page: Page = { socket, partners: new Set(), tried: new Set() };
    assigned.page = page;
    assigned.expiresAt = after(this.#clock.now(), CODE_LIFETIME_MS);
    const cancelExpiry = this.#clock.at(assigned.expiresAt, () => socket.close());
    let messages = 0;
    socket.send(JSON.stringify({ type: "OPEN" }));
    return {
      received: (text) => {
        const message = readPeerJsMessage(text);
        // Keeps the connection alive.
        if (message?.type === "HEARTBEAT") return;
        if (message === undefined || ++messages > MAX_MESSAGES_PER_PAGE) socket.close();
        else this.#relay(code, host, page, message);
      },
      closed: () => {
        cancelExpiry();
        this.#codes.delete(code);
      },
    };
  }

  #randomCode(): string {
    const [a, b, c, d] = this.#randomBytes(4) as unknown as [number, number, number, number];
    const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
    return String(number % 10 ** CODE_DIGITS).padStart(CODE_DIGITS, "0");
  }

  #relay(src: string, host: string, from: Page, { type, dst, payload }: PeerJsMessage): void {
    if (!RELAYED_TYPES.has(type) || dst === undefined) return;
    if (!from.partners.has(dst)) {
      // The first message to a code tries it; what follows belongs to that attempt.
      if (from.tried.has(dst)) return;
      from.tried.add(dst);
      const problem = this.#try(src, host, from, dst);
      if (problem !== undefined) {
        from.socket.send(problem);
        return;
      }
    }
    this.#codes.get(dst)?.page?.socket.send(JSON.stringify({ type, src, dst, payload }));
  }

  /** Connects two pages; returns the message for the sender if that is not possible. */
  #try(src: string, host: string, from: Page, dst: string): string | undefined {
    const now = this.#clock.now();
    if (!this.#deviceTries.take(host, now) || !this.#allTries.take(1, now))
      return errorMessage("too many codes were tried; wait a minute");
    const to = this.#codes.get(dst)?.page;
    if (to === undefined) return JSON.stringify({ type: "EXPIRE", src: dst, dst: src });
    from.partners.add(dst);
    to.partners.add(src);
    return undefined;
  }
}

/** An assigned code. */
interface Code {
  readonly household: string;
  expiresAt: Instant;
  /** The page that uses it; undefined until that page connects. */
  page: Page | undefined;
}

interface Page {
  readonly socket: TextSocket;
  /** Codes with which this page may exchange messages. */
  readonly partners: Set<string>;
  /** Codes to which this page has sent; at most one per message. */
  readonly tried: Set<string>;
}
