import { addressScope, type PeerAddress } from "../../base/address.ts";
import { ChunkAssembler } from "../../wire/live/fragments.ts";
import { decodeHeader } from "../../wire/live/header.ts";
import type { LiveInfo } from "../../wire/live/info.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../wire/live/message.ts";
import type { LiveMessage, SignedHeader } from "./messages.ts";

/** Encodes and decodes the live messages of one connection. */
export class LiveCodec {
  readonly #info: LiveInfo;
  readonly #from: PeerAddress;
  readonly #assembler: ChunkAssembler;
  /** The token of the last PING as the swarm chose it; the wire carries 32 bits of it. */
  #pingToken = 0;

  /** `from` is the address of the peer. */
  constructor(info: LiveInfo, from: PeerAddress) {
    this.#info = info;
    this.#from = from;
    this.#assembler = new ChunkAssembler(info);
  }

  /** Decodes a message. Returns undefined for one to ignore, and for a fragment that is not the last. Throws
   * `DecodeError`. */
  decode(payload: Uint8Array): LiveMessage | undefined {
    const message = decodeLiveMessage(payload, this.#info.stripeCount);
    switch (message?.kind) {
      case undefined:
        return undefined;
      case "stat":
        return { kind: "stat", stat: { value: message, bytes: payload.slice() } };
      case "chunk": {
        const whole = this.#assembler.take(message);
        return whole && { kind: "chunk", ...whole };
      }
      case "hello":
        return { kind: "hello", header: message.header && this.#header(message.header) };
      case "header":
        return { ...message, header: this.#header(message.header) };
      case "refused":
      case "bye":
        return {
          ...message,
          candidates: message.candidates.filter(({ address }) => isPlausibleAddress(address, this.#from)),
        };
      case "lacking":
        return {
          ...message,
          holders: message.holders.filter((each) => isPlausibleAddress(each, this.#from)),
        };
      case "pong":
        return message.token === this.#pingToken >>> 0 ? { ...message, token: this.#pingToken } : message;
      default:
        return message;
    }
  }

  /** Encodes any message but a chunk. Returns undefined if its list or set is empty, which the wire format does not
   * allow. */
  encode(message: Exclude<LiveMessage, { kind: "chunk" }>): Uint8Array | undefined {
    if (isEmpty(message)) return undefined;
    switch (message.kind) {
      case "hello":
        return encodeLiveMessage({ kind: "hello", header: message.header?.bytes });
      case "header":
        return encodeLiveMessage({ ...message, header: message.header.bytes });
      case "stat":
        return message.stat.bytes;
      case "ping":
        this.#pingToken = message.token;
        return encodeLiveMessage(message);
      case "pong":
        // Its clock is the peer's business, not ours.
        return encodeLiveMessage({ ...message, clockMs: 0 });
      default:
        return encodeLiveMessage(message);
    }
  }

  /** Copies a header: received bytes are valid only during the call, and headers are kept. */
  #header(bytes: Uint8Array): SignedHeader {
    const copy = bytes.slice();
    return { value: decodeHeader(copy, this.#info), bytes: copy };
  }
}

/** Whether to use an address that a peer reports. Remote peers must not direct us to local hosts, so a local address
 * is accepted only from a local peer. */
export function isPlausibleAddress(address: PeerAddress, from: PeerAddress): boolean {
  const scope = addressScope(address.host);
  const fromScope = addressScope(from.host);
  return scope === "global" || scope === fromScope || (scope === "private" && fromScope !== "global");
}

function isEmpty(message: LiveMessage): boolean {
  switch (message.kind) {
    case "paths":
      return message.paths.length === 0;
    case "request":
    case "cancel":
    case "lacking":
      return message.chunks.length === 0;
    case "subscribe":
    case "subscribed":
    case "refused":
    case "unsubscribe":
      return message.stripes === 0;
    default:
      return false;
  }
}
