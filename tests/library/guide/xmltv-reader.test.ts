import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../../src/base/errors.ts";
import {
  type XmltvChannel,
  type XmltvProgramme,
  XmltvReader,
} from "../../../src/library/guide/xmltv-reader.ts";

/** Reads a guide in parts of `step` characters. */
function read(text: string, step = text.length) {
  const channels: XmltvChannel[] = [];
  const programmes: XmltvProgramme[] = [];
  const reader = new XmltvReader({
    channel: (channel) => channels.push(channel),
    programme: (programme) => programmes.push(programme),
  });
  for (let at = 0; at < text.length; at += step) reader.push(text.slice(at, at + step));
  reader.end();
  return { channels, programmes };
}

const GUIDE = `<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv generator-info-name="x">
 <channel id="one.uk"><display-name lang="en">One &amp; All</display-name><display-name>1</display-name>
  <icon src="http://i/one.png"/></channel>
 <programme start="20261122200000 +0100" stop="20261122210000 +0100" channel="one.uk">
  <title lang="en">News</title><title lang="de">Nachrichten</title><sub-title>Evening</sub-title>
  <desc>Tom & Jerry, <![CDATA[<b>live</b>]]></desc><category>News</category><category>Live</category>
  <icon src="http://i/news.png"/><episode-num system="onscreen">S1E2</episode-num>
  <credits><actor>A</actor></credits>
 </programme>
 <programme start="202611222000" channel="two"><title>Open end</title></programme>
</tv>`;

test("XmltvReader: channels and programmes, however the text is cut", () => {
  for (const step of [1, 7, 100, GUIDE.length]) {
    const { channels, programmes } = read(GUIDE, step);
    assert.deepEqual(channels, [{ id: "one.uk", names: ["One & All", "1"], icon: "http://i/one.png" }]);
    assert.deepEqual(programmes[0], {
      channel: "one.uk",
      start: Date.UTC(2026, 10, 22, 19) / 1000,
      stop: Date.UTC(2026, 10, 22, 20) / 1000,
      title: "News",
      subtitle: "Evening",
      description: "Tom & Jerry, <b>live</b>",
      categories: ["News", "Live"],
      icon: "http://i/news.png",
      episode: "S1E2",
    });
    assert.deepEqual([programmes[1]!.channel, programmes[1]!.stop], ["two", undefined]);
    assert.equal(programmes.length, 2);
  }
});

test("XmltvReader: skips programmes without a channel, a title, or a valid time", () => {
  const { programmes } = read(`<tv>
    <programme start="20261122200000" channel=""><title>a</title></programme>
    <programme start="20261122200000" channel="c"><title> </title></programme>
    <programme start="tomorrow" channel="c"><title>a</title></programme>
    <programme start="20261122200000" stop="20261122190000" channel="c"><title>a</title></programme>
    <programme start="20261122200000" channel="c"><title>good</title></programme></tv>`);
  assert.deepEqual(
    programmes.map(({ title }) => title),
    ["good"],
  );
});

test("XmltvReader: refuses what is no guide, truncated guides, and deep or wide elements", () => {
  const fails = (text: string, why: RegExp) =>
    assert.throws(
      () => read(text, 1000),
      (error) => error instanceof DecodeError && why.test(error.message),
    );
  fails("", /not a guide/);
  fails("<html><body></body></html>", /expected the element tv, got html/);
  fails("no markup at all", /not a guide/);
  fails(GUIDE.slice(0, -6), /truncated/);
  fails(GUIDE.slice(0, 300), /truncated/);
  fails(`<tv>${"<a>".repeat(100)}`, /nested too deeply/);
  fails(
    `<tv><a ${Array.from({ length: 100 }, (_, i) => `a${i}="1"`).join(" ")}/></tv>`,
    /too many attributes/,
  );
  fails(`<tv><a b="${"x".repeat(200_000)}"/></tv>`, /buffer/i);
});

test("XmltvReader: cuts long texts", () => {
  const long = "x".repeat(100_000);
  const { programmes } = read(
    `<tv><programme start="20261122200000" channel="c"><title>${long}</title><desc>${long}</desc></programme></tv>`,
  );
  assert.deepEqual([programmes[0]!.title.length, programmes[0]!.description.length], [300, 2000]);
});

test("XmltvReader: times with offsets, prefixes of times, and nonsense", () => {
  const startOf = (text: string) =>
    read(`<tv><programme start="${text}" channel="c"><title>t</title></programme></tv>`).programmes[0]?.start;
  assert.equal(startOf("20261122201530 +0130"), Date.UTC(2026, 10, 22, 18, 45, 30) / 1000);
  assert.equal(startOf("20261122201530 -05:00"), Date.UTC(2026, 10, 23, 1, 15, 30) / 1000);
  assert.equal(startOf("2026112220"), Date.UTC(2026, 10, 22, 20) / 1000);
  assert.equal(startOf("20261122200000 UTC"), Date.UTC(2026, 10, 22, 20) / 1000);
  for (const text of ["", "2026", "x", "99991122200000", "2026112220000000", "20261122200000 CEST"])
    assert.equal(startOf(text), undefined, text);
});
