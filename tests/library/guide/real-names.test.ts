import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ChannelMatcher } from "../../../src/library/guide/channel-matcher.ts";

const FILE = new URL("../../fixtures/channel-names.tsv", import.meta.url);

/** The lines of one kind, each as its columns after the first one. */
function linesOf(kind: "guide" | "item"): string[][] {
  const lines = readFileSync(FILE, "utf8").split("\n");
  return lines.filter((line) => line.startsWith(`${kind}\t`)).map((line) => line.split("\t").slice(1));
}

test("ChannelMatcher: of 500 real names, 98 % of the matches are right, and 90 % of the known channels are found", () => {
  const guides = new Map<string, { id: string; names: string[] }[]>();
  for (const [guide, id, ...names] of linesOf("guide"))
    guides.set(guide!, [...(guides.get(guide!) ?? []), { id: id!, names }]);
  const matchers = new Map(
    [...guides].map(([guide, channels]) => {
      // Players' lists have no ids of this guide.
      const keyed = channels.map(({ names }, i) => ({ key: `1/${i}`, id: `c${i}`, names, icon: "" }));
      return [guide, new ChannelMatcher(keyed)] as const;
    }),
  );
  const [wrong, missed]: [string[], string[]] = [[], []];
  let [right, known] = [0, 0];
  const items = linesOf("item");
  for (const [guide, title, id] of items as [string, string, string][]) {
    const match = matchers.get(guide)!.match({ title, tvgName: "", tvgId: "", countries: null });
    const found = match && guides.get(guide)![Number(match.channel.key.slice(2))]!;
    if (id !== "") known++;
    if (found !== undefined && found.id === id && id !== "") right++;
    // A channel without an id may be the right one.
    else if (found !== undefined && found.id !== "") wrong.push(`${title} -> ${found.names[0]}`);
    else if (id !== "") missed.push(title);
  }
  const figures = JSON.stringify({ known, right, wrong, missed });
  assert.equal(items.length, 500);
  assert.ok(known >= 400 && right / (right + wrong.length) >= 0.98, figures);
  assert.ok(right / known >= 0.9, figures);
});

test("ChannelMatcher: of one channel in several qualities the one that is written alike, of two languages none", () => {
  const names = ["News HD", "News", "Arte (Deutsch)", "Arte (Français)", "Sport HD", "Sport FHD"];
  const matcher = new ChannelMatcher(
    names.map((name, i) => ({ key: `1/${i}`, id: `c${i}`, names: [name], icon: "" })),
  );
  const match = (title: string) =>
    matcher.match({ title, tvgName: "", tvgId: "", countries: null })?.channel.names[0];
  assert.deepEqual(["News HD", "NEWS", "News 4K", "Arte", "Arte (Deutsch) HD", "Sport"].map(match), [
    "News HD",
    "News",
    "News HD",
    undefined,
    "Arte (Deutsch)",
    "Sport HD",
  ]);
});
