import { RateMeter } from "../base/rate.ts";
import { type Budget, NO_LIMIT } from "../base/rate-limit.ts";
import type { Instant } from "../base/time.ts";
import { Candidates } from "./candidates.ts";
import type { ConnectionId, ReaderId, SwarmInput, SwarmLayout, SwarmOutput, SwarmSetup } from "./contract.ts";
import type { Peer } from "./peer.ts";
import { Pieces } from "./pieces.ts";
import { SmartBan } from "./smart-ban.ts";
import { TrackerClaims } from "./tracker-claims.ts";
import { Wants } from "./wants.ts";

/** What the small machines of one swarm share. Plain data: whoever changes it says what follows from it. */
export class SwarmState {
  readonly setup: SwarmSetup;
  readonly peers = new Map<ConnectionId, Peer>();
  /** Absent until the metadata is known. */
  pieces: Pieces | undefined;
  /** What the metadata says, while its piece layers are still asked for (version 2). */
  awaited: SwarmLayout | undefined;
  readonly wants = new Wants();
  /** What readers wanted before the layout was known. */
  readonly early = new Map<ReaderId, SwarmInput & { kind: "want" }>();
  readonly candidates: Candidates;
  readonly claims = new TrackerClaims();
  readonly smartBan: SmartBan;
  readonly down = new RateMeter();
  readonly up = new RateMeter();
  /** The time of the input being handled. */
  now: Instant;
  /** When a reader was last there; a fresh swarm expects one any moment. */
  wantedAt: Instant;
  /** Counts up whenever there may be something new to ask for. */
  demandVersion = 0;
  /** A piece could not be started for want of room. */
  isLimited = false;
  /** Whom to unchoke may have changed. */
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

  /** What may be sent to a peer. */
  uploadBudget(peer: Peer): Budget {
    return peer.isExempt ? NO_LIMIT : this.setup.limits.upload;
  }

  /** What a peer may be asked for. */
  downloadBudget(peer: Peer): Budget {
    return peer.isExempt ? NO_LIMIT : this.setup.limits.download;
  }

  /** Where our node of the DHT is asked; undefined where nobody is to know (BEP 27: content may be private). */
  get dhtPort(): number | undefined {
    return this.isPrivate ? undefined : this.setup.dhtPort;
  }

  /** Whether the content is known to be private (BEP 27). */
  get isPrivate(): boolean {
    return (this.pieces?.layout ?? this.awaited)?.isPrivate === true;
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
