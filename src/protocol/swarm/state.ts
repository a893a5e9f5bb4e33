import { RateMeter } from "../../base/rate.ts";
import { type Budget, NO_LIMIT } from "../../base/rate-limit.ts";
import type { Instant } from "../../base/time.ts";
import { Candidates } from "./candidates.ts";
import type { ConnectionId, ReaderId, SwarmInput, SwarmLayout, SwarmOutput, SwarmSetup } from "./contract.ts";
import type { Peer } from "./peer.ts";
import { Pieces } from "./pieces.ts";
import { SmartBan } from "./smart-ban.ts";
import { TrackerClaims } from "./tracker-claims.ts";
import { Wants } from "./wants.ts";

/** State shared by the components of one swarm. Plain data: the component that changes it handles the consequences. */
export class SwarmState {
  readonly setup: SwarmSetup;
  readonly peers = new Map<ConnectionId, Peer>();
  /** Undefined until the metadata is known. */
  pieces: Pieces | undefined;
  /** The layout from the metadata while its piece layers are being fetched (version 2). */
  incompleteLayout: SwarmLayout | undefined;
  readonly wants = new Wants();
  /** Wants of readers that arrived before the layout was known. */
  readonly pendingWants = new Map<ReaderId, SwarmInput & { kind: "want" }>();
  readonly candidates: Candidates;
  readonly claims = new TrackerClaims();
  readonly smartBan: SmartBan;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  /** The time of the input being handled. */
  now: Instant;
  /** When a reader was last active; a new swarm expects a reader immediately. */
  wantedAt: Instant;
  /** Increases whenever there may be something new to request. */
  demandVersion = 0;
  /** A piece could not be started because a memory or scan limit was reached. */
  isPickingLimited = false;
  /** The set of peers to unchoke may have changed. */
  isChokeStale = true;
  isStopped = false;
  wasted = 0;
  bannedPeers = 0;
  #outputs: SwarmOutput[] = [];
  #taken = 0;

  constructor(setup: SwarmSetup, now: Instant) {
    this.setup = setup;
    this.now = now;
    this.wantedAt = now;
    this.candidates = new Candidates(setup.random);
    this.smartBan = new SmartBan(setup.sha1);
    if (setup.info) this.pieces = new Pieces(setup.info.layout, setup.held ?? [], setup.buffers);
  }

  /** Returns the upload limit for a peer. */
  uploadBudget(peer: Peer): Budget {
    return peer.isExempt ? NO_LIMIT : this.setup.limits.upload;
  }

  /** Returns the download limit for a peer. */
  downloadBudget(peer: Peer): Budget {
    return peer.isExempt ? NO_LIMIT : this.setup.limits.download;
  }

  /** The port of the engine's DHT node to report to peers; undefined for private content (BEP 27). */
  get dhtPort(): number | undefined {
    return this.isPrivate ? undefined : this.setup.dhtPort;
  }

  /** Whether the content is known to be private (BEP 27). */
  get isPrivate(): boolean {
    return (this.pieces?.layout ?? this.incompleteLayout)?.isPrivate === true;
  }

  emit(output: SwarmOutput): void {
    this.#outputs.push(output);
  }

  poll(): SwarmOutput | undefined {
    if (this.#taken < this.#outputs.length) return this.#outputs[this.#taken++];
    if (this.#taken > 0) {
      this.#outputs = [];
      this.#taken = 0;
    }
    return undefined;
  }
}
