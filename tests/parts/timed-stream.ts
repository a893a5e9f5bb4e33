import { runtime } from "#runtime";
import { noFacts } from "../../src/live/input/source-feed.ts";
import { PatternFeed } from "../../src/live/input/source-pattern.ts";

/** A PID in no table: decoders ignore its packets. */
const MARK_PID = 0x1abc;
const PACKET_BYTES = 188;
const MAGIC = 0x534c_5543;
/** A frame takes 40 ms. */
const MAX_FILL_MS = 120;

/** The content of a mark: its sequence number and its send time. */
export interface Mark {
  readonly index: number;
  readonly sentAtMs: number;
}

/**
 * The test pattern filled up to `bytesPerSecond` with marks: transport packets with their sequence number and
 * send time, from which a viewer computes loss and delay.
 */
export class TimedStream {
  readonly #feed = new PatternFeed({ clock: runtime.clock, unixMs: Date.now }, noFacts());
  readonly #bytesPerSecond: number;
  #index = 0;
  #filledAt: number | undefined;
  /** Bytes that are due but do not fill a packet. */
  #restBytes = 0;

  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Waits for the next packets and returns them. */
  async next(): Promise<Uint8Array> {
    const packets = (await this.#feed.next()) ?? new Uint8Array(0);
    const now = performance.now();
    // After a delay, skip the bytes that were due: a burst would exceed the uplink.
    const passedMs = Math.min(MAX_FILL_MS, now - (this.#filledAt ?? now));
    this.#filledAt = now;
    const dueBytes = this.#restBytes + (passedMs * this.#bytesPerSecond) / 1000 - packets.length;
    const count = Math.max(0, Math.floor(dueBytes / PACKET_BYTES));
    this.#restBytes = dueBytes - count * PACKET_BYTES;
    const bytes = new Uint8Array(packets.length + count * PACKET_BYTES);
    bytes.set(packets);
    for (let i = 0; i < count; i++) this.#mark(bytes, packets.length + i * PACKET_BYTES);
    return bytes;
  }

  close(): void {
    this.#feed.close();
  }

  #mark(bytes: Uint8Array, at: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, PACKET_BYTES);
    const index = this.#index++;
    view.setUint32(0, 0x4700_0010 | (MARK_PID << 8) | (index & 15));
    view.setUint32(4, MAGIC);
    view.setUint32(8, index);
    view.setFloat64(12, Date.now());
    // The rest differs in each packet, so that no transport can compress or deduplicate it.
    for (let i = 20; i + 4 <= PACKET_BYTES; i += 4) view.setUint32(i, Math.imul(index + i, 2654435761) >>> 0);
  }
}

/** Finds the marks in a transport stream that comes in pieces of any size. */
export class MarkReader {
  #rest: Uint8Array = new Uint8Array(0);

  push(bytes: Uint8Array): Mark[] {
    const all = this.#rest.length === 0 ? bytes : new Uint8Array(Buffer.concat([this.#rest, bytes]));
    const marks: Mark[] = [];
    let at = 0;
    for (; at + PACKET_BYTES <= all.length; at += PACKET_BYTES) {
      if (all[at] !== 0x47) throw new Error(`no transport packet begins at ${at}`);
      const view = new DataView(all.buffer, all.byteOffset + at, PACKET_BYTES);
      if (((view.getUint32(0) >> 8) & 0x1fff) !== MARK_PID || view.getUint32(4) !== MAGIC) continue;
      marks.push({ index: view.getUint32(8), sentAtMs: view.getFloat64(12) });
    }
    this.#rest = all.slice(at);
    return marks;
  }
}

// As a program: `timed-stream.ts BYTES_PER_SECOND` writes to standard output, at the stream's own pace.
if (process.argv[1]?.endsWith("timed-stream.ts")) {
  const stream = new TimedStream(Number(process.argv[2]));
  // The engine's timers do not keep a process alive.
  setInterval(() => {}, 60_000);
  process.stdout.on("error", () => process.exit(0));
  for (;;) {
    const bytes = await stream.next();
    if (!process.stdout.write(bytes)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
}
