import { equalBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { Merkle } from "../base/merkle.ts";
import { earliest, type Instant } from "../base/time.ts";
import { decodeHashMessage, encodeHashRange } from "../wire/hash-message.ts";
import { MESSAGE } from "../wire/peer-message.ts";
import type { SwarmLayout } from "./contract.ts";
import { LayerExchange } from "./layer-exchange.ts";
import { LayerServing } from "./layer-serving.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** What hashes need done about the whole swarm. */
export interface HashesSwarm {
  /** All layers that the metadata left out are there. */
  complete(infoBytes: Uint8Array, layout: SwarmLayout): void;
  ban(peer: Peer, reason: string): void;
}

/** The messages of version 2 about hashes of pieces (BEP 52): asks for those that metadata does not bring, and answers others. */
export class Hashes {
  readonly #state: SwarmState;
  readonly #swarm: HashesSwarm;
  readonly #merkle: Merkle;
  readonly #serving: LayerServing;
  #exchange: LayerExchange | undefined;
  /** The metadata whose layers are asked for. */
  #wanted: { readonly infoBytes: Uint8Array; readonly layout: SwarmLayout } | undefined;

  constructor(state: SwarmState, swarm: HashesSwarm) {
    this.#state = state;
    this.#swarm = swarm;
    this.#merkle = new Merkle(state.setup.sha256);
    this.#serving = new LayerServing(state, this.#merkle);
  }

  /** Asks for the layers that a layout lacks, until `complete`. */
  want(infoBytes: Uint8Array, layout: SwarmLayout): void {
    this.#wanted = { infoBytes, layout };
    this.#state.awaited = layout;
    this.#exchange = new LayerExchange(layout, this.#merkle);
  }

  /** The layers came from elsewhere: where they are those of the metadata nobody is asked any more. */
  learn(infoBytes: Uint8Array, layout: SwarmLayout): void {
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
    const isAsked =
      message.kind === "hashes"
        ? this.#exchange?.received(connection, message.range, message.hashes)
        : this.#exchange?.rejected(connection, message.range, now);
    // Each request of ours is answered once, so that this is the answer to none.
    if (!isAsked) throw new DecodeError("hash message", 0, `${message.kind}, which nobody asked for`);
    this.#carryOut();
  }

  /** The store's answer to a `read` that was for hashes. */
  read(peer: Peer, bytes: Uint8Array | undefined): void {
    this.#serving.read(peer, bytes);
  }

  /** The connection is over. */
  left(peer: Peer): void {
    this.#serving.left(peer);
    this.#exchange?.left(peer.connection);
  }

  /** Does what is due: asks whoever may know, and answers what the limits held back. */
  round(): void {
    this.#serving.round();
    if (!this.#wanted || !this.#exchange) return;
    this.#exchange.wake(this.#state.now);
    this.#exchange.ask(this.#promising(), this.#state.now);
    this.#carryOut();
  }

  nextWake(): Instant | undefined {
    return earliest(this.#serving.nextWake(), this.#exchange?.nextWake());
  }

  /** Whom to ask: those first that have all, who must know (BEP 52). Others may have a transport file. */
  #promising(): number[] {
    const open = [...this.#state.peers.values()].filter((peer) => peer.isOpen && !peer.isWebSeed);
    const rank = (peer: Peer) => (peer.pieces.isAll || peer.isUploadOnly ? 0 : 1);
    return open.sort((a, b) => rank(a) - rank(b)).map(({ connection }) => connection);
  }

  #finish(layout: SwarmLayout): void {
    const { infoBytes } = this.#wanted!;
    this.#wanted = undefined;
    this.#state.awaited = undefined;
    this.#swarm.complete(infoBytes, layout);
  }

  #carryOut(): void {
    for (let output = this.#exchange?.poll(); output; output = this.#exchange?.poll()) {
      if (output.kind === "complete") {
        if (this.#wanted) this.#finish({ ...this.#wanted.layout, lacksLayers: false });
        continue;
      }
      const peer = this.#state.peers.get(output.connection);
      if (!peer) continue;
      if (output.kind === "liar") this.#swarm.ban(peer, output.reason);
      else peer.writer.hash(MESSAGE.hashRequest, encodeHashRange(output.range));
    }
  }
}
