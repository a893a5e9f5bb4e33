import assert from "node:assert/strict";
import { test } from "node:test";
import { channelName, foldText, sortKey } from "../../src/library/item-names.ts";

test("foldText: ignores case and accents; й and が stay separate letters", () => {
  assert.equal(foldText("MÚSICA Łódź Straße Ænima"), "musica lodz strasse aenima");
  assert.equal(foldText("Ёлка"), foldText("елка"));
  assert.notEqual(foldText("Май"), foldText("маи"));
  assert.equal(foldText("Й"), foldText("й"));
  assert.notEqual(foldText("が"), foldText("か"));
  assert.equal(foldText("한국"), "한국");
  assert.equal(foldText("İstanbul ISTANBUL ısı"), "istanbul istanbul isi");
});

test("sortKey: natural order, numbers by value", () => {
  const wanted = [
    "",
    "1 Kanal",
    "★ 2 Kanal",
    "Kanal 02a",
    "kanal 3",
    "Kanal 10",
    "KANAL 100",
    "Kanal 12345678901",
    "Kanal A",
    "Música 1",
    "musica 2",
    "Zoo",
    "Кино",
    "Май",
    "Ёлка 7",
  ];
  const keys = wanted.map((title) => sortKey(foldText(title)));
  const sorted = [...keys].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const at = (title: string) => sorted.indexOf(sortKey(foldText(title)));
  for (let i = 1; i < 13; i++)
    assert.ok(at(wanted[i - 1]!) < at(wanted[i]!), `${wanted[i - 1]} < ${wanted[i]}`);
  assert.ok(at("Ёлка 7") < at("Кино"), "ё sorts with е");
});

test("sortKey: agrees with a numeric collator on plain titles", () => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const titles = Array.from(
    { length: 400 },
    (_, i) => `${["Sport", "news", "Élan", "arte"][i % 4]} ${(i * 37) % 211} x${i % 7}`,
  );
  const byKey = titles.toSorted((a, b) => {
    const [keyA, keyB] = [sortKey(foldText(a)), sortKey(foldText(b))];
    return keyA < keyB ? -1 : keyA > keyB ? 1 : 0;
  });
  for (let i = 1; i < byKey.length; i++) assert.ok(collator.compare(byKey[i - 1]!, byKey[i]!) <= 0);
});

test("channelName: ignores quality, brackets and signs", () => {
  const same = ["BBC One", "bbc one HD", "BBC-One [1080p] (Backup)", "BBC ONE full hd", "Bbc.one.4K H265"];
  assert.deepEqual(new Set(same.map(channelName)), new Set(["bbcone"]));
  const others = [
    "BBC Two",
    "BBC One +1",
    "Canal",
    "Canal+",
    "Fox 1 2",
    "Fox 12",
    "Dune (1984)",
    "Dune (2021)",
  ];
  assert.equal(new Set(others.map(channelName)).size, others.length);
  assert.equal(channelName("[HD]"), "");
  assert.equal(channelName("(Первый канал)"), "первыйканал");
});
