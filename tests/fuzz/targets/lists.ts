import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { parseHttpUrl } from "../../../src/base/http-url.ts";
import { parseLink } from "../../../src/base/link.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/base/utf8.ts";
import { parseHlsPlaylist } from "../../../src/media/hls-playlist.ts";
import { type M3uEntry, M3uReader } from "../../../src/media/m3u.ts";
import { m3uEntry, m3uHeader } from "../../../src/media/m3u-writer.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const ID = "94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209";
const LISTS = [
  `#EXTM3U url-tvg="http://e/1.xml,http://e/2.xml" tvg-shift=1\n#EXTINF:-1 tvg-id="a" tvg-logo='l' group-title="G, H",T, u\n#EXTVLCOPT:a=b\nhttp://h/a.ts|User-Agent=x&Referer=y\n`,
  `\ufeff#EXTM3U\r\n#EXTGRP:Gé\r\n#EXTINF:12.5 tvg-name="The "B" C" x=1 y z,T\r\n#KODIPROP:a=b\r\nacestream://${ID}\r\n`,
  `# x\n${ID}\nmagnet:?xt=urn:btih:${ID}&dn=a|b\n`,
  "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n",
];
const HEAD = "#EXTM3U\n#EXTINF:-1 ";

function read(bytes: Uint8Array, pieceBytes: number): { entries: M3uEntry[]; reader: M3uReader } {
  const reader = new M3uReader();
  const entries: M3uEntry[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    entries.push(...reader.push(bytes.subarray(at, at + pieceBytes)));
  entries.push(...reader.end());
  return { entries, reader };
}

const m3u: FuzzTarget = {
  name: "m3u",
  corpus: () => [...LISTS.map(encodeUtf8), latin1Bytes('#EXTM3U\n#EXTINF:-1 a="\xe9",\x80\nhttp://h/\xe9\n')],
  words: [
    '"',
    '="',
    "',",
    "#EXTINF:-1",
    "#EXTM3U",
    "\ufeff",
    "\r",
    "\n",
    "#EXTGRP:",
    "tvg-id=",
    ",",
    "|a=b",
    "\0",
  ].map(encodeUtf8),
  extremes: () => [
    ...[
      'a="x,',
      'a="',
      'a=" ',
      "a='b ",
      "a=",
      '"',
      '" ',
      "a b ",
      ",",
      'x="y"',
      'x="é" ',
      "a=b ,",
      ',a="',
    ].map((unit) => repeated(HEAD, unit)),
    ...[
      "\n",
      "\r",
      "/\n",
      "#\n",
      "#EXTINF:\n",
      "#EXTVLCOPT:a=b\n",
      "#EXTGRP:a\n",
      "http://h/|a=b&c=d\n",
      "é\n",
    ].map((unit) => repeated("#EXTM3U\n", unit)),
    repeated("#EXTM3U ", "url-tvg=http://a,http://"),
  ],
  run(bytes) {
    const whole = read(bytes, 65_536);
    for (const { url, title, options, attributes } of whole.entries) {
      assert(url.length <= 16 * 1024 && title.length <= 1000, "bounded texts");
      assert(options.length <= 32 && attributes.size <= 128, "bounded lists");
      assert(!/[\r\n]/.test(url + title), "one line");
    }
    if (bytes.length > 4096) return whole.reader; // Entries are streamed; the program does not keep all of them.
    const inPieces = read(bytes, 7);
    assert(inPieces.entries.length === whole.entries.length, "pieces make no difference");
    assert(JSON.stringify(inPieces.entries) === JSON.stringify(whole.entries), "pieces change nothing");
    if (whole.reader.kind === "hls") return whole.reader;
    const written = m3uHeader() + whole.entries.map((entry) => m3uEntry(entry)).join("");
    const back = read(encodeUtf8(written), 65_536);
    assert(back.entries.length === whole.entries.length, "each entry is read back");
    return whole.reader;
  },
};

const MANIFESTS = [
  '#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0xff\n#EXT-X-MAP:URI="i",BYTERANGE="1@2"\n#EXT-X-PROGRAM-DATE-TIME:2026-02-19T14:54:23.031+08:00\n#EXTINF:6,t\n#EXT-X-BYTERANGE:10@0\na.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:6,\n#EXT-X-BYTERANGE:10\na.ts\n#EXT-X-ENDLIST\n',
  '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",URI="u"\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="a,b",RESOLUTION=1x2,AUDIO="a"\nv.m3u8\n',
];

const hlsPlaylist: FuzzTarget = {
  name: "hls-playlist",
  corpus: () => MANIFESTS.map(encodeUtf8),
  words: ["#EXTINF:", "#EXT-X-", "\n", '"', "=", ",", "@", "0x", "999999999999999", "1e9", "-1", "\r"].map(
    latin1Bytes,
  ),
  extremes: () => [
    ...["#EXTINF:1,\na\n", "#EXT-X-GAP\n", "\n", "#\n", "#EXT-X-KEY:METHOD=NONE\n"].map((unit) =>
      repeated("#EXTM3U\n#EXT-X-TARGETDURATION:6\n", unit),
    ),
    ...["A=", 'A="', "A ", " ", ",", 'A="b",', "A=b "].map((unit) =>
      repeated("#EXTM3U\n#EXT-X-STREAM-INF:", unit),
    ),
    repeated("#EXTM3U\n", "#EXT-X-STREAM-INF:\nv\n"),
    repeated("#EXTM3U", " \n"),
    repeated("#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:", "1"),
  ],
  run(bytes) {
    const parsed = parseHlsPlaylist(decodeUtf8(bytes));
    if (parsed.kind === "master") assert(parsed.variants.length > 0, "a variant");
    else {
      assert(parsed.targetSeconds > 0, "a target");
      for (const [i, { number, durationSeconds, range }] of parsed.segments.entries()) {
        assert(number === parsed.firstNumber + i, "numbers in order");
        assert(durationSeconds >= 0 && durationSeconds <= 86_400, "a length");
        assert(!range || range.end >= range.start, "a range");
      }
    }
    return parsed;
  },
};

const LINKS = [
  ID,
  `acestream://${ID}`,
  `sluice:?infohash=${ID}&index=2`,
  `acestream:%3Furl=http%3A%2F%2Fh%2Fa.torrent`,
  `acestream:?magnet=magnet:?xt=urn:btih:${ID}&dn=a&tr=b`,
  `magnet:?xt=urn:btih:${ID}&xt=urn:btmh:12`,
  `http://127.0.0.1:6878/ace/getstream?id=${ID}&_idx=1`,
  `https://h/pid/${ID}/stream.mp4`,
  "http://[2001:db8::1]:80/a b?c#d",
];

const link: FuzzTarget = {
  name: "link",
  corpus: () => LINKS.map(encodeUtf8),
  words: [
    "acestream:",
    "sluice:?url=",
    "magnet:?",
    "%3A",
    "%",
    "&amp;",
    "id=",
    "url=",
    "//",
    "?",
    "@",
    "\\",
    "\0",
  ].map(latin1Bytes),
  extremes: () =>
    ["&", "&a=", "&xt=", "%", "&amp;", "sluice:?url=", "&index=1", "/", "é"].map((unit) =>
      repeated("sluice:?", unit),
    ),
  run(bytes) {
    const text = decodeUtf8(bytes);
    const found = parseLink(text);
    if (found?.kind === "url") {
      assert(/^https?:\/\//.test(found.url), "http or https");
      assert(parseHttpUrl(found.url)?.href === found.url, "in canonical form");
    } else if (found?.kind === "content_id") assert(/^[0-9a-f]{40}$/.test(found.contentId), "a content id");
    else if (found?.infohash !== undefined) assert(/^[0-9a-f]{40}$/.test(found.infohash), "an infohash");
    return found;
  },
};

export const targets: FuzzTarget[] = [m3u, hlsPlaylist, link];
