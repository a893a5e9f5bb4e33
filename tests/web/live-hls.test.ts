import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import Hls from "hls.js";
import { limitBackBuffer } from "../../src/web/page/parts/live-hls.js";

const { FRAG_BUFFERED, BUFFER_FLUSHING } = Hls.Events;

/** Buffers a part of a segment and returns what the limit removes then. */
function removedAfter(
  part: { index: number } | null,
  { live = true, bufferedFrom = 0, currentTime = 100 } = {},
): unknown[] {
  const removed: unknown[] = [];
  const events = new EventEmitter();
  const hls = {
    latestLevelDetails: { live },
    on: events.on.bind(events),
    trigger: (event: string, range: unknown) => removed.push([event, range]),
  };
  const video = { currentTime, buffered: { length: 1, start: () => bufferedFrom } };
  limitBackBuffer(Hls, hls as never, video as never);
  events.emit(FRAG_BUFFERED, FRAG_BUFFERED, { part });
  return removed;
}

test("limitBackBuffer: removes what a live stream played a minute ago after the first part of a segment, when a further part follows", () => {
  const range = { startOffset: 0, endOffset: 40, type: null };
  assert.deepEqual(removedAfter({ index: 0 }), [[BUFFER_FLUSHING, range]]);
  assert.deepEqual(removedAfter(null), [[BUFFER_FLUSHING, range]]);
  assert.deepEqual(removedAfter({ index: 7 }), []);
});

test("limitBackBuffer: leaves short buffers and films to hls.js", () => {
  assert.deepEqual(removedAfter({ index: 0 }, { bufferedFrom: 31 }), []);
  assert.deepEqual(removedAfter({ index: 0 }, { currentTime: 65 }), []);
  assert.deepEqual(removedAfter({ index: 0 }, { live: false }), []);
});
