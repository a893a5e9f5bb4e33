import assert from "node:assert/strict";
import { scratchFile } from "../remux/make-media.ts";
import { probePackets } from "../remux/probe.ts";
import type { EngineProcess } from "./engine.ts";

/** A player that reads a test pattern from an engine. */
export class PatternPlayer {
  readonly #viewer: EngineProcess;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #parts: Uint8Array[] = [];

  private constructor(viewer: EngineProcess, reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#viewer = viewer;
    this.#reader = reader;
  }

  static async open(viewer: EngineProcess, url: string): Promise<PatternPlayer> {
    const response = await fetch(url);
    assert.equal(response.status, 200);
    return new PatternPlayer(viewer, response.body!.getReader());
  }

  /** Reads this many more bytes. */
  async take(bytes: number): Promise<void> {
    for (let length = 0; length < bytes; ) {
      const { done, value } = await this.#reader.read();
      assert.ok(!done, `the player was let go\n${this.#viewer.output()}`);
      this.#parts.push(value);
      length += value.length;
    }
  }

  /** Disconnects. Returns all bytes received and the PTS of the frames in seconds, which equal the time of day. */
  async leave(): Promise<{ bytes: Buffer; seconds: number[] }> {
    await this.#reader.cancel();
    const bytes = Buffer.concat(this.#parts);
    const packets = await probePackets(await scratchFile(bytes, "ts"));
    return { bytes, seconds: packets.filter(({ stream }) => stream === 0).map(({ pts }) => pts) };
  }
}
