import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { decodeSubtitles, readSubtitles, type SubtitleFormat } from "../../src/media/subtitle-file.ts";
import type { TextCue } from "../../src/media/webvtt.ts";
import { allOf } from "../parts/all-of.ts";

function allCues(text: string, format: SubtitleFormat): TextCue[] {
  return allOf(readSubtitles(encodeUtf8(text), format));
}

/** Start, end and text of each cue. */
function cuesOf(text: string, format: SubtitleFormat): [number, number, string][] {
  return allCues(text, format).map((cue) => [cue.startSeconds, cue.endSeconds, cue.text]);
}

test("readSubtitles: SubRip with numbers, empty lines within a cue, and both line endings", () => {
  const text =
    "1\r\n00:00:01,500 --> 00:00:02,000\r\nHello\r\n\r\nthere\r\n\r\n2\r\n01:00:00,000 --> 01:00:01,250 X1:0\r\n42\r\n";
  assert.deepEqual(cuesOf(text, "subrip"), [
    [1.5, 2, "Hello\nthere"],
    [3600, 3601.25, "42"],
  ]);
});

test("readSubtitles: SubRip without numbers, out of order, with invalid times between", () => {
  const text = "0:0:5.0 --> 0:0:6.0\nlater\n\n00:00:01,000 --> 00:00:02,000\nearlier\n\n9 --> 8\n\n";
  assert.deepEqual(cuesOf(text, "subrip"), [
    [1, 2, "earlier\n9 --&gt; 8"],
    [5, 6, "later"],
  ]);
});

test("readSubtitles: WebVTT with identifiers, settings, notes and styles", () => {
  const text =
    "WEBVTT\n\nSTYLE\n::cue{}\n\nNOTE x\n\nid\n00:01.000 --> 00:02.000 align:start\n<i>One</i>\ntwo\n\nNOTE y\n\n00:03.000 --> 00:03.000\nempty\n";
  assert.deepEqual(cuesOf(text, "webvtt"), [[1, 2, "<i>One</i>\ntwo"]]);
});

test("readSubtitles: ASS events by their fields; commas, italics, line breaks; no drawings", () => {
  const text = [
    "[V4+ Styles]\nFormat: Name\nDialogue: 0,0:00:00.00,0:00:01.00,not an event",
    "[Events]\nFormat: Layer, Start, End, Style, Text",
    "Dialogue: 0,0:01:02.50,0:01:03.00,Default,Hello, {\\i1}you{\\i0}\\Nthere < here",
    "Dialogue: 0,0:00:01.00,0:00:02.00,Default,{\\p1}m 0 0 l 1 1{\\p0}",
    "Comment: 0,0:00:01.00,0:00:02.00,Default,hidden",
  ].join("\n");
  assert.deepEqual(cuesOf(text, "ass"), [[62.5, 63, "Hello, <i>you</i>\nthere &lt; here"]]);
});

const RUSSIAN = "Привет, как дела? Сегодня хорошая погода.";
/** The letters of windows-1251 from 0xc0 on are in the order of Unicode. */
const WINDOWS_1251 = Uint8Array.from(RUSSIAN, (character) => {
  const code = character.codePointAt(0)!;
  return code < 0x80 ? code : code - 0x410 + 0xc0;
});

for (const [what, bytes] of [
  ["UTF-8 with a byte order mark", encodeUtf8(`\ufeff${RUSSIAN}`)],
  [
    "UTF-16",
    Uint8Array.from([
      0xff,
      0xfe,
      ...[...RUSSIAN].flatMap((c) => [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8]),
    ]),
  ],
  ["windows-1251", WINDOWS_1251],
] as const) {
  test(`decodeSubtitles: ${what}`, () => assert.equal(decodeSubtitles(bytes), RUSSIAN));
}

test("readSubtitles: repeated tags and unclosed blocks of hostile files stay text or are removed", () => {
  const cue = (text: string) => `00:00:01,000 --> 00:00:02,000\n${text}\n`;
  const nested = `${"<b>".repeat(2_000)}x${"</i>".repeat(2_000)}</b>y`;
  assert.deepEqual(cuesOf(cue(nested), "subrip"), [[1, 2, "<b>x</b>y"]]);
  const braces = `[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,${"{".repeat(9_000)}{\\b1}x`;
  assert.deepEqual(cuesOf(braces, "ass"), [[1, 2, `${"{".repeat(9_000)}<b>x</b>`]]);
});

test("readSubtitles takes a step for each cue, so that a hostile file never blocks for long", () => {
  const cue = `0:0.0 --> 0:1.0\n${"<b>".repeat(60)}\n`;
  const ass = "Dialogue: 0,0:00:01.00,0:00:02.00,a,b,0,0,0,,{\\i1}x\n";
  const files = [
    ["subrip", cue.repeat(1000)],
    ["ass", `[Events]\n${ass.repeat(1000)}`],
  ] as const;
  for (const [format, text] of files) {
    const steps = [...readSubtitles(encodeUtf8(text), format)];
    assert.ok(steps.length >= 1000, `${steps.length} steps`);
  }
});

test("readSubtitles: an override tag places a text at the top", () => {
  const srt = "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}Sign\n\n2\n00:00:03,000 --> 00:00:04,000\nWords\n";
  const ass =
    "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,a,b,0,0,0,,{\\an8}Sign\nDialogue: 0,0:00:03.00,0:00:04.00,a,b,0,0,0,,Words\n";
  for (const [format, text] of [
    ["subrip", srt],
    ["ass", ass],
  ] as const) {
    const cues = allCues(text, format);
    assert.deepEqual(
      cues.map(({ isTop }) => isTop),
      [true, undefined],
    );
  }
});
