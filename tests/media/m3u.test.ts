import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { encodeUtf8, isUtf8 } from "../../src/base/utf8.ts";
import { type M3uEntry, M3uReader } from "../../src/media/m3u.ts";
import { encodeCharset } from "./encode-charset.ts";

/** Reads a playlist in chunks of `pieceBytes`. */
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

/** Returns the attributes and the title of an `#EXTINF` line. */
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

test("M3uReader: titles, URLs, durations, groups, attributes, options, line numbers and the header of a whole playlist", () => {
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
        ["Referer", "http://r/"],
      ],
    ],
  );
  assert.equal(entries[4]!.attributes.get("acestream-autosearch"), "1");
});

test("M3uReader push: chunks and line ends do not change the result", () => {
  const { entries } = read(LIST);
  for (const pieceBytes of [1, 2, 3, 7, 64]) assert.deepEqual(read(LIST, pieceBytes).entries, entries);
  for (const lineEnd of ["\r\n", "\r"]) {
    const list = LIST.replaceAll("\n", lineEnd);
    for (const pieceBytes of [1, 5, 65_536]) assert.deepEqual(read(list, pieceBytes).entries, entries);
  }
});

test("M3uReader: the last line needs no line end", () => {
  assert.equal(only("#EXTM3U\n#EXTINF:-1,A\nhttp://h/a").url, "http://h/a");
});

test("M3uReader: removes byte order marks at the start and between joined playlists", () => {
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

test("M3uReader: decodes each line as UTF-8, else as Windows-1252", () => {
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

test("M3uReader: detects another character set, even if the first lines and most bytes are ASCII", () => {
  const head = `#EXTM3U\n#EXTINF:-1,BBC One\nhttp://h/0\n`;
  for (const charset of ["windows-1251", "koi8-r", "ibm866"]) {
    const names = ["Первый канал", "Россия 1", "НТВ", "Домашний", "Матч! Футбол 1"];
    const text = names
      .map((name, i) => `#EXTINF:-1 group-title="Общие",${name}\nhttp://h/${i + 1}\n`)
      .join("");
    for (const repeats of [1, 200]) {
      const { entries } = read(encodeCharset(head + text.repeat(repeats), charset), repeats === 1 ? 7 : 4096);
      assert.deepEqual(entries[0]!.title, "BBC One");
      assert.deepEqual(
        entries.slice(1).map(({ title, group }) => [title, group]),
        Array.from({ length: repeats }, () => names.map((name) => [name, "Общие"])).flat(),
      );
    }
  }
});

test("M3uReader: lines of another character set that are UTF-8 by chance are decoded like the others", () => {
  // In windows-1251 this text is also well-formed UTF-8.
  const chance = "Рё".repeat(2);
  const names = [...Array.from({ length: 30 }, () => "Первый канал"), chance];
  const text = names.map((name) => `#EXTINF:-1,${name}\nhttp://h/1\n`).join("");
  assert.ok(isUtf8(encodeCharset(chance, "windows-1251")));
  const { entries } = read(encodeCharset(`#EXTM3U\n${text}`, "windows-1251"));
  assert.deepEqual(
    entries.map(({ title }) => title),
    names,
  );
});

test("M3uReader: reads UTF-16 with and without a byte order mark, in chunks of any size", () => {
  const units = (text: string, isBig: boolean) =>
    Uint8Array.from(
      text.split("").flatMap((unit) => {
        const code = unit.charCodeAt(0);
        return isBig ? [code >> 8, code & 255] : [code & 255, code >> 8];
      }),
    );
  for (const isBig of [false, true])
    for (const mark of ["\ufeff", ""])
      for (const pieceBytes of [1, 2, 3, 1000]) {
        const { entries } = read(
          units(`${mark}#EXTM3U\r\n#EXTINF:-1,Рен ТВ 📺\r\nhttp://h/1\r\n`, isBig),
          pieceBytes,
        );
        assert.deepEqual(
          entries.map(({ title, url }) => [title, url]),
          [["Рен ТВ 📺", "http://h/1"]],
        );
      }
});

test("M3uReader #EXTHTTP: the headers become options", () => {
  const options = (tag: string) => only(`#EXTM3U\n#EXTINF:-1,A\n#EXTHTTP:${tag}\nhttp://h/1\n`).options;
  assert.deepEqual(options('{"User-Agent":"Agent/1.0 (x=y)","cookie":"a=b","n":1}'), [
    ["User-Agent", "Agent/1.0 (x=y)"],
    ["cookie", "a=b"],
  ]);
  for (const bad of ["", "{", "null", "[1]", '"x"']) assert.deepEqual(options(bad), []);
});

test("M3uReader #EXTINF: tolerates common errors in attributes", () => {
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

test("M3uReader #EXTIMG, #EXTALBUMARTURL: set the logo of an entry without one", () => {
  assert.equal(
    only("#EXTM3U\n#EXTINF:-1,A\n#EXTIMG:http://l/1\nhttp://h/").attributes.get("tvg-logo"),
    "http://l/1",
  );
  const own = only('#EXTM3U\n#EXTINF:-1 tvg-logo="o",A\n#EXTALBUMARTURL:http://l/1\nhttp://h/');
  assert.equal(own.attributes.get("tvg-logo"), "o");
});

test("M3uReader: skips and counts an #EXTINF without URL", () => {
  const { entries, reader } = read("#EXTM3U\n#EXTINF:-1,A\n#EXTINF:-1,B\nhttp://h/b\n#EXTINF:-1,C\n");
  assert.deepEqual(
    entries.map(({ title }) => title),
    ["B"],
  );
  assert.equal(reader.skipped, 2);
});

test("M3uReader: accepts a list of links, rejects prose", () => {
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

test("M3uReader: rejects other formats by their first bytes and names them", () => {
  const cases: [string | Uint8Array, RegExp][] = [
    ["<!DOCTYPE html><html><body>login</body></html>", /a web page came/],
    ["\ufeff\n\n  <html>", /a web page came/],
    ['<?xml version="1.0"?><tv>', /XML came/],
    ['{"error":"expired"}', /JSON came/],
    ["[]", /JSON came/],
    ["[playlist]\nFile1=http://h/", /PLS/],
    ["d8:announce3:abc4:infod", /transport file/],
    [latin1Bytes("\x1f\x8b\x08\0\0\0"), /compressed/],
    [latin1Bytes("%PDF-1.7"), /binary/],
    [latin1Bytes("\0\0\0\x18ftypisom"), /binary/],
    [latin1Bytes("#EXTM3U\n#EXTINF:-1,A\nhttp://h/\0"), /binary/],
  ];
  for (const [body, message] of cases)
    for (const pieceBytes of [1, 1000])
      assert.throws(() => read(body, pieceBytes), { name: "DecodeError", message }, String(message));
  // The first chunk is enough, so the rest need not be fetched.
  assert.throws(() => new M3uReader().push(encodeUtf8("<html><head><title>Login</title>")), {
    name: "DecodeError",
  });
});

test("M3uReader kind: recognises HLS manifests, but not playlists with some HLS tags", () => {
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
  assert.equal(reader.skipped, 3 + 1); // The line of A, the line of B's URL, B itself, and C.
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

test("M3uReader: removes control characters", () => {
  const entry = only('#EXTM3U\n#EXTINF:-1 x="a\x07b\u2028c",A\x1b[0m\u0085B\nhttp://h/\n');
  assert.deepEqual([entry.attributes.get("x"), entry.title], ["a b c", "A [0m B"]);
});
