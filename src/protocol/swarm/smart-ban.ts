import type { PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { ConnectionId } from "./contract.ts";
import { BLOCK_BYTES } from "./limits.ts";

/** The sender of a block. Each connection has one such object, which is passed each time. */
export interface BlockSender {
  readonly connection: ConnectionId;
  readonly address: PeerAddress;
}

/** Remembered suspect pieces; with pieces of 4 MiB this is 8,192 records of about 100 bytes. */
const MAX_SUSPECT_PIECES = 32;
/** Remembered versions of one block; the senders of further versions are judged once the piece passes. */
const MAX_VERSIONS = 8;
/** Remembered versions of all blocks, about 5 MB: the oldest suspect piece is dropped first. */
const MAX_TOTAL_VERSIONS = 32_768;
/** Peers with a record: connected ones, and some that left while a block of theirs was not yet judged. */
const MAX_RECORDS = 1_000;
/** Valid pieces after an invalid one until the alarm ends. */
const ALARM_PIECES = 64;

interface Version {
  readonly sender: BlockSender;
  readonly digest: Uint8Array;
}

interface PeerRecord {
  /** Valid pieces it contributed to during the alarm, and invalid ones since the last valid piece it sent alone. */
  good: number;
  bad: number;
}

/**
 * Finds the senders of wrong blocks in pieces that failed verification, without accusing an innocent peer. A peer is named
 * only if it sent a failed piece alone, sent two versions of one block, or sent a block that differs from the verified
 * piece. libtorrent calls this scheme smart-ban.
 */
export class SmartBan {
  readonly #sha1: Sha1;
  /** By piece and block: the versions received in failed attempts. */
  readonly #suspects = new Map<number, Version[][]>();
  readonly #records = new Map<ConnectionId, PeerRecord>();
  #versions = 0;
  #alarm = 0;

  constructor(sha1: Sha1) {
    this.#sha1 = sha1;
  }

  /** Whether no piece is suspect. */
  get isQuiet(): boolean {
    return this.#suspects.size === 0;
  }

  /**
   * The piece failed verification. `senders[i]` sent the block at `i * BLOCK_BYTES` of `bytes`; undefined if it has no
   * sender to judge. Returns the peers now proven to have sent wrong data, each once.
   */
  failed(piece: number, bytes: Uint8Array, senders: readonly (BlockSender | undefined)[]): BlockSender[] {
    this.#alarm = ALARM_PIECES;
    const culprits = new Map<ConnectionId, BlockSender>();
    const blocks = this.#suspects.get(piece) ?? this.#remember(piece);
    const sole = soleSender(senders);
    if (sole) culprits.set(sole.connection, sole);
    for (const [i, sender] of senders.entries()) {
      if (!sender) continue;
      const digest = this.#digest(bytes, i);
      blocks[i] ??= [];
      const versions = blocks[i];
      const before = versions.find((version) => isSame(version.sender, sender));
      if (before && !equalBytes(before.digest, digest)) culprits.set(sender.connection, sender);
      else if (!before && versions.length < MAX_VERSIONS) {
        versions.push({ sender, digest });
        this.#versions++;
      }
    }
    while (this.#versions > MAX_TOTAL_VERSIONS && this.#suspects.size > 1) this.#forgetOldest();
    for (const id of new Set(senders.map((sender) => sender?.connection))) {
      if (id !== undefined) this.#record(id).bad++;
    }
    return [...culprits.values()];
  }

  /** The piece passed verification: returns the peers that sent other bytes for its blocks before, each once. */
  passed(piece: number, bytes: Uint8Array, senders: readonly (BlockSender | undefined)[]): BlockSender[] {
    if (this.#alarm > 0) {
      this.#alarm--;
      for (const id of new Set(senders.map((sender) => sender?.connection))) {
        if (id !== undefined) this.#record(id).good++;
      }
      const sole = soleSender(senders);
      // A whole valid piece from one peer ends its parole.
      if (sole) this.#record(sole.connection).bad = 0;
    }
    const blocks = this.#suspects.get(piece);
    if (!blocks) return [];
    this.#forget(piece);
    const culprits = new Map<ConnectionId, BlockSender>();
    for (const [i, versions] of blocks.entries()) {
      if (!versions || versions.length === 0) continue;
      const digest = this.#digest(bytes, i);
      for (const version of versions) {
        if (!equalBytes(version.digest, digest)) culprits.set(version.sender.connection, version.sender);
      }
    }
    return [...culprits.values()];
  }

  /** A piece failed recently: further pieces should have one sender each, which exposes other bad peers at once. */
  get isAlarmed(): boolean {
    return this.#alarm > 0;
  }

  /** The piece failed and has not passed since: fetch it from one peer at a time, so that a failure proves who is at fault. */
  isSuspect(piece: number): boolean {
    return this.#suspects.has(piece);
  }

  /** The peer contributed to a failed piece and is not cleared yet: it should send whole pieces only. */
  isOnParole(connection: ConnectionId): boolean {
    return (this.#records.get(connection)?.bad ?? 0) > 0;
  }

  /**
   * Returns which of these peers to fetch a whole suspect piece from: the one with the best record, because one valid copy
   * exposes every wrong block of earlier attempts. Undefined if the list is empty.
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

  /** The connection has ended; its blocks are still judged when their pieces pass. */
  peerLeft(connection: ConnectionId): void {
    this.#records.delete(connection);
  }

  #record(id: ConnectionId): PeerRecord {
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

function soleSender(senders: readonly (BlockSender | undefined)[]): BlockSender | undefined {
  const first = senders[0];
  if (!first) return undefined;
  return senders.every((sender) => sender !== undefined && isSame(sender, first)) ? first : undefined;
}

/** Compares connections, not addresses: two peers behind one NAT may use the same port one after the other. */
function isSame(a: BlockSender, b: BlockSender): boolean {
  return a.connection === b.connection;
}
