import { addressScope, type PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import { eitherHash } from "../base/ids.ts";
import { earliest, type Instant } from "../base/time.ts";
import { decodeExtensionHandshake, encodeExtensionHandshake } from "../wire/extension-handshake.ts";
import { decodeMetadataMessage, encodeMetadataMessage } from "../wire/metadata-message.ts";
import {
  decodePexMessage,
  encodePexMessage,
  PEX_HOLEPUNCH,
  PEX_REACHABLE,
  PEX_UPLOAD_ONLY,
  type PexPeer,
} from "../wire/pex-message.ts";
import { HolePunch } from "./holepunch.ts";
import { MAX_UPLOAD_QUEUE } from "./limits.ts";
import { MetadataExchange } from "./metadata-exchange.ts";
import type { Peer } from "./peer.ts";
import { Pex } from "./pex.ts";
import type { SwarmState } from "./state.ts";

/** The name we give ourselves (BEP 10 `v`). */
export const CLIENT = "Sluice 0.1.0";
/** The numbers that others are to use towards us. */
const METADATA_ID = 1;
const PEX_ID = 2;
const HOLEPUNCH_ID = 3;
const OUR_MESSAGES: ReadonlyMap<string, number> = new Map([
  ["ut_metadata", METADATA_ID],
  ["ut_pex", PEX_ID],
]);
const OUR_PUNCHING_MESSAGES = new Map([...OUR_MESSAGES, ["ut_holepunch", HOLEPUNCH_ID]]);
/** BEP 27: private content tells of no peers. */
const OUR_PRIVATE_MESSAGES: ReadonlyMap<string, number> = new Map([["ut_metadata", METADATA_ID]]);

/** What extensions need done about the whole swarm. */
export interface ExtensionsSwarm {
  /** The metadata is there, and fits the infohash. */
  metadata(infoBytes: Uint8Array): void;
  ban(peer: Peer, reason: string): void;
  close(peer: Peer, reason: string): void;
  /** Calls an address over uTP, at the same moment as it calls us. */
  punch(address: PeerAddress): void;
}

/** The extension protocol (BEP 10): hellos, metadata (BEP 9), peers (BEP 11), partial seeds (BEP 21), hole
 * punching (BEP 55). */
export class Extensions {
  readonly #state: SwarmState;
  readonly #swarm: ExtensionsSwarm;
  readonly #metadata: MetadataExchange;
  readonly #holePunch: HolePunch<Peer>;
  /** When the earliest message of PEX is due. */
  #pexAt: Instant | undefined;

  constructor(state: SwarmState, swarm: ExtensionsSwarm) {
    this.#state = state;
    this.#swarm = swarm;
    this.#holePunch = new HolePunch({
      isOn: () => state.setup.punches === true && !state.isPrivate,
      peers: () => state.peers.values(),
      send: (peer, payload) => peer.writer.extended(peer.holepunchMessageId, payload),
      call(address, relay) {
        // As with addresses told in lists, nobody outside our network points us at what is inside.
        state.candidates.add([address], "pex", state.now, relay.address);
        swarm.punch(address);
      },
    });
    const { infohash, sha1, sha256, info } = state.setup;
    this.#metadata = new MetadataExchange(infohash, eitherHash(infohash, sha1, sha256), info?.infoBytes);
  }

  /** Says hello to a peer that speaks BEP 10. */
  greet(peer: Peer): void {
    const metadataBytes = this.#metadata.infoBytes?.length;
    const hello = encodeExtensionHandshake({
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
    peer.writer.extended(0, hello);
  }

  /** Says hello again to all: whether we only upload has changed (BEP 21). */
  greetAll(): void {
    for (const peer of this.#state.peers.values()) {
      if (peer.stage === "open" && peer.isExtended) this.greet(peer);
    }
  }

  /** The metadata came from elsewhere. */
  learn(infoBytes: Uint8Array): void {
    this.#metadata.learn(infoBytes);
    this.#carryOut();
  }

  /** Takes an extended message. Throws `DecodeError`. */
  received(peer: Peer, id: number, payload: Uint8Array): void {
    if (!peer.isExtended) throw new DecodeError("peer message", 0, "an extended message without BEP 10");
    if (id === 0) this.#hello(peer, payload);
    else if (id === METADATA_ID) {
      const message = decodeMetadataMessage(payload);
      if (message) this.#metadata.received(peer.connection, message, this.#state.now);
    } else if (id === PEX_ID) this.#peersTold(peer, payload);
    else if (id === HOLEPUNCH_ID) this.#holePunch.received(peer, payload, this.#state.now);
    this.#carryOut();
  }

  /** A call was not answered. */
  notReached(address: PeerAddress): void {
    this.#holePunch.failed(address, this.#state.now);
  }

  /** The connection is over. */
  left(peer: Peer): void {
    this.#holePunch.left(peer);
    this.#metadata.left(peer.connection, this.#state.now);
    this.#carryOut();
  }

  /** Does what is due by time. */
  round(): void {
    const { now } = this.#state;
    const metadataAt = this.#metadata.nextWake();
    if (metadataAt !== undefined && now >= metadataAt) {
      this.#metadata.wake(now);
      this.#carryOut();
    }
    if (this.#pexAt !== undefined && now >= this.#pexAt) this.#tellPeers();
  }

  nextWake(): Instant | undefined {
    return earliest(this.#metadata.nextWake(), this.#pexAt);
  }

  #hello(peer: Peer, payload: Uint8Array): void {
    const hello = decodeExtensionHandshake(payload);
    const { now, candidates, isPrivate } = this.#state;
    if (hello.version !== undefined && hello.version !== "") peer.client = hello.version;
    if (hello.requestQueue !== undefined) peer.requestLimit = hello.requestQueue;
    if (hello.uploadOnly !== undefined) peer.isUploadOnly = hello.uploadOnly;
    const { messages } = hello;
    peer.metadataMessageId = messages.get("ut_metadata") ?? peer.metadataMessageId;
    peer.pexMessageId = messages.get("ut_pex") ?? peer.pexMessageId;
    peer.holepunchMessageId = messages.get("ut_holepunch") ?? peer.holepunchMessageId;
    if (peer.isIncoming && hello.listenPort !== undefined) {
      peer.listenAddress = { host: peer.address.host, port: hello.listenPort };
      const isWelcome = isPrivate || candidates.listens(peer.address, hello.listenPort, now);
      if (!isWelcome) {
        // Who was banned at the address we dialled does not come back by calling us.
        this.#swarm.close(peer, "banned before");
        return;
      }
    }
    if (peer.metadataMessageId !== 0) this.#metadata.joined(peer.connection, hello.metadataBytes, now);
    if (peer.pexMessageId !== 0 && !isPrivate && !peer.pex) {
      peer.pex = new Pex();
      this.#pexAt = now;
    }
  }

  #peersTold(peer: Peer, payload: Uint8Array): void {
    const { now, candidates, isPrivate } = this.#state;
    if (!peer.pex || isPrivate) return;
    const verdict = peer.pex.judge(now);
    if (verdict === "close") throw new DecodeError("PEX", 0, "far more than one message a minute");
    if (verdict === "ignore") return;
    const { added } = decodePexMessage(payload);
    this.#holePunch.told(peer, added);
    candidates.add(
      added.map(({ address }) => address),
      "pex",
      now,
      peer.address,
    );
  }

  #tellPeers(): void {
    const { now, peers, isPrivate } = this.#state;
    this.#pexAt = undefined;
    if (isPrivate) return;
    const known: PexPeer[] = [];
    for (const peer of peers.values())
      if (peer.stage === "open" && peer.listenAddress) known.push(pexPeer(peer, peer.listenAddress));
    for (const peer of peers.values()) {
      if (peer.stage !== "open" || !peer.pex) continue;
      const isNear = addressScope(peer.address.host) !== "global";
      const tellable = isNear
        ? known
        : known.filter(({ address }) => addressScope(address.host) === "global");
      const message = peer.pex.delta(tellable, peer.listenAddress, now);
      if (message) peer.writer.extended(peer.pexMessageId, encodePexMessage(message));
      this.#pexAt = earliest(this.#pexAt, peer.pex.nextWake());
    }
  }

  #carryOut(): void {
    for (let output = this.#metadata.poll(); output; output = this.#metadata.poll()) {
      if (output.kind === "complete") {
        this.#swarm.metadata(output.infoBytes);
        continue;
      }
      const peer = this.#state.peers.get(output.connection);
      if (!peer) continue;
      if (output.kind === "liar") this.#swarm.ban(peer, output.reason);
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
