import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { type M3uEntry, M3uReader } from "../../src/media/m3u.ts";

/** Reads a list that comes in pieces of `pieceBytes`. */
function read(list: string | Uint8Array, pieceBytes = 65_536) {
  const bytes = typeof list === "string" ? encodeUtf8(list) : list;
  const reader = new M3uReader();
  const entries: M3uEntry[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    entries.push(...reader.push(bytes.slice(at, at + pieceBytes)));
  entries.push(...reader.end());
  return { entries, reader };
}

const only = (list: string | Uint8Array) => {
  const { entries } = read(list);
  assert.equal(entries.length, 1);
  return entries[0]!;
};

/** The attributes and the title of one `#EXTINF`. */
const info = (text: string) => {
  const { attributes, title } = only(`#EXTM3U\n#EXTINF:${text}\nhttp://h/1\n`);
  return [Object.fromEntries(attributes), title];
};

const LIST = `#EXTM3U url-tvg="http://epg.example/a.xml.gz,https://epg.example/b.xml" x-tvg-url="http://c.example/" tvg-shift="+1"
#EXTINF:-1 tvg-id="one.example" tvg-name="One" tvg-logo="http://h/l.png" group-title="News",One, the first
http://h/one.m3u8

# a remark
#EXTGRP:Sport
#EXTINF:0 radio="true" catchup="append" catchup-source="?utc={utc}&lutc={lutc}",Two
#EXTVLCOPT:http-user-agent=Agent/1.0 (x=y)
#KODIPROP:inputstream=inputstream.adaptive
acestream://94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209
#EXTINF:123.5,Three
#EXTGRP:Films
magnet:?xt=urn:btih:de2fb17b7a45e455815ca4894197bf45e75ee01f&dn=a|b
http://h/four.ts|User-Agent=Agent&Referer=http%3A//r/
#EXTINF:-1 acestream-autosearch="1" group-title="",Five
http://127.0.0.1:6878/ace/getstream?id=94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209
`;

test("M3uReader: titles, URLs, lengths, groups, attributes, options, lines and the header of a whole list", () => {
  const { entries, reader } = read(LIST);
  assert.equal(reader.kind, "list");
  assert.equal(reader.skipped, 0);
  assert.equal(reader.header.attributes.get("tvg-shift"), "+1");
  assert.deepEqual(reader.header.guides, [
    "http://epg.example/a.xml.gz",
    "https://epg.example/b.xml",
    "http://c.example/",
  ]);
  assert.deepEqual(
    entries.map(({ title, durationSeconds, group, line }) => [title, durationSeconds, group, line]),
    [
      ["One, the first", undefined, "News", 3],
      ["Two", undefined, "Sport", 10],
      ["Three", 123.5, "Films", 13],
      ["", undefined, "Sport", 14],
      ["Five", undefined, "Sport", 16],
    ],
  );
  assert.equal(entries[0]!.attributes.get("tvg-logo"), "http://h/l.png");
  assert.equal(entries[1]!.attributes.get("catchup-source"), "?utc={utc}&lutc={lutc}");
  assert.deepEqual(entries[1]!.options, [
    ["http-user-agent", "Agent/1.0 (x=y)"],
    ["inputstream", "inputstream.adaptive"],
  ]);
  assert.match(entries[2]!.url, /dn=a\|b$/);
  assert.deepEqual(
    [entries[3]!.url, entries[3]!.options],
    [
      "http://h/four.ts",
      [
        ["User-Agent", "Agent"],
        ["Referer", "http%3A//r/"],
      ],
    ],
  );
  assert.equal(entries[4]!.attributes.get("acestream-autosearch"), "1");
});

test("M3uReader push: where the pieces end makes no difference, nor does the line end", () => {
  const { entries } = read(LIST);
  for (const pieceBytes of [1, 2, 3, 7, 64]) assert.deepEqual(read(LIST, pieceBytes).entries, entries);
  for (const lineEnd of ["\r\n", "\r"]) {
    const list = LIST.replaceAll("\n", lineEnd);
    for (const pieceBytes of [1, 5, 65_536]) assert.deepEqual(read(list, pieceBytes).entries, entries);
  }
});

test("M3uReader: the last line needs no end", () => {
  assert.equal(only("#EXTM3U\n#EXTINF:-1,A\nhttp://h/a").url, "http://h/a");
});

test("M3uReader: byte order marks are left out, at the beginning and where lists were joined", () => {
  for (const pieceBytes of [1, 2, 1000]) {
    const { entries } = read(
      "\ufeff#EXTM3U\n#EXTINF:-1,A\nhttp://h/a\n\ufeff#EXTM3U\nhttp://h/b\n",
      pieceBytes,
    );
    assert.deepEqual(
      entries.map(({ url }) => url),
      ["http://h/a", "http://h/b"],
    );
  }
});

test("M3uReader: each line is UTF-8, or else Windows-1252", () => {
  const utf8 = encodeUtf8('#EXTM3U\n#EXTINF:-1 group-title="Фильмы",Рен ТВ 📺 \ufffd\nhttp://h/1\n');
  const latin = latin1Bytes('#EXTINF:-1 group-title="S\xe9ries",\x80 caf\xe9 \x93x\x94\nhttp://h/2\n');
  const { entries } = read(Uint8Array.from([...utf8, ...latin, ...utf8]), 9);
  assert.deepEqual(
    entries.map(({ title, group }) => [title, group]),
    [
      ["Рен ТВ 📺 \ufffd", "Фильмы"],
      ["€ café “x”", "Séries"],
      ["Рен ТВ 📺 \ufffd", "Фильмы"],
    ],
  );
});

test("M3uReader #EXTINF: attributes as people and programs write them", () => {
  const cases: [string, Record<string, string>, string][] = [
    [`-1 a="1" b='2 x' c=3,T`, { a: "1", b: "2 x", c: "3" }, "T"],
    [`-1 A-B="1"c.d="2",T`, { "a-b": "1", "c.d": "2" }, "T"],
    [`-1 group-title="News, Sport" x="a,b",T, u`, { "group-title": "News, Sport", x: "a,b" }, "T, u"],
    [`-1 tvg-name="The "Best" Show" x="1",T`, { "tvg-name": `The "Best" Show`, x: "1" }, "T"],
    [
      `-1 tvg-logo="http://l/x.png group-title="News",T`,
      { "tvg-logo": "http://l/x.png", "group-title": "News" },
      "T",
    ],
    [`-1 group-title="News,T, u`, { "group-title": "News" }, "T, u"],
    [`-1 group-title=Sport News tvg-shift=-2,T`, { "group-title": "Sport News", "tvg-shift": "-2" }, "T"],
    [`-1 x= y="1",T`, { x: "", y: "1" }, "T"],
    [`-1 x= "1",T`, { x: "1" }, "T"],
    [`-1,tvg-id="a" x="b",T`, { "tvg-id": "a", x: "b" }, "T"],
    [`-1 tvg-id="a" No comma here`, { "tvg-id": "a" }, "No comma here"],
    [`-1 tvg-id="a" odd words, T`, { "tvg-id": "a" }, "T"],
    [`-1 tvg-name="From the name",`, { "tvg-name": "From the name" }, "From the name"],
    [`-1 a="1" a="2",T`, { a: "1" }, "T"],
    [` -1 , T `, {}, "T"],
    [`Only words`, {}, "Only words"],
    [`-1 x="it's" y='say "hi"',T "quoted"`, { x: "it's", y: 'say "hi"' }, 'T "quoted"'],
  ];
  for (const [text, attributes, title] of cases) assert.deepEqual(info(text), [attributes, title], text);
});

test("M3uReader #EXTIMG, #EXTALBUMARTURL: a logo, where the entry has none", () => {
  assert.equal(
    only("#EXTM3U\n#EXTINF:-1,A\n#EXTIMG:http://l/1\nhttp://h/").attributes.get("tvg-logo"),
    "http://l/1",
  );
  const own = only('#EXTM3U\n#EXTINF:-1 tvg-logo="o",A\n#EXTALBUMARTURL:http://l/1\nhttp://h/');
  assert.equal(own.attributes.get("tvg-logo"), "o");
});

test("M3uReader: an #EXTINF without URL is passed over, and counted", () => {
  const { entries, reader } = read("#EXTM3U\n#EXTINF:-1,A\n#EXTINF:-1,B\nhttp://h/b\n#EXTINF:-1,C\n");
  assert.deepEqual(
    entries.map(({ title }) => title),
    ["B"],
  );
  assert.equal(reader.skipped, 2);
});

test("M3uReader: links alone are a list, text alone is none", () => {
  const hash = "94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209";
  const { entries } = read(`# mine\n${hash}\nsluice:?infohash=${hash}\nrtmp://h/x\nrelative/path.ts\n`);
  assert.equal(entries.length, 4);
  for (const text of [
    "404 page not found",
    "Error: token expired",
    "hello\nhttp://h/",
    "# only a remark",
    "",
    " \n",
  ])
    assert.throws(() => read(text), { name: "DecodeError", format: "playlist" }, text);
  assert.deepEqual(read("#EXTM3U\n").entries, []);
});

test("M3uReader: what is no playlist is refused by its first bytes, and named", () => {
  const cases: [string | Uint8Array, RegExp][] = [
    ["<!DOCTYPE html><html><body>login</body></html>", /a web page came/],
    ["\ufeff\n\n  <html>", /a web page came/],
    ['<?xml version="1.0"?><tv>', /XML came/],
    ['{"error":"expired"}', /JSON came/],
    ["[]", /JSON came/],
    ["[playlist]\nFile1=http://h/", /PLS/],
    ["d8:announce3:abc4:infod", /transport file/],
    [latin1Bytes("\x1f\x8b\x08\0\0\0"), /compressed/],
    [latin1Bytes("\xff\xfe#\0E\0X\0T\0"), /UTF-16/],
    [latin1Bytes("%PDF-1.7"), /binary/],
    [latin1Bytes("\0\0\0\x18ftypisom"), /binary/],
    [latin1Bytes("#EXTM3U\n#EXTINF:-1,A\nhttp://h/\0"), /binary/],
  ];
  for (const [body, message] of cases)
    for (const pieceBytes of [1, 1000])
      assert.throws(() => read(body, pieceBytes), { name: "DecodeError", message }, String(message));
  // The first piece is enough: nobody has to fetch the rest.
  assert.throws(() => new M3uReader().push(encodeUtf8("<html><head><title>Login</title>")), {
    name: "DecodeError",
  });
});

test("M3uReader kind: HLS manifests are told apart, lists that borrow tags of HLS are lists", () => {
  const media = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n";
  const master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n";
  for (const text of [media, master]) {
    const { entries, reader } = read(text);
    assert.deepEqual([reader.kind, entries.length], ["hls", 0]);
  }
  const list = read(
    '#EXTM3U\n#EXT-X-SESSION-DATA:DATA-ID="com.x"\n#EXTINF:-1,A\nhttp://h/a\n#EXT-X-TARGETDURATION:6\n',
  );
  assert.deepEqual([list.reader.kind, list.entries.length], ["list", 1]);
});

test("M3uReader limits: lines, URLs, values, titles, attributes, options, entries", () => {
  const long = "x".repeat(70_000);
  const { entries, reader } = read(
    `#EXTM3U\n#EXTINF:-1 tvg-logo="data:${long}",A\nhttp://h/a\n#EXTINF:-1,B\nhttp://h/${long}\n#EXTINF:-1,C\nhttp://h/${long.slice(0, 20_000)}\n#EXTINF:-1 tvg-logo="${long.slice(0, 9000)}" a="1",${"é".repeat(5000)}\nhttp://h/d`,
    1000,
  );
  assert.equal(reader.skipped, 3 + 1); // The line of A, that of B's URL, B itself, C.
  assert.deepEqual(
    entries.map(({ url }) => url),
    ["http://h/a", "http://h/d"],
  );
  assert.deepEqual([...entries[1]!.attributes], [["a", "1"]]);
  assert.equal(entries[1]!.title, "é".repeat(1000));
  const many = Array.from({ length: 500 }, (_, i) => `a${i}="1"`).join(" ");
  const options = "#EXTVLCOPT:a=b\n".repeat(500);
  const crowded = only(`#EXTM3U\n#EXTINF:-1 ${many},T\n${options}http://h/`);
  assert.equal(crowded.attributes.size, 64);
  assert.equal(crowded.options.length, 32);
  const few = new M3uReader({ maxEntries: 2 });
  assert.throws(() => few.push(encodeUtf8("#EXTM3U\n/a\n/b\n/c\n")), /more than 2 entries/);
});

test("M3uReader: texts are without control characters", () => {
  const entry = only('#EXTM3U\n#EXTINF:-1 x="a\x07b\u2028c",A\x1b[0m\u0085B\nhttp://h/\n');
  assert.deepEqual([entry.attributes.get("x"), entry.title], ["a b c", "A [0m B"]);
});
