import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { framed } from "../../src/protocol/live/send-queue.ts";
import { decodeHeader, type PieceHeader } from "../../src/wire/live/header.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../src/wire/live/message.ts";
import type { LivePeerInfo } from "../../src/wire/live/peer-info.ts";
import type { LiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { emptyWindow } from "../../src/wire/live/window.ts";
import { encodeExtensionHandshake } from "../../src/wire/peer/extension-handshake.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../src/wire/peer/handshake.ts";
import { runtimeCommand } from "../parts/engine.ts";
import type { BroadcastProcess } from "../parts/live-broadcast.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";

/** The message ids of `sl_live` that the engine and the stranger advertise. */
const ENGINE_LIVE_ID = 3;
const OWN_LIVE_ID = 9;
/** Bytes that wait in the socket before a flood pauses. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

export type AnyMessage = NonNullable<ReturnType<typeof decodeLiveMessage>>;
type Sendable = Parameters<typeof encodeLiveMessage>[0];

/** The bytes that all strangers of an attack have sent and received. */
export const traffic = { sent: 0, received: 0 };

/** What a stranger is like before it attacks. */
export interface StrangerOptions {
  readonly file: LiveTransportFile;
  readonly port: number;
  /** Its own loopback address, so that limits by address treat it as a household of its own. */
  readonly localAddress: string;
  readonly role?: LivePeerInfo["role"];
  /** Sends neither HELLO nor claims. */
  readonly isSilent?: boolean;
}

/** A connection of a hostile peer: speaks the protocol as far as the attack demands. */
export class Stranger {
  readonly file: LiveTransportFile;
  readonly socket: Socket;
  /** The newest header that the engine has sent. */
  head: PieceHeader | undefined;
  headBytes: Uint8Array | undefined;
  /** Receives each message of the engine with its encoded form. */
  onMessage: (message: AnyMessage, payload: Uint8Array) => void = () => {};
  isClosed = false;
  readonly #timers: NodeJS.Timeout[] = [];
  #waiting = Buffer.alloc(0);
  #hasHandshake = false;

  constructor({ file, port, localAddress, role = "viewer", isSilent = false }: StrangerOptions) {
    this.file = file;
    this.socket = connect({ port, host: "127.0.0.1", localAddress });
    this.socket.on("error", () => {});
    this.socket.on("close", () => this.end());
    this.socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    if (isSilent) return;
    const peerId = randomBytes(20);
    const { infohash } = file;
    this.raw(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }));
    this.extend({ role, uploadBytesPerSecond: 1e8, challenge: randomBytes(16) });
    this.send({ kind: "hello", header: undefined });
  }

  get stripes(): number {
    return this.file.info.stripeCount;
  }

  /** The sequence number of the newest piece; 0 if it is unknown. */
  get seq(): number {
    return this.head?.seq ?? 0;
  }

  get epoch(): number {
    return this.head?.epoch ?? 0;
  }

  /** Sends the extension handshake. */
  extend(live: LivePeerInfo): void {
    const messages = new Map([
      ["sl_live", OWN_LIVE_ID],
      ["ut_pex", 1],
      ["ut_metadata", 2],
    ]);
    this.raw(framed(0, encodeExtensionHandshake({ messages, live, listenPort: 7_000 })));
  }

  send(message: Sendable): void {
    this.payload(encodeLiveMessage(message));
  }

  /** Sends the bytes of a live message, valid or not. */
  payload(bytes: Uint8Array): void {
    this.raw(framed(ENGINE_LIVE_ID, bytes));
  }

  raw(bytes: Uint8Array): void {
    if (this.isClosed || this.socket.writableLength > MAX_WAITING_BYTES) return;
    traffic.sent += bytes.length;
    this.socket.write(bytes);
  }

  /** WIN and PATHS: everything is here, at the source's side, and nothing waits. */
  claim(): void {
    const { stripes, epoch } = this;
    const claims = { epoch, oldestSeq: 0, baseSeq: this.seq + 1, isOpen: true, freeSlots: 60 };
    this.send({ kind: "window", window: { ...emptyWindow(stripes), ...claims } });
    const paths = Array.from({ length: stripes }, (_, stripe) => ({ stripe, depth: 1, ancestors: [] }));
    this.send({ kind: "paths", paths });
  }

  /** Subscribes to all stripes. */
  subscribe(backfillPieces = 0): void {
    const have = new Array<number>(this.stripes).fill(0);
    const wanted = { stripes: 2 ** this.stripes - 1, epoch: this.epoch, startSeq: this.seq, backfillPieces };
    this.send({ kind: "subscribe", ...wanted, have, isDesperate: true });
  }

  /** Repeats an action until the connection ends. */
  every(ms: number, run: () => void): void {
    if (!this.isClosed) this.#timers.push(setInterval(run, ms));
  }

  end(): void {
    this.isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.socket.destroy();
  }

  #receive(bytes: Buffer): void {
    traffic.received += bytes.length;
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    if (!this.#hasHandshake) {
      if (this.#waiting.length < HANDSHAKE_BYTES) return;
      this.#waiting = this.#waiting.subarray(HANDSHAKE_BYTES);
      this.#hasHandshake = true;
    }
    while (this.#waiting.length >= 4) {
      const end = 4 + this.#waiting.readUInt32BE(0);
      if (this.#waiting.length < end) return;
      const message = this.#waiting.subarray(4, end);
      this.#waiting = this.#waiting.subarray(end);
      if (message[0] === 20 && message[1] === OWN_LIVE_ID) this.#live(message.subarray(2));
    }
  }

  #live(payload: Uint8Array): void {
    const message = decodeLiveMessage(payload, this.stripes);
    if (!message) return;
    if ((message.kind === "header" || message.kind === "hello") && message.header) {
      const header = decodeHeader(message.header, this.file.info);
      if (!this.head || header.seq > this.head.seq) {
        this.head = header;
        this.headBytes = Uint8Array.from(message.header);
      }
    }
    this.onMessage(message, payload);
  }
}

/** Starts a process of `count` strangers, each of which attacks all `ports` with one kind of attack until SIGTERM.
 * `round` is a number of its own for each process: it determines the strangers' addresses. */
export async function startStrangers(
  kind: string,
  count: number,
  { transportFile, dataDir, p2pPort }: BroadcastProcess,
  ports: readonly number[],
  round: number,
): Promise<RunningProcess> {
  const [command, ...args] = runtimeCommand();
  const strangers = startProcess(command, [
    ...[...args, fileURLToPath(new URL("live-attacks.ts", import.meta.url))],
    ...["--kind", kind, "--strangers", String(count), "--round", String(round)],
    ...["--file", transportFile, "--key", `${dataDir}/broadcasts/stream/key`],
    ...["--ports", [p2pPort, ...ports].join(",")],
  ]);
  await strangers.line((line) => line === "attacking");
  return strangers;
}
