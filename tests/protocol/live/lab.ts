import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import { writeU32, writeU48 } from "../../../src/base/bytes.ts";
import { instant } from "../../../src/base/time.ts";
import type { LiveFigures, LiveInput, LiveOutput, LiveSetup } from "../../../src/protocol/live/contract.ts";
import { LiveSwarm } from "../../../src/protocol/live/live-swarm.ts";
import type { SignedHeader } from "../../../src/protocol/live/messages.ts";
import type { PieceHeader } from "../../../src/wire/live/header.ts";
import { seededRandom } from "../../seeded-random.ts";
import { EventHeap } from "../../simulation/live/event-heap.ts";

const STRIPES = 16;
export const PIECE_MS = 125;
const CHUNK_BYTES = 188;
const GENUINE = 0xaa;

/** A played piece, and when it was played (ms of the lab). */
export interface Played {
  readonly seq: number;
  readonly epoch: number;
  readonly at: number;
}

/** How a node differs from a viewer with ample upload. */
export interface LabOptions {
  readonly role?: "viewer" | "relay" | "source";
  readonly port?: number;
  /** Its role as others see it; `role` unless it is given. */
  readonly claims?: "viewer" | "relay" | "source";
  readonly host?: string;
  readonly upload?: number;
  readonly setup?: Partial<LiveSetup>;
}

/** An engine of the lab. */
export class LabNode {
  readonly lab: Lab;
  readonly address: PeerAddress;
  readonly digest: number;
  readonly swarm: LiveSwarm;
  readonly role: "viewer" | "relay" | "source";
  readonly claims: "viewer" | "relay" | "source";
  readonly played: Played[] = [];
  readonly skipped: number[] = [];
  readonly outputs: LiveOutput[] = [];
  readonly links = new Map<number, { readonly node: LabNode; readonly connection: number }>();
  isAlive = true;
  /** The addresses that it finds when it asks for some: a tracker of the lab. */
  tracker: (() => readonly PeerAddress[]) | undefined;
  chunksSent = 0;
  #incoming = 1;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(lab: Lab, address: PeerAddress, digest: number, options: LabOptions) {
    this.lab = lab;
    this.address = address;
    this.digest = digest;
    this.role = options.role ?? "viewer";
    this.claims = options.claims ?? this.role;
    this.swarm = new LiveSwarm(
      {
        about: {
          role: this.role,
          uploadBytesPerSecond: options.upload ?? 10_000_000,
          homeStripe: digest % STRIPES,
          digest,
        },
        layout: { stripes: STRIPES, pieceMs: PIECE_MS, bytesPerSecond: 24_064, maxPieceBytes: 100_000 },
        lagMs: 3_000,
        keepMs: 30_000,
        random: seededRandom(1_000 + digest),
        unixMs: () => lab.now,
        isSigned: ({ bytes }) => bytes[0] === GENUINE,
        isValidChunk: ({ value }, stripe, bytes) => bytes[0] === (value.seq & 255) && bytes[1] === stripe,
        hash: (bytes) => bytes.slice(0, 20),
        isSignedStat: ({ bytes }) => bytes[0] === GENUINE,
        ...options.setup,
      },
      instant(lab.now),
    );
    this.drain();
  }

  get figures(): LiveFigures {
    return this.swarm.figures(instant(this.lab.now));
  }

  nextIncoming(): number {
    this.#incoming += 2;
    return this.#incoming;
  }

  handle(input: LiveInput): void {
    if (!this.isAlive) return;
    this.swarm.handle(input, instant(this.lab.now));
    this.drain();
  }

  drain(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) this.#do(output);
    const next = this.swarm.nextWake();
    if (next === undefined || next >= this.#wakeAt) return;
    this.#wakeAt = next;
    this.lab.events.at(Math.ceil(next * 1_000), () => {
      if (!this.isAlive || this.#wakeAt !== next) return;
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.swarm.wake(instant(this.lab.now));
      this.drain();
    });
  }

  #do(output: LiveOutput): void {
    const { lab } = this;
    if (output.kind === "connect") lab.connect(this, output.connection, output.address);
    else if (output.kind === "close") lab.close(this, output.connection);
    else if (output.kind === "send") {
      const link = this.links.get(output.connection);
      if (output.message.kind === "chunk") this.chunksSent++;
      if (!link) return;
      lab.later(() => {
        if (link.node.links.has(link.connection))
          link.node.handle({ kind: "message", connection: link.connection, message: output.message });
      });
    } else if (output.kind === "piece") {
      const { seq, epoch } = output.header.value;
      this.played.push({ seq, epoch, at: lab.now });
    } else if (output.kind === "skip") this.skipped.push(output.seq);
    else if (output.kind === "find" && this.tracker) {
      const { tracker } = this;
      lab.later(() => this.handle({ kind: "found", addresses: tracker() }));
    } else this.outputs.push(output);
  }
}

/** A few engines on links with one delay and without rate limits, to test durations and who connects to
 * whom. */
export class Lab {
  readonly events = new EventHeap();
  readonly delayMs: number;
  readonly #nodes = new Map<string, LabNode>();
  readonly #silent = new Set<string>();
  /** Nodes that can be reached but cannot reach others. */
  readonly #cut = new Set<LabNode>();
  #made = 0;
  /** The epoch and seq of the next piece. */
  epoch = 100;
  seq = 1_000;
  isEnd = false;
  /** One random access piece in this number of pieces. */
  randomAccessEvery = 8;
  /** One start of a segment in this number of pieces. */
  segmentEvery = Number.POSITIVE_INFINITY;
  readonly #previousHash = new Map<number, Uint8Array>();

  constructor(delayMs: number) {
    this.delayMs = delayMs;
    this.events.runTo(200_000_000);
  }

  get now(): number {
    return this.events.nowMs;
  }

  /** Adds an engine, in a private network unless it has an address. */
  add(options: LabOptions = {}): LabNode {
    const made = this.#made++;
    const address = { host: options.host ?? `10.0.0.${made + 1}`, port: options.port ?? 8621 };
    const node = new LabNode(this, address, made + 1, options);
    this.#nodes.set(addressText(address), node);
    return node;
  }

  /** Kills the process: the operating system closes its connections. */
  kill(node: LabNode): void {
    node.isAlive = false;
    this.#nodes.delete(addressText(node.address));
    for (const { node: other, connection } of node.links.values()) {
      this.later(() => {
        if (other.links.delete(connection)) other.handle({ kind: "closed", connection });
      });
    }
    node.links.clear();
  }

  /** The address stops responding, without refusing connections. */
  silence(host: string): void {
    this.#silent.add(host);
  }

  /** Closes all connections of the node, and lets it open no more. */
  cut(node: LabNode): void {
    for (const connection of [...node.links.keys()]) {
      this.close(node, connection);
      node.handle({ kind: "closed", connection });
    }
    this.#cut.add(node);
  }

  /** Advances the time. */
  pass(ms: number): void {
    this.events.runTo((this.now + ms) * 1_000);
  }

  /** Lets a source make pieces for `ms`. */
  produce(source: LabNode, ms: number): void {
    for (let left = ms; left > 0; left -= PIECE_MS) {
      const { header, chunks } = this.piece();
      source.handle({ kind: "produced", header, chunks });
      this.pass(PIECE_MS);
    }
  }

  /** The next piece of the stream. */
  piece(more: Partial<PieceHeader> = {}): { header: SignedHeader; chunks: Uint8Array[] } {
    const seq = this.seq++;
    const bytes = new Uint8Array(24);
    bytes[0] = GENUINE;
    writeU32(bytes, 1, this.epoch);
    writeU48(bytes, 5, seq);
    const header: SignedHeader = {
      bytes,
      value: {
        epoch: this.epoch,
        seq,
        timestampMs: this.now,
        spanMs: PIECE_MS,
        clockReference: undefined,
        randomAccessOffset: seq % this.randomAccessEvery === 0 ? 0 : undefined,
        isSegmentStart: seq % this.segmentEvery === 0,
        segment: 0,
        isDiscontinuity: false,
        isEnd: this.isEnd,
        pieceBytes: STRIPES * CHUNK_BYTES,
        previousHash: this.#previousHash.get(this.epoch) ?? new Uint8Array(20),
        chunkHashes: new Uint8Array(20 * STRIPES),
        ...more,
      },
    };
    this.#previousHash.set(this.epoch, bytes.slice(0, 20));
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => {
      const chunk = new Uint8Array(CHUNK_BYTES);
      chunk[0] = seq & 255;
      chunk[1] = stripe;
      return chunk;
    });
    return { header, chunks };
  }

  later(run: () => void, ms = this.delayMs): void {
    this.events.at((this.now + ms) * 1_000, run);
  }

  connect(from: LabNode, connection: number, address: PeerAddress): void {
    if (this.#silent.has(address.host)) return;
    // TCP, then the handshakes of both sides: two round trips for the dialing side.
    this.later(() => {
      const to = this.#nodes.get(addressText(address));
      if (!to || to === from || !from.isAlive || this.#cut.has(from)) {
        this.later(() => from.handle({ kind: "closed", connection }));
        return;
      }
      const other = to.nextIncoming();
      from.links.set(connection, { node: to, connection: other });
      to.links.set(other, { node: from, connection });
      const rttMs = 2 * this.delayMs;
      const aboutOf = ({ claims, digest }: LabNode) => ({
        role: claims,
        uploadBytesPerSecond: 10_000_000,
        homeStripe: digest % STRIPES,
        digest,
      });
      this.later(() => {
        if (from.links.has(connection))
          from.handle({ kind: "opened", connection, about: aboutOf(to), rttMs });
      });
      const { address: caller } = from;
      to.handle({
        kind: "accepted",
        connection: other,
        about: aboutOf(from),
        rttMs,
        address: caller,
        isReachable: true,
      });
    }, 3 * this.delayMs);
  }

  close(from: LabNode, connection: number): void {
    const link = from.links.get(connection);
    if (!link) return;
    from.links.delete(connection);
    this.later(() => {
      if (link.node.links.delete(link.connection))
        link.node.handle({ kind: "closed", connection: link.connection });
    });
  }
}
