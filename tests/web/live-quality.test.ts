import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import Hls from "hls.js";
import { raiseQuality } from "../../src/web/page/watch/live-quality.js";

const { FRAG_LOADED, LEVEL_SWITCHED } = Hls.Events;
const SLOW = 500_000;
const FAST = 50_000_000;

/** A player of a live stream with two qualities, and a simulated clock. */
class Player {
  readonly levels = [{ bitrate: 500_000 }, { bitrate: 3_000_000 }];
  readonly config = Hls.DefaultConfig;
  readonly latestLevelDetails = { live: true };
  autoLevelEnabled = true;
  bandwidthEstimate = 1_000_000;
  #now = 0;
  readonly #events = new EventEmitter();
  readonly on = this.#events.on.bind(this.#events);

  constructor() {
    raiseQuality(Hls, this as never, () => this.#now);
  }

  switchTo(level: number): void {
    this.#events.emit(LEVEL_SWITCHED, LEVEL_SWITCHED, { level });
  }

  /** Loads four parts a second, each with this bandwidth, in bit/s. Returns after how many seconds the estimate rose, if it did. */
  load(seconds: number, bandwidth: number, type = "main"): number | undefined {
    const before = this.bandwidthEstimate;
    for (let part = 1; part <= 4 * seconds; part++) {
      this.#now += 250;
      const loading = { start: 0, first: 0, end: (8_000 * 15_000) / bandwidth };
      this.#events.emit(FRAG_LOADED, FRAG_LOADED, {
        frag: { type },
        part: { stats: { loaded: 15_000, loading } },
      });
      if (this.bandwidthEstimate > before) return part / 4;
    }
    return undefined;
  }
}

test("raiseQuality: parts that load fast for 10 s raise the estimate of the bandwidth, slow ones do not", () => {
  const player = new Player();
  player.switchTo(0);
  assert.equal(player.load(60, SLOW), undefined);
  assert.equal(player.load(60, FAST, "audio"), undefined);
  assert.ok(player.load(30, FAST)! <= 20);
  assert.ok(player.bandwidthEstimate > 3_000_000 / 0.7);
});

test("raiseQuality: after each better quality that fails, it waits twice as long", () => {
  const player = new Player();
  const waits: number[] = [];
  for (let failure = 0; failure < 4; failure++) {
    player.switchTo(1);
    player.switchTo(0);
    player.bandwidthEstimate = 1_000_000;
    waits.push(player.load(200, FAST)!);
  }
  assert.deepEqual(waits, [10, 20, 40, 80]);
});

test("raiseQuality: leaves the best quality, a chosen quality and films alone", () => {
  const best = new Player();
  best.switchTo(1);
  assert.equal(best.load(60, FAST), undefined);
  const chosen = new Player();
  chosen.switchTo(0);
  chosen.autoLevelEnabled = false;
  assert.equal(chosen.load(60, FAST), undefined);
  const film = new Player();
  film.switchTo(0);
  film.latestLevelDetails.live = false;
  assert.equal(film.load(60, FAST), undefined);
});
