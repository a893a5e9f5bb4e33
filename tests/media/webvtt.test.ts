import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assToCueText,
  isTopText,
  subripToCueText,
  writeSubrip,
  writeWebvtt,
} from "../../src/media/webvtt.ts";

test("writeWebvtt formats times as hours, minutes, seconds and milliseconds, never negative", () => {
  const cues = [
    { startSeconds: -1, endSeconds: 59.9996, text: "a" },
    { startSeconds: 3723.0045, endSeconds: 360000, text: "b" },
  ];
  const text = writeWebvtt(cues, 0);
  assert.match(text, /^00:00:00\.000 --> 00:01:00\.000\na$/m);
  assert.match(text, /^01:02:03\.005 --> 100:00:00\.000\nb$/m);
});

test("writeSubrip: numbers cues, and keeps the tags that SubRip knows", () => {
  const cues = [{ startSeconds: 1.5, endSeconds: 3602, text: "<i>a</i> &amp; <c.red>b</c>\n&lt;c" }];
  assert.equal(writeSubrip(cues, 7), "7\n00:00:01,500 --> 01:00:02,000\n<i>a</i> & b\n<c\n\n");
});

test("writeWebvtt: without cues writes a file with the timestamp map", () => {
  assert.equal(writeWebvtt([], 900000), "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n");
});

test("writeWebvtt: cues that an override tag places at the top are at the first line", () => {
  const cues = ["{\\an8}a", "{\\i1\\an9}b", "{\\an2}c", "\\an8"].map((text, index) => ({
    ...{ startSeconds: index, endSeconds: index + 1, text },
    isTop: isTopText(text),
  }));
  const timings = writeWebvtt(cues, 0).match(/-->.*/g);
  const times = ["00:00:01.000", "00:00:02.000", "00:00:03.000", "00:00:04.000"];
  assert.deepEqual(
    timings,
    times.map((time, index) => `--> ${time}${index < 2 ? " line:0" : ""}`),
  );
});

for (const [from, to] of [
  ["a & b < c > d", "a &amp; b &lt; c &gt; d"],
  ["<i>slanted</i> <b>bold</b> <u>under</u>", "<i>slanted</i> <b>bold</b> <u>under</u>"],
  ['<font color="red">red</font>', "red"],
  ["<i>open", "<i>open</i>"],
  ["<b><i>crossed</b></i>", "<b><i>crossed</i></b>"],
  ["{\\an8}above", "above"],
  ["one\r\n\r\ntwo\n\n", "one\ntwo"],
  ["a --> b", "a --&gt; b"],
] as const) {
  test(`subripToCueText ${JSON.stringify(from)}`, () => assert.equal(subripToCueText(from), to));
}

for (const [from, to] of [
  ["0,0,Default,,0,0,0,,Hello, {\\b1}you{\\b0}\\Nthere\\hnow", "Hello, <b>you</b>\nthere\u00a0now"],
  ["0,0,Default,,0,0,0,,{\\i1}1 < 2 & <b>", "<i>1 &lt; 2 &amp; &lt;b&gt;</i>"],
  ["1,0,Default,,0,0,0,,{\\p1}m 0 0 l 1 1{\\p0}", ""],
  ["too,short", ""],
] as const) {
  test(`assToCueText ${JSON.stringify(from)}`, () => assert.equal(assToCueText(from), to));
}
