import { assert } from "../../../src/base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import { writeMasterManifest, writeMediaManifest } from "../../../src/media/manifest.ts";
import { assToCueText, subripToCueText, writeWebvtt } from "../../../src/media/webvtt.ts";
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

export const targets: FuzzTarget[] = [manifest, subtitles];
