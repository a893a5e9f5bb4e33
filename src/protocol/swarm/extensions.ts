import { addressScope, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { metadataHash } from "../../base/ids.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { decodeExtensionHandshake, encodeExtensionHandshake } from "../../wire/peer/extension-handshake.ts";
import { decodeMetadataMessage, encodeMetadataMessage } from "../../wire/peer/metadata-message.ts";
import {
  decodePexMessage,
  encodePexMessage,
  PEX_HOLEPUNCH,
  PEX_REACHABLE,
  PEX_UPLOAD_ONLY,
  type PexPeer,
} from "../../wire/peer/pex-message.ts";
import { HolePunch } from "./holepunch.ts";
import { MAX_UPLOAD_QUEUE } from "./limits.ts";
import { MetadataExchange } from "./metadata-exchange.ts";
import type { Peer } from "./peer.ts";
import { Pex } from "./pex.ts";
import type { SwarmState } from "./state.ts";

/** The client name in the extension handshake (BEP 10 `v`). */
export const CLIENT = "Sluice 0.1.0";
/** Ids that peers use for messages to this engine (BEP 10 `m`). */
const METADATA_ID = 1;
const PEX_ID = 2;
const HOLEPUNCH_ID = 3;
const OUR_MESSAGES: ReadonlyMap<string, number> = new Map([
  ["ut_metadata", METADATA_ID],
  ["ut_pex", PEX_ID],
]);
const OUR_PUNCHING_MESSAGES = new Map([...OUR_MESSAGES, ["ut_holepunch", HOLEPUNCH_ID]]);
/** Private content exchanges no peers (BEP 27). */
const OUR_PRIVATE_MESSAGES: ReadonlyMap<string, number> = new Map([["ut_metadata", METADATA_ID]]);

/** Operations of the swarm that `Extensions` depends on. */
interface ExtensionsDependencies {
  /** The metadata is known and matches the infohash. */
  metadata(infoBytes: Uint8Array): void;
  ban(peer: Peer, reason: string): void;
  close(peer: Peer, reason: string): void;
  /** Connects to an address over uTP while the peer there connects to this engine. */
  punch(address: PeerAddress): void;
}

/** The extension protocol (BEP 10): handshakes, metadata (BEP 9), PEX (BEP 11), partial seeds (BEP 21), hole punching
 * (BEP 55). */
export class Extensions {
  readonly #state: SwarmState;
  readonly #dependencies: ExtensionsDependencies;
  readonly #metadata: MetadataExchange;
  readonly #holePunch: HolePunch<Peer>;
  /** When the next PEX message is due. */
  #pexAt: Instant | undefined;

  constructor(state: SwarmState, dependencies: ExtensionsDependencies) {
    this.#state = state;
    this.#dependencies = dependencies;
    this.#holePunch = new HolePunch({
      isOn: () => state.setup.allowsHolePunching === true && !state.isPrivate,
      peers: () => state.peers.values(),
      send: (peer, payload) => peer.writer.extended(peer.holepunchMessageId, payload),
      connect(address, relay) {
        // As with PEX, a peer outside the local network cannot add addresses inside it.
        state.candidates.add([address], "pex", state.now, relay.address);
        dependencies.punch(address);
      },
    });
    const { infohash, sha1, sha256, info } = state.setup;
    this.#metadata = new MetadataExchange(infohash, metadataHash(infohash, sha1, sha256), info?.infoBytes);
  }

  /** Sends the extension handshake to a peer that supports BEP 10. */
  sendHandshake(peer: Peer): void {
    const metadataBytes = this.#metadata.infoBytes?.length;
    const handshake = encodeExtensionHandshake({
      messages: this.#state.isPrivate
        ? OUR_PRIVATE_MESSAGES
        : this.#holePunch.isOn
          ? OUR_PUNCHING_MESSAGES
          : OUR_MESSAGES,
      version: CLIENT,
      requestQueue: MAX_UPLOAD_QUEUE,
      yourAddress: peer.address.host,
      ...(this.#state.setup.listenPort > 0 && { listenPort: this.#state.setup.listenPort }),
      ...(metadataBytes !== undefined && { metadataBytes }),
      ...(this.#state.pieces && { uploadOnly: this.#state.pieces.isComplete }),
    });
    peer.writer.extended(0, handshake);
  }

  /** Sends the extension handshake again to all peers, because `upload_only` changed (BEP 21). */
  sendHandshakeToAll(): void {
    for (const peer of this.#state.peers.values()) {
      if (peer.stage === "open" && peer.isExtended) this.sendHandshake(peer);
    }
  }

  /** Takes metadata from another source. */
  supply(infoBytes: Uint8Array): void {
    this.#metadata.supply(infoBytes);
    this.#drainOutputs();
  }

  /** Takes an extended message. Throws `DecodeError`. */
  received(peer: Peer, id: number, payload: Uint8Array): void {
    if (!peer.isExtended) throw new DecodeError("peer message", 0, "extended message without BEP 10 support");
    if (id === 0) this.#handshakeReceived(peer, payload);
    else if (id === METADATA_ID) {
      const message = decodeMetadataMessage(payload);
      if (message) this.#metadata.received(peer.connection, message, this.#state.now);
    } else if (id === PEX_ID) this.#pexReceived(peer, payload);
    else if (id === HOLEPUNCH_ID) this.#holePunch.received(peer, payload, this.#state.now);
    this.#drainOutputs();
  }

  /** Connecting to an address failed. */
  connectFailed(address: PeerAddress): void {
    this.#holePunch.failed(address, this.#state.now);
  }

  /** The connection has ended. */
  peerLeft(peer: Peer): void {
    this.#holePunch.peerLeft(peer);
    this.#metadata.peerLeft(peer.connection, this.#state.now);
    this.#drainOutputs();
  }

  /** Sends due requests and PEX messages. */
  round(): void {
    const { now } = this.#state;
    const metadataAt = this.#metadata.nextWake();
    if (metadataAt !== undefined && now >= metadataAt) {
      this.#metadata.wake(now);
      this.#drainOutputs();
    }
    if (this.#pexAt !== undefined && now >= this.#pexAt) this.#sendPex();
  }

  nextWake(): Instant | undefined {
    return earliest(this.#metadata.nextWake(), this.#pexAt);
  }

  #handshakeReceived(peer: Peer, payload: Uint8Array): void {
    const handshake = decodeExtensionHandshake(payload);
    const { now, candidates, isPrivate } = this.#state;
    if (handshake.version !== undefined && handshake.version !== "") peer.client = handshake.version;
    if (handshake.requestQueue !== undefined) peer.requestLimit = handshake.requestQueue;
    if (handshake.uploadOnly !== undefined) peer.isUploadOnly = handshake.uploadOnly;
    const { messages } = handshake;
    peer.metadataMessageId = messages.get("ut_metadata") ?? peer.metadataMessageId;
    peer.pexMessageId = messages.get("ut_pex") ?? peer.pexMessageId;
    peer.holepunchMessageId = messages.get("ut_holepunch") ?? peer.holepunchMessageId;
    if (peer.isIncoming && handshake.listenPort !== undefined) {
      peer.listenAddress = { host: peer.address.host, port: handshake.listenPort };
      const isAllowed = isPrivate || candidates.listensOn(peer.address, handshake.listenPort, now);
      if (!isAllowed) {
        // A peer banned at its listening address must not return by an incoming connection.
        this.#dependencies.close(peer, "banned");
        return;
      }
    }
    if (peer.metadataMessageId !== 0) this.#metadata.joined(peer.connection, handshake.metadataBytes, now);
    if (peer.pexMessageId !== 0 && !isPrivate && !peer.pex) {
      peer.pex = new Pex();
      this.#pexAt = now;
    }
  }

  #pexReceived(peer: Peer, payload: Uint8Array): void {
    const { now, candidates, isPrivate } = this.#state;
    if (!peer.pex || isPrivate) return;
    const result = peer.pex.limit(now);
    if (result === "close") throw new DecodeError("PEX", 0, "far more than one message a minute");
    if (result === "ignore") return;
    const { added } = decodePexMessage(payload);
    this.#holePunch.reported(peer, added);
    candidates.add(
      added.map(({ address }) => address),
      "pex",
      now,
      peer.address,
    );
  }

  #sendPex(): void {
    const { now, peers, isPrivate } = this.#state;
    this.#pexAt = undefined;
    if (isPrivate) return;
    const known: PexPeer[] = [];
    for (const peer of peers.values())
      if (peer.stage === "open" && peer.listenAddress) known.push(pexPeer(peer, peer.listenAddress));
    for (const peer of peers.values()) {
      if (peer.stage !== "open" || !peer.pex) continue;
      const isLocal = addressScope(peer.address.host) !== "global";
      const visible = isLocal
        ? known
        : known.filter(({ address }) => addressScope(address.host) === "global");
      const message = peer.pex.delta(visible, peer.listenAddress, now);
      if (message) peer.writer.extended(peer.pexMessageId, encodePexMessage(message));
      this.#pexAt = earliest(this.#pexAt, peer.pex.nextWake());
    }
  }

  #drainOutputs(): void {
    for (let output = this.#metadata.poll(); output; output = this.#metadata.poll()) {
      if (output.kind === "complete") {
        this.#dependencies.metadata(output.infoBytes);
        continue;
      }
      const peer = this.#state.peers.get(output.connection);
      if (!peer) continue;
      if (output.kind === "ban") this.#dependencies.ban(peer, output.reason);
      else if (peer.metadataMessageId !== 0) {
        peer.writer.extended(peer.metadataMessageId, encodeMetadataMessage(output.message));
      }
    }
  }
}

function pexPeer(peer: Peer, address: PeerAddress): PexPeer {
  const isSeed = peer.pieces.isAll || peer.isUploadOnly;
  const canPunch = peer.holepunchMessageId !== 0;
  const flags = (isSeed ? PEX_UPLOAD_ONLY : 0) | (canPunch ? PEX_HOLEPUNCH : 0);
  return { address, flags: flags | (peer.isIncoming ? 0 : PEX_REACHABLE) };
}
