import { assert } from "../../../src/base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import { writeMasterManifest, writeMediaManifest } from "../../../src/media/manifest.ts";
import { readSubtitles } from "../../../src/media/subtitle-file.ts";
import { assToCueText, subripToCueText, writeWebvtt } from "../../../src/media/webvtt.ts";
import { allOf } from "../../parts/all-of.ts";
import type { FuzzTarget } from "../contract.ts";

/** Names come from untrusted files: any name must leave the lines and quotes of a manifest intact. */
const manifest: FuzzTarget = {
  name: "manifest",
  corpus: () => ["film", 'a "b", c', "x\n#EXT-X-ENDLIST", "ü\u2028\u0085"].map(encodeUtf8),
  maxBytes: 4096,
  run(bytes) {
    const text = decodeUtf8(bytes);
    const media = writeMediaManifest({
      kind: "vod",
      mapUri: text,
      segments: [{ durationSeconds: 6, uri: `u${text}` }],
    });
    assert(media.split("\n").length === 10, "ten lines of a media manifest");
    const master = writeMasterManifest(
      [{ uri: `u${text}`, bitsPerSecond: 1, codecs: [text], subtitleGroup: text }],
      [{ kind: "subtitles", group: text, name: text, uri: text, language: text, isDefault: false }],
    );
    const lines = master.split("\n");
    assert(lines.length === 6, "six lines of a master manifest");
    for (const line of lines.slice(2, 4)) assert((line.match(/"/g)?.length ?? 0) % 2 === 0, "quotes pair");
    return media;
  },
};

/** Subtitles come from untrusted files: a cue must not end its block or start another. */
const subtitles: FuzzTarget = {
  name: "webvtt",
  corpus: () =>
    [
      "Hello <i>there</i>",
      "0,0,Default,,0,0,0,,{\\an8}a\\Nb",
      "a\n\nb --> c",
      "<b><i>x</b></i>",
      "a &amp; <c.x>",
    ].map(encodeUtf8),
  extremes: () =>
    ["<b>".repeat(20000), "{\\".repeat(30000), "<".repeat(60000), "\n".repeat(60000)].map(encodeUtf8),
  run(bytes) {
    const text = decodeUtf8(bytes);
    for (const convert of [subripToCueText, assToCueText]) {
      const cue = convert(text);
      const out = writeWebvtt([{ startSeconds: 1, endSeconds: 2, text: cue }], 0);
      assert(out.split("-->").length === 2, "one cue has one arrow");
      assert(cue === "" || !/(^|\n)(\n|$)/.test(cue), "no empty line in a cue");
    }
    return undefined;
  },
};

/** Subtitle files come from torrents: any bytes give cues that keep the structure of a WebVTT file. */
const subtitleFile: FuzzTarget = {
  name: "subtitle-file",
  corpus: () =>
    [
      "1\n00:00:01,000 --> 00:00:02,000\nHello <i>there</i>\n\n2\n0:3.5 --> 0:4.0\nb",
      "WEBVTT\n\nid\n00:01.000 --> 00:02.000 align:start\na\n\nNOTE x",
      "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,{\\i1}a\\Nb,c",
    ].map(encodeUtf8),
  extremes: () =>
    [
      "0:0.0 --> 0:1.0\n".repeat(4000),
      `[Events]\n${"Dialogue: ,".repeat(6000)}`,
      `0:0.0 --> 0:1.0\n${"<b>".repeat(20000)}`,
    ].map(encodeUtf8),
  run(bytes) {
    for (const format of ["subrip", "webvtt", "ass"] as const) {
      const cues = allOf(readSubtitles(bytes, format));
      assert(writeWebvtt(cues, 0).split("-->").length === cues.length + 1, "each cue has one arrow");
      for (const { startSeconds, endSeconds, text: cue } of cues) {
        assert(startSeconds >= 0 && endSeconds > startSeconds, "a cue has a duration");
        assert(cue !== "" && !/(^|\n)(\n|$)/.test(cue), "no empty line in a cue");
      }
    }
    return undefined;
  },
};

export const targets: FuzzTarget[] = [manifest, subtitles, subtitleFile];
