import assert from "node:assert/strict";
import { test } from "node:test";
import { ChannelMatcher } from "../../../src/library/guide/channel-matcher.ts";

/** Channels as public guides name them: `id: name, other name`. */
const CHANNELS = [
  "bbcone.uk: BBC One, BBC One London",
  "bbctwo.uk: BBC Two",
  "itv1.uk: ITV1, ITV 1 HD",
  "itv1plus1.uk: ITV1 +1",
  "channel4.uk: Channel 4",
  "skysportsmainevent.uk: Sky Sports Main Event",
  "skysports1.de: Sky Sport 1",
  "skysports2.de: Sky Sport 2",
  "daserste.de: Das Erste, ARD",
  "zdf.de: ZDF",
  "zdfneo.de: ZDFneo",
  "rtl.de: RTL, RTL Television",
  "rtl2.de: RTL ZWEI, RTL II",
  "tf1.fr: TF1",
  "france2.fr: France 2",
  "m6.fr: M6",
  "eurosport1.fr: Eurosport 1",
  "eurosport1.de: Eurosport 1",
  "la1.es: La 1",
  "antena3.es: Antena 3",
  "rai1.it: Rai 1",
  "canale5.it: Canale 5",
  "pervyi.ru: Первый канал",
  "rossia1.ru: Россия 1",
  "match.ru: Матч ТВ",
  "discovery.us: Discovery Channel",
  "discoveryscience.us: Discovery Science",
  "natgeo.us: National Geographic",
  "natgeowild.us: National Geographic Wild",
  "espn.us: ESPN",
  "espn2.us: ESPN2",
  "cnn.us: CNN International",
  "hbo.us: HBO",
  "hbo2.us: HBO 2",
];

const matcher = new ChannelMatcher(
  CHANNELS.map((line) => {
    const [id, names] = line.split(": ") as [string, string];
    return { key: id, id, names: names.split(", "), icon: "" };
  }),
);
const matchOf = (title: string, more: { tvgId?: string; tvgName?: string; countries?: string[] } = {}) =>
  matcher.match({ title, tvgId: "", tvgName: "", countries: null, ...more });

test("ChannelMatcher: an equal id comes before any name", () => {
  const match = matchOf("Something else", { tvgId: "ZDF.de" })!;
  assert.deepEqual([match.channel.id, match.reason], ["zdf.de", "id"]);
});

test("ChannelMatcher: names as lists write them find their channel", () => {
  const expected: Record<string, string> = {
    "BBC ONE HD": "bbcone.uk",
    "BBC 1": "bbcone.uk",
    "BBC 2 (1080p)": "bbctwo.uk",
    "Discovery (1080p) [backup]": "discovery.us",
    "UK: BBC One FHD": "bbcone.uk",
    "|UK| BBC TWO": "bbctwo.uk",
    "ITV 1": "itv1.uk",
    "ITV1 +1": "itv1plus1.uk",
    "Channel 4 (1080p)": "channel4.uk",
    "Das Erste HD": "daserste.de",
    ARD: "daserste.de",
    "DE: ZDF neo": "zdfneo.de",
    "RTL II": "rtl2.de",
    "FR | TF1 4K": "tf1.fr",
    "France 2 HD": "france2.fr",
    "[ES] La 1": "la1.es",
    "Antena 3 [HEVC]": "antena3.es",
    "RAI 1": "rai1.it",
    "Первый канал HD": "pervyi.ru",
    "Россия 1": "rossia1.ru",
    "МАТЧ ТВ": "match.ru",
    "ESPN 2": "espn2.us",
    "Discovery HD": "discovery.us",
    "National Geographic Wild HD": "natgeowild.us",
    "HBO 2 (SD)": "hbo2.us",
    "DE: Eurosport 1 HD": "eurosport1.de",
    "Sky Sports Main Event UHD": "skysportsmainevent.uk",
  };
  for (const [title, id] of Object.entries(expected)) assert.equal(matchOf(title)?.channel.id, id, title);
});

test("ChannelMatcher: another number, another part of the name, or an unknown country is no match", () => {
  const titles = [
    "Sky Sport 3",
    "ITV 2",
    "Eurosport 1",
    "Eurosport 2",
    "BBC Three",
    "Discovery Turbo",
    "National Geographic Kids",
    "HBO 3",
    "CNN Turk",
    "RTL Crime",
    "Camera 12",
    "",
    "HD",
    "1",
  ];
  for (const title of titles) assert.equal(matchOf(title)?.channel.id, undefined, title);
});

test("ChannelMatcher: the country of the item decides between equal names", () => {
  assert.equal(matchOf("Eurosport 1", { countries: ["fr"] })?.channel.id, "eurosport1.fr");
  assert.equal(matchOf("Eurosport 1", { tvgId: "unknown.de" })?.channel.id, "eurosport1.de");
});

test("ChannelMatcher.candidates: the most similar channels first, for the user", () => {
  const found = matcher.candidates(
    { title: "National Geographic Kids", tvgId: "", tvgName: "", countries: null },
    3,
  );
  assert.deepEqual(
    found
      .map(({ id }) => id)
      .slice(0, 2)
      .sort(),
    ["natgeo.us", "natgeowild.us"],
  );
});
