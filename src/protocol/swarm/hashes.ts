import { equalBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { Merkle } from "../../base/merkle.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { decodeHashMessage, encodeHashRange } from "../../wire/peer/hash-message.ts";
import { MESSAGE } from "../../wire/peer/peer-message.ts";
import type { SwarmLayout } from "./contract.ts";
import { LayerExchange } from "./layer-exchange.ts";
import { LayerServing } from "./layer-serving.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** Operations of the swarm that `Hashes` depends on. */
interface HashesDependencies {
  /** All piece layers are known. */
  complete(infoBytes: Uint8Array, layout: SwarmLayout): void;
  ban(peer: Peer, reason: string): void;
}

/** Hash messages of version 2 (BEP 52): requests the piece layers that metadata lacks, and answers requests of peers. */
export class Hashes {
  readonly #state: SwarmState;
  readonly #dependencies: HashesDependencies;
  readonly #merkle: Merkle;
  readonly #serving: LayerServing;
  #exchange: LayerExchange | undefined;
  /** The metadata whose layers are being fetched. */
  #wanted: { readonly infoBytes: Uint8Array; readonly layout: SwarmLayout } | undefined;

  constructor(state: SwarmState, dependencies: HashesDependencies) {
    this.#state = state;
    this.#dependencies = dependencies;
    this.#merkle = new Merkle(state.setup.sha256);
    this.#serving = new LayerServing(state, this.#merkle);
  }

  /** Fetches the layers that a layout lacks, until `complete`. */
  fetchLayers(infoBytes: Uint8Array, layout: SwarmLayout): void {
    this.#wanted = { infoBytes, layout };
    this.#state.incompleteLayout = layout;
    this.#exchange = new LayerExchange(layout, this.#merkle);
  }

  /** The layers came from another source: if they belong to the metadata, stops fetching. */
  supply(infoBytes: Uint8Array, layout: SwarmLayout): void {
    if (!this.#wanted || !equalBytes(infoBytes, this.#wanted.infoBytes)) return;
    this.#exchange?.stop();
    this.#finish(layout);
  }

  /** Takes a message. Throws `DecodeError`. */
  received(peer: Peer, id: number, payload: Uint8Array): void {
    const message = decodeHashMessage(id, payload);
    if (message.kind === "request") {
      this.#serving.requested(peer, message.range);
      return;
    }
    const { connection } = peer;
    const { now } = this.#state;
    const isRequested =
      message.kind === "hashes"
        ? this.#exchange?.received(connection, message.range, message.hashes)
        : this.#exchange?.rejected(connection, message.range, now);
    // Every request is answered once, so any further answer is malformed.
    if (!isRequested) throw new DecodeError("hash message", 0, `unrequested ${message.kind}`);
    this.#drainOutputs();
  }

  /** The store's answer to a `read` for hashes. */
  read(peer: Peer, bytes: Uint8Array | undefined): void {
    this.#serving.read(peer, bytes);
  }

  /** The connection has ended. */
  peerLeft(peer: Peer): void {
    this.#serving.peerLeft(peer);
    this.#exchange?.peerLeft(peer.connection);
  }

  /** Sends due requests, and the answers that rate limits delayed. */
  round(): void {
    this.#serving.round();
    if (!this.#wanted || !this.#exchange) return;
    this.#exchange.wake(this.#state.now);
    this.#exchange.request(this.#rankedPeers(), this.#state.now);
    this.#drainOutputs();
  }

  nextWake(): Instant | undefined {
    return earliest(this.#serving.nextWake(), this.#exchange?.nextWake());
  }

  /** The peers to ask: seeds first, which must know the layers (BEP 52); others may have a transport file. */
  #rankedPeers(): number[] {
    const open = [...this.#state.peers.values()].filter((peer) => peer.isOpen && !peer.isWebSeed);
    const rank = (peer: Peer) => (peer.pieces.isAll || peer.isUploadOnly ? 0 : 1);
    return open.sort((a, b) => rank(a) - rank(b)).map(({ connection }) => connection);
  }

  #finish(layout: SwarmLayout): void {
    const { infoBytes } = this.#wanted!;
    this.#wanted = undefined;
    this.#state.incompleteLayout = undefined;
    this.#dependencies.complete(infoBytes, layout);
  }

  #drainOutputs(): void {
    for (let output = this.#exchange?.poll(); output; output = this.#exchange?.poll()) {
      if (output.kind === "complete") {
        if (this.#wanted) this.#finish({ ...this.#wanted.layout, lacksLayers: false });
        continue;
      }
      const peer = this.#state.peers.get(output.connection);
      if (!peer) continue;
      if (output.kind === "ban") this.#dependencies.ban(peer, output.reason);
      else peer.writer.hash(MESSAGE.hashRequest, encodeHashRange(output.range));
    }
  }
}
