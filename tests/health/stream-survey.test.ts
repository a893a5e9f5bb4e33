import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamSurvey } from "../../src/health/stream-survey.ts";
import { filled, patternSeconds } from "./pattern-stream.ts";

function surveyed(seconds: readonly Uint8Array[], chunkBytes = 10_000): StreamSurvey {
  const survey = new StreamSurvey();
  for (const second of seconds)
    for (let at = 0; at < second.length; at += chunkBytes) survey.push(second.subarray(at, at + chunkBytes));
  return survey;
}

test("StreamSurvey: bitrate, codecs, size, language and movement of a stream that begins in the middle", () => {
  const seconds = patternSeconds().map((second) => filled(second, 188 * 1_000));
  const survey = surveyed([seconds[0]!.subarray(70_001), ...seconds.slice(1, 6)]);
  const { bytesPerSecond, ...facts } = survey.facts();
  assert.ok(Math.abs(bytesPerSecond / 188_000 - 1) < 0.1, `${bytesPerSecond}`);
  assert.deepEqual(facts, {
    codecs: ["h264", "aac"],
    width: 640,
    height: 360,
    languages: ["fra"],
    isMoving: true,
  });
  assert.ok(survey.mediaMs > 4_000 && survey.mediaMs <= 5_000, `${survey.mediaMs}`);
});

test("StreamSurvey: a picture that stays the same does not move", () => {
  assert.equal(surveyed(patternSeconds(true).slice(0, 5)).facts().isMoving, false);
});

test("StreamSurvey: bytes that are no transport stream, and null packets, are no media", () => {
  const noise = new Uint8Array(300_000).map((_, i) => (i * 31) & 0xff);
  assert.equal(surveyed([noise]).mediaMs, 0);
  const none = new Uint8Array(188 * 500);
  for (let at = 0; at < none.length; at += 188) none.set([0x47, 0x1f, 0xff, 0x10], at);
  const survey = surveyed([none]);
  assert.deepEqual([survey.mediaMs, survey.mediaBytes], [0, 0]);
  assert.deepEqual(survey.facts(), {
    bytesPerSecond: 0,
    codecs: [],
    width: 0,
    height: 0,
    languages: [],
    isMoving: undefined,
  });
});
