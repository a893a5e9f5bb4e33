import assert from "node:assert/strict";
import { test } from "node:test";
import { assToCueText, subripToCueText, webvttTime, writeWebvtt } from "../../src/media/webvtt.ts";

test("webvttTime: hours, minutes, seconds, milliseconds; never below zero", () => {
  assert.equal(webvttTime(3723.0045), "01:02:03.005");
  assert.equal(webvttTime(59.9996), "00:01:00.000");
  assert.equal(webvttTime(-1), "00:00:00.000");
  assert.equal(webvttTime(360000), "100:00:00.000");
});

test("writeWebvtt: no cues are still a file with its clock", () => {
  assert.equal(writeWebvtt([], 900000), "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n");
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
  ["0,0,Default,,0,0,0,,Hello, {\\b1}you{\\b0}\\Nthere\\hnow", "Hello, you\nthere\u00a0now"],
  ["1,0,Default,,0,0,0,,{\\p1}m 0 0 l 1 1{\\p0}", ""],
  ["too,short", ""],
] as const) {
  test(`assToCueText ${JSON.stringify(from)}`, () => assert.equal(assToCueText(from), to));
}
