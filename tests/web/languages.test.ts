import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { type AnyNode, parse } from "acorn";
import { transformSync } from "esbuild";
import { t, useCatalogue } from "../../src/web/page/parts/text.js";

type Catalogue = Record<string, string | Record<string, string>>;

const PAGE = new URL("../../src/web/page/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, PAGE), "utf8");
const names = readdirSync(PAGE, { recursive: true, encoding: "utf8" }).map((name) =>
  name.replaceAll("\\", "/"),
);
const catalogueOf = (language: string): Catalogue => JSON.parse(read(`languages/${language}.json`));

/** The first arguments of all calls of `t` in a module; undefined for one that is not a literal. */
function translatedIn(script: string): (string | undefined)[] {
  const found: (string | undefined)[] = [];
  const visit = (node: AnyNode) => {
    if (node.type === "CallExpression" && node.callee.type === "Identifier" && node.callee.name === "t") {
      const [first] = node.arguments;
      found.push(first?.type === "Literal" && typeof first.value === "string" ? first.value : undefined);
    }
    for (const child of Object.values(node).flat())
      if (child !== null && typeof child === "object" && "type" in child) visit(child);
  };
  visit(parse(script, { ecmaVersion: "latest", sourceType: "module" }));
  return found;
}

/** The texts and labels of the HTML that contain a word. */
function textsOf(html: string): string[] {
  const body = html.replace(/[\s\S]*<body>/, "").replaceAll(/<!--[\s\S]*?-->/g, "");
  const labels = [...body.matchAll(/(?:title|aria-label|placeholder)="([^"]*)"/g)].map(([, label]) => label!);
  const texts = body.split(/<[^>]*>/).map((text) => text.trim().replaceAll(/\s+/g, " "));
  return [...labels, ...texts].filter(
    (text) => /\p{L}{2}/u.test(text) && !/^(?:Sluice|mpv LINK|--host [\d.]+|magnet:.*)$/.test(text),
  );
}

const modules = names.filter((name) => /\.[jt]s$/.test(name) && !name.startsWith("languages/"));
const scriptOf = (name: string) =>
  name.endsWith(".ts") ? transformSync(read(name), { loader: "ts" }).code : read(name);
const calls = modules.flatMap((name) => translatedIn(scriptOf(name)).map((text) => ({ name, text })));
const documents = ["shell/index.html", "viewer/index.html"].map(read);
const wanted = new Set([...calls.flatMap(({ text }) => text ?? []), ...documents.flatMap(textsOf)]);
const placeholdersOf = (text: string) => [...new Set(text.match(/\{\w+\}/g))].sort().join();

test("t: is called with literals", () => {
  // `text.js` itself translates the texts of the HTML.
  const other = calls.filter(({ name, text }) => text === undefined && name !== "parts/text.js");
  assert.deepEqual(other, []);
  assert.ok(wanted.size > 100, String(wanted.size));
});

for (const language of ["de", "es", "pt", "ru", "zh"])
  test(`languages: ${language} has every text of the page with the same placeholders, and no other`, () => {
    const catalogue = catalogueOf(language);
    assert.deepEqual(
      [...wanted].filter((text) => !(text in catalogue)),
      [],
    );
    assert.deepEqual(
      Object.keys(catalogue).filter((text) => !wanted.has(text)),
      [],
    );
    // A form for one thing may do without the number.
    for (const [english, entry] of Object.entries(catalogue))
      for (const [category, text] of Object.entries(typeof entry === "string" ? { other: entry } : entry))
        assert.ok(
          placeholdersOf(text) === placeholdersOf(english) || (category !== "other" && text !== ""),
          `${english}: ${text}`,
        );
  });

test("languages: a text with a count has exactly the plural forms of its language", () => {
  for (const language of ["en", "de", "es", "pt", "ru", "zh"]) {
    const catalogue = catalogueOf(language);
    const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted();
    for (const text of wanted) {
      const entry = catalogue[text];
      if (!text.includes("{count}")) assert.notEqual(typeof entry, "object", text);
      else assert.deepEqual(Object.keys(entry ?? {}).sort(), categories, `${language}: ${text}`);
    }
  }
});

test("t: formats numbers and chooses the plural form", () => {
  useCatalogue("de", {
    "{count} items": { one: "{count} Eintrag", other: "{count} Einträge" },
    "Hello {name}": "Hallo {name}",
  });
  assert.equal(t("{count} items", { count: 1 }), "1 Eintrag");
  assert.equal(t("{count} items", { count: 20_000 }), "20.000 Einträge");
  assert.equal(t("Hello {name}", { name: "<b>" }), "Hallo <b>");
  assert.equal(t("Unknown"), "Unknown");
  useCatalogue("en", {});
});
