import assert from "node:assert/strict";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import type { BroadcastRequest } from "../../src/live/broadcast/broadcast-contract.ts";
import { type BroadcastsDependencies, createBroadcasts } from "../../src/live/broadcast/broadcasts.ts";
import type { LiveFigures } from "../../src/protocol/live/contract.ts";
import type { SignedHeader, SignedStat } from "../../src/protocol/live/messages.ts";
import type { ActiveTransfer, LiveControl, TransferContent } from "../../src/transfer/contract.ts";
import { decodeHeader, type PieceHeader } from "../../src/wire/live/header.ts";
import { isChunkOf, isSignedHeader } from "../../src/wire/live/trust.ts";
import { settled } from "../engine/fake-clock.ts";
import { FakeTransfer } from "../engine/fake-transfers.ts";
import { keepingLog } from "../engine/parts.ts";
import { chainProblem } from "../wire/header-chain.ts";
import { MemoryFiles } from "./memory-files.ts";
import { FakeWorld } from "./source-parts.ts";

/** A piece as it was sent. */
export interface Sent {
  readonly header: SignedHeader;
  readonly chunks: readonly Uint8Array[];
  readonly atMs: number;
}

const NO_PEERS: LiveFigures = {
  peers: 0,
  parents: 0,
  children: 0,
  firstSeq: undefined,
  lastSeq: undefined,
  firstTsMs: undefined,
  lastTsMs: undefined,
  positionSeq: undefined,
  bufferedPieces: 0,
  lagMs: 0,
  receivedBytes: 0,
  duplicateBytes: 0,
  skippedPieces: 0,
  hasEnded: false,
};

/** A broadcaster without peers, whose clock, disk and web the test controls. */
export class FakeStudio {
  readonly world = new FakeWorld();
  files = new MemoryFiles();
  readonly log = keepingLog();
  readonly locked = new Set<string>();
  readonly opened: TransferContent[] = [];
  readonly sent: Sent[] = [];
  /** The STATs that were sent. */
  readonly told: SignedStat[] = [];
  released = 0;
  /** How many transfers were released in favour of another one of the same stream. */
  succeeded = 0;
  live: Partial<LiveFigures> = {};
  reachable: readonly PeerAddress[] = [];
  isForked = false;
  /** A header that another program has signed with the key. */
  rival: PieceHeader | undefined;
  /** The roles of the next transfers that were open before; then sources. */
  roles: ("source" | "viewer")[] = [];
  /** Called before each piece is sent. */
  taking = (_piece: Sent) => {};

  parts(changes: Partial<BroadcastsDependencies> = {}): BroadcastsDependencies {
    const { clock, outbound, unixMs, openFile, pipe, openEncoder } = this.world.parts();
    return {
      runtime: { ...runtime, clock, files: this.files },
      settings: { dataDir: "/data", liveWindowMs: 1_800_000 },
      log: this.log,
      outbound,
      unixMs,
      openFile,
      pipe,
      lock: async (path) => {
        if (this.locked.has(path)) return undefined;
        this.locked.add(path);
        return () => void this.locked.delete(path);
      },
      openEncoder,
      open: (content) => this.#hold(content),
      ...changes,
    };
  }

  broadcasts(changes: Partial<BroadcastsDependencies> = {}) {
    return createBroadcasts(this.parts(changes));
  }

  /** Advances the clock until `work` is done. */
  async within<T>(work: Promise<T>, ms = 60_000): Promise<T> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    await settled();
    for (let passed = 0; passed < ms && !isOver; passed += 10) await this.world.clock.advance(10);
    assert.ok(isOver, `not done within ${ms} ms`);
    return work;
  }

  #hold(content: TransferContent) {
    this.opened.push(content);
    const studio = this;
    const live: LiveControl = {
      content: { ...content.live!, role: this.roles.shift() ?? content.live!.role },
      produce: (header, chunks) => {
        const piece = { header, chunks, atMs: this.world.epochMs + this.world.clock.now() };
        this.taking(piece);
        this.sent.push(piece);
      },
      tell: (stat) => void this.told.push(stat),
      expectSuccessor: () => void this.succeeded++,
      figures: () => ({ ...NO_PEERS, ...this.live }),
      reachablePeers: () => this.reachable,
      isForked: this.isForked,
      get rival() {
        return studio.rival;
      },
      minutesAhead: 0,
      successor: undefined,
      variants: [],
    };
    const transfer: ActiveTransfer = Object.assign(new FakeTransfer(content), { live });
    return { transfer, release: () => void this.released++, rest() {} };
  }
}

/** A broadcast of the test pattern. */
export function someRequest(changes: Partial<BroadcastRequest> = {}): BroadcastRequest {
  return {
    name: "One",
    place: { kind: "test-pattern" },
    isLooped: false,
    meta: { title: "The first" },
    trackers: ["udp://tracker.example:1337/announce"],
    relays: [],
    isPrivate: false,
    uploadLimit: undefined,
    bytesPerSecond: undefined,
    manifests: [],
    addresses: [],
    ...changes,
  };
}

/** Checks pieces as a viewer does: each one, and that it follows the one before. */
export function checkSent(sent: readonly Sent[], content: TransferContent): void {
  const { info, infohash } = content.live!.file;
  const verify = runtime.ed25519Verifier(info.publicKey);
  for (const [i, { header, chunks }] of sent.entries()) {
    const value = decodeHeader(header.bytes, info);
    assert.deepEqual(value, header.value);
    assert.ok(isSignedHeader(header.bytes, infohash, verify));
    assert.equal(chunks.length, info.stripeCount);
    assert.equal(
      chunks.reduce((sum, { length }) => sum + length, 0),
      value.pieceBytes,
    );
    for (const [stripe, chunk] of chunks.entries())
      assert.ok(isChunkOf(value, stripe, chunk, runtime.sha256));
    const before = sent[i - 1];
    if (before && before.header.value.epoch === value.epoch)
      assert.equal(
        chainProblem(before.header.bytes, before.header.value, value, runtime.sha256),
        undefined,
        `piece ${i}`,
      );
  }
}
