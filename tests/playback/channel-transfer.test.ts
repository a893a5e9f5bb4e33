import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { ChannelTransfer } from "../../src/playback/channel-transfer.ts";
import { PlayedChannels } from "../../src/playback/diagnosis/channel-rows.ts";
import type { ChannelState } from "../../src/transfer/channel-contract.ts";
import { sessionManifestUrls } from "../../src/transfer/segment-source.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { FakeTransfers } from "../engine/fake-transfers.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { FakeSource } from "./fake-channel-source.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const NEVER = new AbortController().signal;
const PLACE = { urls: sessionManifestUrls("http://h:1", { infohash: INFOHASH, key: "k", ordinal: 0 }) };

function channel(sources: readonly FakeSource[]) {
  const clock = new FakeClock();
  const report = new PlayedChannels(clock).report("News", sources.length);
  const changes: ChannelState[] = [];
  report.onChange((state) => changes.push(state));
  const transfer = new ChannelTransfer({
    ...{ infohash: INFOHASH, clock, log: SILENT_LOG, report, sources, limitMs: 1_800_000 },
    storage: new FakeTransfers().windowStorage(),
    onStop() {},
  });
  transfer.setIdle(false);
  /** Sends a second of the stream each second. */
  const play = async (count: number, source?: FakeSource) => {
    for (let i = 0; i < count; i++) {
      if (source?.isOpen) source.send();
      await clock.advance(1_000);
    }
  };
  return { clock, transfer, changes, play };
}

/** An HLS player that reloads its manifest and reads each segment once. */
class HlsPlayer {
  readonly #transfer: ChannelTransfer;
  readonly discontinuities: number[] = [];
  readonly numbers: number[] = [];
  readonly #bytes: Uint8Array[] = [];
  #seconds = 0;

  constructor(transfer: ChannelTransfer) {
    this.#transfer = transfer;
  }

  async reload(): Promise<void> {
    const source = await this.#transfer.segmentSource(NEVER);
    const lines = (await source.manifest(PLACE, "main", NEVER)).split("\n");
    const first = Number(lines.find((line) => line.startsWith("#EXT-X-MEDIA-SEQUENCE:"))!.split(":")[1]);
    let number = first;
    let isCut = false;
    let seconds = 0;
    for (const line of lines) {
      if (line === "#EXT-X-DISCONTINUITY") isCut = true;
      if (line.startsWith("#EXTINF:")) seconds = Number.parseFloat(line.slice(8));
      if (!/^http.*\d\.ts$/.test(line)) continue;
      if (number > (this.numbers.at(-1) ?? 0)) {
        this.numbers.push(number);
        if (isCut) this.discontinuities.push(number);
        this.#bytes.push(await source.make("ts", number, 0, NEVER));
        this.#seconds += seconds;
      }
      isCut = false;
      number++;
    }
  }

  /** Checks that the segments are consecutive and their media is continuous; returns the seconds of video, and of the manifest. */
  played() {
    const [first = 0] = this.numbers;
    assert.deepEqual(
      this.numbers,
      this.numbers.map((_, index) => first + index),
    );
    const { faults, keyframes } = checkTs(new Uint8Array(Buffer.concat(this.#bytes)), {
      isPassThrough: true,
    });
    assert.deepEqual(faults, []);
    return { keyframes, seconds: this.#seconds };
  }
}

test("ChannelTransfer: HLS goes on with the next source, with one discontinuity and continuous numbers and times", async () => {
  const sources = [new FakeSource("item 1", 500_000), new FakeSource("item 2", 90_000)] as const;
  const { transfer, changes, play } = channel(sources);
  const player = new HlsPlayer(transfer);
  await settled();
  // Seconds that a source sends at once do not shorten the segments.
  for (let i = 0; i < 5; i++) sources[0].send();
  await play(6, sources[0]);
  await player.reload();
  assert.deepEqual(player.discontinuities, []);
  sources[0].break();
  await settled();
  await play(8, sources[1]);
  await player.reload();
  const { keyframes, seconds } = player.played();
  assert.equal(player.discontinuities.length, 1);
  assert.ok(keyframes >= 15, `${keyframes} s of video`);
  assert.ok(Math.abs(seconds - keyframes) <= 1, `${seconds} s in the manifest, ${keyframes} s of video`);
  const { source, switches, lastSwitch } = changes.at(-1)!;
  assert.deepEqual([source, switches], [{ index: 1, name: "item 2" }, 1]);
  assert.equal(lastSwitch!.reason, "item 1: gone");
  await transfer.stop();
});

test("ChannelTransfer: players see the test pattern while all sources fail, and then the first one that delivers", async () => {
  const source = new FakeSource("item 1", 1_000);
  const other = new FakeSource("item 2", 2_000);
  other.fails = true;
  const { transfer, changes, play } = channel([source, other]);
  const player = new HlsPlayer(transfer);
  await settled();
  await play(8, source);
  source.fails = true;
  source.break();
  await play(12);
  assert.equal(changes.at(-1)!.showsPattern, true);
  await player.reload();
  source.fails = false;
  await play(16, source);
  await player.reload();
  assert.ok(player.played().keyframes >= 30);
  assert.equal(player.discontinuities.length, 2);
  assert.deepEqual(changes.at(-1)!.source, { index: 0, name: "item 1" });
  assert.equal(changes.at(-1)!.switches, 0);
  await transfer.stop();
});

test("ChannelTransfer: without players its sources are closed; the next player continues the numbers", async () => {
  const source = new FakeSource("item 1", 1_000);
  const { transfer, play } = channel([source]);
  const player = new HlsPlayer(transfer);
  await settled();
  await play(9, source);
  await player.reload();
  transfer.setIdle(true);
  await settled();
  assert.deepEqual([source.opened, source.closed], [1, 1]);
  await play(20);
  assert.equal(source.opened, 1);
  transfer.setIdle(false);
  await settled();
  await play(9, source);
  await player.reload();
  player.played();
  assert.equal(player.discontinuities.length, 1);
  await transfer.stop();
  assert.equal(source.closed, 2);
});

test("ChannelTransfer: a start fails with the problem of the first source, and a later one tries again", async () => {
  const source = new FakeSource("item 1", 1_000);
  source.fails = true;
  const { transfer, play } = channel([source]);
  await assert.rejects(transfer.segmentSource(NEVER), /no peer of item 1/);
  source.fails = false;
  const opened = transfer.segmentSource(NEVER);
  await settled();
  await play(5, source);
  assert.equal((await opened).isLive, true);
  await transfer.stop();
  await assert.rejects(transfer.segmentSource(NEVER), /the transfer was stopped/);
});
