import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { TsRestamper } from "../media/ts-restamp.ts";
import { StablePids } from "../remux/streams/stable-pids.ts";
import { TsEntry } from "../remux/ts-join.ts";
import type { OpenFile } from "../runtime/contract.ts";

/** The end of a file that is read to continue its times: some seconds of media. */
const TAIL_BYTES = TS_PACKET_BYTES * 10_000;
/** The version number of PAT and PMT has five bits. */
const VERSIONS = 32;

/**
 * Fits a transport stream to the end of a recorded file: it begins with a key frame, and times, clock, counters and PIDs continue those of the file, so
 * that a gap adds nothing to the duration. The first stream of a file is unchanged.
 */
export class JoinedStream {
  readonly #restamper = new TsRestamper();
  readonly #pids = new StablePids();
  readonly #entry: TsEntry | undefined;
  #isJoined = false;

  private constructor(entry: TsEntry | undefined) {
    this.#entry = entry;
  }

  /** `bytes`: the size of the file. `count`: a number that differs from that of the stream before. */
  static async after(file: Pick<OpenFile, "read">, bytes: number, count: number): Promise<JoinedStream> {
    if (bytes === 0) return new JoinedStream(undefined);
    const joined = new JoinedStream(new TsEntry(count % VERSIONS));
    const tail = new Uint8Array(Math.min(TAIL_BYTES, bytes));
    await file.read(bytes - tail.length, tail);
    joined.#pids.learn(tail);
    joined.#restamper.restamp(tail);
    return joined;
  }

  /** Takes the next bytes of the stream; returns the packets to append, which may be none. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#entry === undefined) return bytes;
    const packets = this.#entry.push(bytes);
    if (packets.length === 0) return packets;
    if (!this.#isJoined) this.#restamper.join(this.#entry.first!);
    this.#isJoined = true;
    this.#pids.apply(this.#entry, packets);
    this.#restamper.restamp(packets);
    return packets;
  }
}
