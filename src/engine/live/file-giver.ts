import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { CLIENT } from "../../swarm/extensions.ts";
import { decodeExtensionHandshake, encodeExtensionHandshake } from "../../wire/extension-handshake.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../../wire/handshake.ts";
import { decodeMetadataMessage } from "../../wire/metadata-message.ts";
import { PeerMessageDecoder } from "../../wire/peer-message.ts";
import { PeerMessageWriter } from "../../wire/peer-message-writer.ts";
import { extendedOnly } from "./extended-only.ts";
import { LiveMetadata } from "./live-metadata.ts";

/** What is given to whom. */
export interface FileGiverSetup {
  /** The SHA-1 of `bytes`, as peers ask for it. */
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly bytes: Uint8Array;
}

/** The number that others are to use towards us. */
const METADATA_ID = 1;
/** Nothing that is asked here comes near; what other swarms would say first (a bitfield) is read over. */
const LIMITS = { maxBitfieldBytes: 256 * 1024, maxExtendedBytes: 20 * 1024, maxBlockBytes: 0 };

/** Gives one peer a file as the metadata of a swarm (BEP 9, 10), without its socket. It has nothing else to give. */
export class FileGiver {
  readonly #setup: FileGiverSetup;
  readonly #file: LiveMetadata;
  readonly #writer = new PeerMessageWriter();
  readonly #decoder: PeerMessageDecoder;
  readonly #greeting = new Uint8Array(HANDSHAKE_BYTES);
  #greetingFilled = 0;
  /** The number that the peer wants its messages to carry. */
  #metadataId = 0;

  constructor(setup: FileGiverSetup) {
    this.#setup = setup;
    this.#file = new LiveMetadata(setup.bytes);
    this.#decoder = new PeerMessageDecoder(
      extendedOnly((id, payload) => this.#extended(id, payload)),
      LIMITS,
    );
  }

  /** Takes bytes of the peer, its handshake first; returns what is to be sent. Throws `DecodeError` where it is at fault, or
   * cannot be given anything; nothing may follow then. */
  received(bytes: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    const part = bytes.subarray(0, HANDSHAKE_BYTES - this.#greetingFilled);
    this.#greeting.set(part, this.#greetingFilled);
    this.#greetingFilled += part.length;
    if (this.#greetingFilled < HANDSHAKE_BYTES) return undefined;
    if (part.length > 0) this.#greeted();
    if (part.length < bytes.length) this.#decoder.feed(bytes.subarray(part.length));
    return this.#writer.take();
  }

  #greeted(): void {
    const { infohash, peerId, bytes } = this.#setup;
    const handshake = decodeHandshake(this.#greeting);
    if (handshake.infohash !== infohash) throw new DecodeError("handshake", 28, "another infohash");
    if (!handshake.extensions) throw new DecodeError("handshake", 20, "cannot ask for metadata");
    this.#writer.raw(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }));
    const messages = new Map([["ut_metadata", METADATA_ID]]);
    const hello = { messages, version: CLIENT, metadataBytes: bytes.length, uploadOnly: true };
    this.#writer.extended(0, encodeExtensionHandshake(hello));
  }

  #extended(id: number, payload: Uint8Array): void {
    if (id === 0) {
      const { messages } = decodeExtensionHandshake(payload);
      this.#metadataId = messages.get("ut_metadata") ?? this.#metadataId;
    } else if (id === METADATA_ID && this.#metadataId !== 0) {
      const message = decodeMetadataMessage(payload);
      const answer = message && this.#file.answer(message);
      if (answer) this.#writer.extended(this.#metadataId, answer);
    }
  }
}
