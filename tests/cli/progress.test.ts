import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgressLine, progressText } from "../../src/cli/progress.ts";
import { bytesText, secondsText } from "../../src/cli/units.ts";

const FIGURES = { doing: "film.mkv", peers: 12, bytesPerSecond: 3.4e6, done: 0.41e9, size: 1e9 };

test("progressText: activity, peers, speed, percent and time left", () => {
  assert.equal(progressText(FIGURES), "film.mkv · 12 peers · 3.4 MB/s · 41 % of 1.0 GB · 2:54 left");
  const opening = { doing: "opening", peers: 1, bytesPerSecond: 0, done: undefined, size: undefined };
  assert.equal(progressText(opening), "opening · 1 peer · 0 B/s");
  assert.match(progressText({ ...FIGURES, bytesPerSecond: 0 }), /– left$/);
  const live = { ...opening, doing: "News", bytesPerSecond: 1e6, size: 0, behindMs: 2140 };
  assert.equal(progressText(live), "News · 2.1 s behind live · 1 peer · 1.0 MB/s");
  assert.match(progressText({ ...live, behindMs: 12_300 }), /^News · no new data for 12 s · /);
  assert.deepEqual(JSON.parse(progressText(FIGURES, true)), {
    doing: "film.mkv",
    peers: 12,
    bytes_per_second: 3_400_000,
    done_bytes: 410_000_000,
    size_bytes: 1_000_000_000,
    behind_live_ms: null,
  });
});

test("ProgressLine rewrites one line on a terminal, cut to its width", () => {
  let text = "";
  const line = new ProgressLine({ isTerminal: true, columns: 24, write: (part) => (text += part) });
  line.show(FIGURES, 0);
  line.show(FIGURES, 1);
  line.end();
  assert.equal(text, "\r\x1b[2Kfilm.mkv · 12 peers · 3\r\x1b[2K");
});

test("ProgressLine writes plain lines at intervals elsewhere", () => {
  const lines: string[] = [];
  const line = new ProgressLine({ isTerminal: false, columns: 80, write: (part) => lines.push(part) });
  for (let ms = 0; ms <= 12_000; ms += 500) line.show({ ...FIGURES, done: ms * 1e4 }, ms);
  assert.equal(lines.length, 3);
  assert.ok(lines.every((one) => one.endsWith("\n") && !one.includes("\r")));
});

test("bytesText and secondsText: three digits, and hours, minutes and seconds", () => {
  assert.deepEqual([0, 999, 1000, 123_456, 999_999_999].map(bytesText), [
    "0 B",
    "999 B",
    "1.0 kB",
    "123 kB",
    "1.0 GB",
  ]);
  assert.deepEqual([5, 65, 3665, Number.NaN, 1e9].map(secondsText), ["0:05", "1:05", "1:01:05", "–", "–"]);
});
