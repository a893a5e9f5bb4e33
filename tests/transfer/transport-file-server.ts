import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { LiveMetadata } from "../../src/live/live-metadata.ts";
import { CLIENT } from "../../src/protocol/swarm/extensions.ts";
import {
  decodeExtensionHandshake,
  encodeExtensionHandshake,
} from "../../src/wire/peer/extension-handshake.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../../src/wire/peer/handshake.ts";
import { decodeMetadataMessage } from "../../src/wire/peer/metadata-message.ts";
import { handleOnly, PeerMessageDecoder } from "../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";

/** What is served, and to which swarm it belongs. */
export interface TransportFileServerOptions {
  /** The SHA-1 of `bytes`, which peers use as the infohash. */
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly bytes: Uint8Array;
}

/** The message id that the peer shall use for ut_metadata. */
const METADATA_ID = 1;
/** No block is ever requested here. Messages of other swarms, such as a bitfield, are skipped. */
const LIMITS = { maxBitfieldBytes: 256 * 1024, maxExtendedBytes: 20 * 1024, maxBlockBytes: 0 };

/** Serves one peer a file as the metadata of a swarm (BEP 9, 10), without its socket. It serves nothing else. */
export class TransportFileServer {
  readonly #options: TransportFileServerOptions;
  readonly #metadata: LiveMetadata;
  readonly #writer = new PeerMessageWriter();
  readonly #decoder: PeerMessageDecoder;
  readonly #handshake = new Uint8Array(HANDSHAKE_BYTES);
  #handshakeLength = 0;
  /** The message id that the peer expects for ut_metadata. */
  #metadataId = 0;

  constructor(options: TransportFileServerOptions) {
    this.#options = options;
    this.#metadata = new LiveMetadata(options.bytes);
    this.#decoder = new PeerMessageDecoder(
      handleOnly({ extended: (id, payload) => this.#extended(id, payload) }),
      LIMITS,
    );
  }

  /** Handles bytes from the peer, starting with its handshake, and returns the bytes to send. Throws `DecodeError` if
   * the peer breaks the protocol or cannot fetch metadata; do not call it afterwards. */
  received(bytes: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    const part = bytes.subarray(0, HANDSHAKE_BYTES - this.#handshakeLength);
    this.#handshake.set(part, this.#handshakeLength);
    this.#handshakeLength += part.length;
    if (this.#handshakeLength < HANDSHAKE_BYTES) return undefined;
    if (part.length > 0) this.#handshakeReceived();
    if (part.length < bytes.length) this.#decoder.feed(bytes.subarray(part.length));
    return this.#writer.take();
  }

  #handshakeReceived(): void {
    const { infohash, peerId, bytes } = this.#options;
    const handshake = decodeHandshake(this.#handshake);
    if (handshake.infohash !== infohash) throw new DecodeError("handshake", 28, "another infohash");
    if (!handshake.extensions) throw new DecodeError("handshake", 20, "no extension protocol (BEP 10)");
    this.#writer.raw(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }));
    const messages = new Map([["ut_metadata", METADATA_ID]]);
    const extensionHandshake = { messages, version: CLIENT, metadataBytes: bytes.length, uploadOnly: true };
    this.#writer.extended(0, encodeExtensionHandshake(extensionHandshake));
  }

  #extended(id: number, payload: Uint8Array): void {
    if (id === 0) {
      const { messages } = decodeExtensionHandshake(payload);
      this.#metadataId = messages.get("ut_metadata") ?? this.#metadataId;
    } else if (id === METADATA_ID && this.#metadataId !== 0) {
      const message = decodeMetadataMessage(payload);
      const reply = message && this.#metadata.answer(message);
      if (reply) this.#writer.extended(this.#metadataId, reply);
    }
  }
}
