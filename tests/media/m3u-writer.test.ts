import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { M3uReader } from "../../src/media/m3u.ts";
import { m3uEntry, m3uHeader } from "../../src/media/m3u-writer.ts";

function readBack(text: string) {
  const reader = new M3uReader();
  return { entries: [...reader.push(encodeUtf8(text)), ...reader.end()], header: reader.header };
}

test("m3uHeader, m3uEntry: the reader reads what was written", () => {
  const attributes = [
    ["tvg-id", "one.example"],
    ["tvg-logo", "http://l/1.png"],
    ["group-title", "Фильмы"],
  ] as const;
  const text =
    m3uHeader([["url-tvg", "http://e/1.xml,http://e/2.xml"]]) +
    m3uEntry({ durationSeconds: 90.4, attributes, title: "One, the first", url: "http://h/1" }) +
    m3uEntry({ durationSeconds: undefined, attributes: [], title: "", url: "acestream://x" });
  const { entries, header } = readBack(text);
  assert.deepEqual(header.guides, ["http://e/1.xml", "http://e/2.xml"]);
  assert.deepEqual([...entries[0]!.attributes], attributes);
  assert.deepEqual(
    entries.map(({ title, url, durationSeconds }) => [title, url, durationSeconds]),
    [
      ["One, the first", "http://h/1", 90],
      ["", "acestream://x", undefined],
    ],
  );
});

test("m3uEntry: hostile texts cannot leave their field", () => {
  const hostile = 'a", b="c\r\n#EXTINF:-1,x\u2028\0 | y';
  const text = m3uEntry({
    durationSeconds: undefined,
    attributes: [
      ["tvg name\n", hostile],
      ["tvg-logo", `http://l/${hostile}`],
      ["empty", " "],
    ],
    title: hostile,
    url: `http://h/${hostile}`,
  });
  assert.equal(text.split(/[\r\n\u2028]/).length, 3);
  const { entries } = readBack(`${m3uHeader()}${text}`);
  assert.equal(entries.length, 1);
  assert.deepEqual([...entries[0]!.attributes.keys()], ["tvg-name-", "tvg-logo"]);
  assert.deepEqual(entries[0]!.options, []);
  // Kodi takes the title after the last quote, VLC after the first comma.
  const line = text.split("\n")[0]!;
  const title = line.slice(line.indexOf(",") + 1);
  assert.equal(line.slice(line.lastIndexOf('"') + 2), title);
  assert.equal(entries[0]!.title, title);
  assert.equal(
    m3uEntry({ durationSeconds: 0, attributes: [], title: "T", url: "#x" }),
    "#EXTINF:1,T\n%23x\n",
  );
});
