import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Idioms that readers have to decode, each with what to write instead. A line that contains `prose:allow` may use one. */
const IDIOMS: readonly { readonly pattern: RegExp; readonly use: string }[] = [
  {
    pattern: /(?<![`/])\b(nobody|somebody|whoever)\b(?!`)/i,
    use: "name the actor: no peer, a client, the caller",
  },
  { pattern: /\bwhere (there|none|nothing) (is|are|was|were|has|have|can|does|do)\b/i, use: "if" },
  { pattern: /\bwhere (it|they) (has|have|can|does|do|may)\b/i, use: "if" },
  {
    pattern: /\b(is|are|was|were|been) (told|said)\b|\btells? (of|that|who)\b|\bunless said\b/i,
    use: "reported, announced, shown, known",
  },
  { pattern: /\b(is|are|for) so (long|many|much)\b(?! (as|that))/i, use: "the limit itself" },
  {
    pattern: /(?:^|[.:;(] )(?:Who|Of (?:which|these|those)) \w/,
    use: "a sentence that starts with its subject",
  },
  { pattern: /\b(good for nothing|goodbyes|hearsay|in vain)\b/i, use: "the standard term" },
];

const ALLOWED = /prose:allow/;
/** This file names the idioms. */
const SELF = "tests/prose.test.ts";

test("prose: comments, texts and docs avoid idioms that need a second reading", () => {
  const found = [...textLines()].flatMap(({ place, text }) =>
    ALLOWED.test(text)
      ? []
      : IDIOMS.filter(({ pattern }) => pattern.test(text)).map(
          ({ use }) => `${place}: ${text.slice(0, 100)} (write: ${use})`,
        ),
  );
  assert.deepEqual(found, []);
});

test("prose: the patterns find the idioms they are for", () => {
  const samples = ["nobody waits", "used where there is none", "the peer is told", "is so long", "in vain"];
  for (const sample of samples)
    assert.ok(
      IDIOMS.some(({ pattern }) => pattern.test(sample)),
      sample,
    );
});

/** Every line of prose: all lines of Markdown and HTML, and the comments and strings of several words in code. */
function* textLines(): Generator<{ readonly place: string; readonly text: string }> {
  for (const path of files()) {
    const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
    for (const [i, line] of lines.entries()) {
      const text = /\.(md|html)$/.test(path) ? line : proseOf(line);
      if (text) yield { place: `${path}:${i + 1}`, text: text.trim() };
    }
  }
}

/** The comment and the string literals of several words in a line of code. */
function proseOf(line: string): string {
  const comment = /(?:^|\s)\/\/ (.*)|^\s*(?:\/\*\*?|\*)(.*)/.exec(line);
  const strings = [...line.matchAll(/(["`])((?:(?!\1).)* (?:(?!\1).)* (?:(?!\1).)*)\1/g)];
  return [comment?.[1] ?? comment?.[2] ?? "", ...strings.map(([, , text]) => text)].join(" ");
}

function files(): string[] {
  const below = (folder: string) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(ts|js|md|html)$/.test(entry.name))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"))
      .filter((path) => !/node_modules|\/fixtures\//.test(path) && path !== SELF);
  return ["src", "routes", "tests", "docs", "examples"].flatMap(below).concat("README.md", "CONTRIBUTING.md");
}
