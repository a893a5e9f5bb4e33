import { addressScope, type PeerAddress } from "../../base/address.ts";
import type { LiveWord, SignedHeader } from "../../swarm/live/messages.ts";
import { ChunkAssembler } from "../../wire/live-fragments.ts";
import { decodeHeader } from "../../wire/live-header.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../wire/live-message.ts";

/** Live messages of one connection, as bytes on one side and as words on the other. */
export class LiveWords {
  readonly #info: LiveInfo;
  readonly #from: PeerAddress;
  readonly #assembler: ChunkAssembler;
  /** The token of the last PING as the machine chose it: on the wire it has 32 bits. */
  #pingToken = 0;

  /** `from` is where the other end is. */
  constructor(info: LiveInfo, from: PeerAddress) {
    this.#info = info;
    this.#from = from;
    this.#assembler = new ChunkAssembler(info);
  }

  /** Reads a message; undefined for one that is to be ignored, and for a fragment that is not the last. Throws
   * `DecodeError`. */
  decode(payload: Uint8Array): LiveWord | undefined {
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
          candidates: message.candidates.filter(({ address }) => isBelievable(address, this.#from)),
        };
      case "lacking":
        return { ...message, holders: message.holders.filter((each) => isBelievable(each, this.#from)) };
      case "pong":
        return message.token === this.#pingToken >>> 0 ? { ...message, token: this.#pingToken } : message;
      default:
        return message;
    }
  }

  /** Writes a word that is no chunk; undefined where it says nothing, since lists and sets on the wire are never empty. */
  encode(word: Exclude<LiveWord, { kind: "chunk" }>): Uint8Array | undefined {
    if (saysNothing(word)) return undefined;
    switch (word.kind) {
      case "hello":
        return encodeLiveMessage({ kind: "hello", header: word.header?.bytes });
      case "header":
        return encodeLiveMessage({ ...word, header: word.header.bytes });
      case "stat":
        return word.stat.bytes;
      case "ping":
        this.#pingToken = word.token;
        return encodeLiveMessage(word);
      case "pong":
        // The question's clock is not ours, which is nobody's business.
        return encodeLiveMessage({ ...word, clockMs: 0 });
      default:
        return encodeLiveMessage(word);
    }
  }

  /** A copy, since what was received is valid for a moment only and headers are kept. */
  #header(bytes: Uint8Array): SignedHeader {
    const copy = bytes.slice();
    return { value: decodeHeader(copy, this.#info), bytes: copy };
  }
}

/** Whether to believe an address that a peer names. Strangers must not point us at routers and printers in here: only who
 * is near itself names who is near. */
export function isBelievable(address: PeerAddress, from: PeerAddress): boolean {
  const scope = addressScope(address.host);
  const fromScope = addressScope(from.host);
  return scope === "global" || scope === fromScope || (scope === "private" && fromScope !== "global");
}

function saysNothing(word: LiveWord): boolean {
  switch (word.kind) {
    case "paths":
      return word.paths.length === 0;
    case "request":
    case "cancel":
    case "lacking":
      return word.chunks.length === 0;
    case "subscribe":
    case "subscribed":
    case "refused":
    case "unsubscribe":
      return word.stripes === 0;
    default:
      return false;
  }
}
