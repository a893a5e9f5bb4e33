import type { PeerAddress } from "../base/address.ts";
import { equalBytes } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import type { ConnectionId } from "./contract.ts";
import { BLOCK_BYTES } from "./limits.ts";

/** Who sent a block. Keep one object for each connection and pass that same object each time. */
export interface BlockSender {
  readonly connection: ConnectionId;
  readonly address: PeerAddress;
}

/** Suspect pieces remembered; with pieces of 4 MiB this is 8,192 records of about 100 bytes. */
const MAX_SUSPECT_PIECES = 32;
/** Versions of one block remembered: each further one comes from a sender that a later pass will judge anyway. */
const MAX_VERSIONS = 8;
/** Versions remembered in all, about 5 MB: the oldest suspect piece goes first. */
const MAX_VERSIONS_IN_ALL = 32_768;
/** Peers whose record is kept: those connected, and some who left while a block of theirs was still to be judged. */
const MAX_RECORDS = 1_000;
/** Right pieces after a wrong one until the swarm is trusted again. */
const ALARM_PIECES = 64;

interface Version {
  readonly sender: BlockSender;
  readonly digest: Uint8Array;
}

interface Record {
  /** Verified pieces it had a hand in since the alarm began, and failed ones since its last right piece of its own. */
  good: number;
  bad: number;
}

/**
 * Finds who sent the wrong bytes of a piece that failed its hash, and never accuses an innocent: a sender is named
 * only when it alone sent a piece that failed, when it sent two versions of one block, or when its block differs from
 * that of the piece once it passed. The scheme is the one libtorrent calls smart-ban.
 */
export class SmartBan {
  readonly #sha1: Sha1;
  /** By piece: for each block the versions that came in failed attempts. */
  readonly #suspects = new Map<number, Version[][]>();
  readonly #records = new Map<ConnectionId, Record>();
  #versions = 0;
  #alarm = 0;

  constructor(sha1: Sha1) {
    this.#sha1 = sha1;
  }

  /** Whether no piece is suspect: then nothing needs to be kept for `passed`. */
  get isQuiet(): boolean {
    return this.#suspects.size === 0;
  }

  /**
   * The piece failed. `senders[i]` sent the block at `i * BLOCK_BYTES` of `bytes` (undefined where it came from
   * nobody to judge). Returns who is proven a liar by now, each once.
   */
  failed(piece: number, bytes: Uint8Array, senders: readonly (BlockSender | undefined)[]): BlockSender[] {
    this.#alarm = ALARM_PIECES;
    const liars = new Map<ConnectionId, BlockSender>();
    const blocks = this.#suspects.get(piece) ?? this.#remember(piece);
    const lone = loneSender(senders);
    if (lone) liars.set(lone.connection, lone);
    for (const [i, sender] of senders.entries()) {
      if (!sender) continue;
      const digest = this.#digest(bytes, i);
      blocks[i] ??= [];
      const versions = blocks[i];
      const before = versions.find((version) => isSame(version.sender, sender));
      if (before && !equalBytes(before.digest, digest)) liars.set(sender.connection, sender);
      else if (!before && versions.length < MAX_VERSIONS) {
        versions.push({ sender, digest });
        this.#versions++;
      }
    }
    while (this.#versions > MAX_VERSIONS_IN_ALL && this.#suspects.size > 1) this.#forgetOldest();
    for (const id of new Set(senders.map((sender) => sender?.connection))) {
      if (id !== undefined) this.#record(id).bad++;
    }
    return [...liars.values()];
  }

  /** The piece passed: returns those who sent other bytes for one of its blocks before, each once. */
  passed(piece: number, bytes: Uint8Array, senders: readonly (BlockSender | undefined)[]): BlockSender[] {
    if (this.#alarm > 0) {
      this.#alarm--;
      for (const id of new Set(senders.map((sender) => sender?.connection))) {
        if (id !== undefined) this.#record(id).good++;
      }
      const lone = loneSender(senders);
      // A whole piece on its own, and right: its parole is over.
      if (lone) this.#record(lone.connection).bad = 0;
    }
    const blocks = this.#suspects.get(piece);
    if (!blocks) return [];
    this.#forget(piece);
    const liars = new Map<ConnectionId, BlockSender>();
    for (const [i, versions] of blocks.entries()) {
      if (!versions || versions.length === 0) continue;
      const digest = this.#digest(bytes, i);
      for (const version of versions) {
        if (!equalBytes(version.digest, digest)) liars.set(version.sender.connection, version.sender);
      }
    }
    return [...liars.values()];
  }

  /** A piece failed lately: where there is one liar there may be more, and pieces of one sender each find them at once. */
  get isAlarmed(): boolean {
    return this.#alarm > 0;
  }

  /** The piece failed before and has not passed since: ask one peer at a time for it, so that blame is certain. */
  isSuspect(piece: number): boolean {
    return this.#suspects.has(piece);
  }

  /** This peer took part in a failed piece and is not cleared yet: best let it have pieces of its own only. */
  isOnParole(connection: ConnectionId): boolean {
    return (this.#records.get(connection)?.bad ?? 0) > 0;
  }

  /**
   * Which of these peers to ask for the whole of a suspect piece: the one with the best record, as one honest copy
   * unmasks every liar of the attempts before. Undefined where the list is empty.
   */
  bestFor(connections: readonly ConnectionId[]): ConnectionId | undefined {
    let best: ConnectionId | undefined;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (const id of connections) {
      const record = this.#records.get(id);
      const score = record ? record.good / (1 + record.good) - record.bad : 0;
      if (score > bestScore) {
        best = id;
        bestScore = score;
      }
    }
    return best;
  }

  /** The connection is over; what it sent stays on record until its pieces pass. */
  left(connection: ConnectionId): void {
    this.#records.delete(connection);
  }

  #record(id: ConnectionId): Record {
    let record = this.#records.get(id);
    if (!record) {
      record = { good: 0, bad: 0 };
      this.#records.set(id, record);
      const [oldest] = this.#records.keys();
      if (this.#records.size > MAX_RECORDS) this.#records.delete(oldest!);
    }
    return record;
  }

  #remember(piece: number): Version[][] {
    const blocks: Version[][] = [];
    this.#suspects.set(piece, blocks);
    if (this.#suspects.size > MAX_SUSPECT_PIECES) this.#forgetOldest();
    return blocks;
  }

  #forgetOldest(): void {
    const [oldest] = this.#suspects.keys();
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(piece: number): void {
    for (const versions of this.#suspects.get(piece) ?? []) this.#versions -= versions?.length ?? 0;
    this.#suspects.delete(piece);
  }

  #digest(bytes: Uint8Array, block: number): Uint8Array {
    return this.#sha1(bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
  }
}

function loneSender(senders: readonly (BlockSender | undefined)[]): BlockSender | undefined {
  const first = senders[0];
  if (!first) return undefined;
  return senders.every((sender) => sender !== undefined && isSame(sender, first)) ? first : undefined;
}

/** By connection, not by address: two people behind one router may get the same port one after the other. */
function isSame(a: BlockSender, b: BlockSender): boolean {
  return a.connection === b.connection;
}
