import { encodeUtf8 } from "../../../src/base/utf8.ts";
import { XmltvReader } from "../../../src/library/guide/xmltv-reader.ts";
import type { FuzzTarget } from "../contract.ts";

const GUIDE = `<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv><channel id="one.uk"><display-name lang="en">One &amp; All</display-name><icon src="http://i/one.png"/></channel>
<programme start="20261122200000 +0100" stop="20261122210000 +0100" channel="one.uk"><title>News</title>
<sub-title>Evening</sub-title><desc>Tom & Jerry, <![CDATA[<b>live</b>]]></desc><category>News</category>
<icon src="http://i/news.png"/><episode-num system="onscreen">S1E2</episode-num></programme>
<programme start="202611222000" channel="two"><title>Open end</title></programme></tv>`;
const WORDS = [
  "<tv>",
  "</tv>",
  "<programme ",
  "</programme>",
  "<title>",
  "<![CDATA[",
  "]]>",
  "<!--",
  "&#x10ffff;",
];
/** The longest texts that the guide stores. */
const MAX_TEXT = 2_000;

const repeated = (text: string) => encodeUtf8(text.repeat(Math.floor(65_000 / text.length)));
const inGuide = (text: string) => encodeUtf8(`<tv>${text.repeat(Math.floor(64_000 / text.length))}`);

/** A programme guide (XMLTV) in two parts, as it comes from a web server. */
export const target: FuzzTarget = {
  name: "xmltv",
  corpus: () => [encodeUtf8(GUIDE), encodeUtf8("<html><tv>"), encodeUtf8("<tv/>")],
  words: WORDS.map(encodeUtf8),
  extremes: () => [
    repeated("<tv>"),
    repeated("<!DOCTYPE a [<!ENTITY b 'c'>]>"),
    repeated("<tv a='&lt;"),
    inGuide("<programme start='202611222000' channel='a'><title>b</title></programme>"),
    inGuide("<channel id='a'><display-name>b"),
    inGuide("&amp;"),
    inGuide("<a b='c' "),
    inGuide("<![CDATA["),
    inGuide("<!--"),
  ],
  run(bytes) {
    const found: unknown[] = [];
    const checked = (entry: object) => {
      for (const value of Object.values(entry).flat())
        if (typeof value === "string" && value.length > MAX_TEXT) throw new Error("a text is not cut");
      found.push(entry);
    };
    const reader = new XmltvReader({ channel: checked, programme: checked });
    const text = new TextDecoder().decode(bytes);
    reader.push(text.slice(0, text.length / 2));
    reader.push(text.slice(text.length / 2));
    reader.end();
    return found;
  },
};
