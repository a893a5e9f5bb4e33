import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import type { KeyValueChange, KeyValueStore } from "../../src/runtime/contract.ts";
import { readWebAssets } from "../../src/web/assets.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { keyValueSuite } from "./key-value-suite.ts";

const { after, before, describe } = await testsThatNeed("chromium");

const LAUNCH = {
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
};
/** The suite uses two values that JSON cannot represent. */
const UNDEFINED = "\u0001undefined";
const FUNCTION = "\u0001function";
const ERRORS = { RangeError, TypeError };

describe("the browser's store, in Chromium", { timeout: 120_000 }, () => {
  let server: Server;
  let browser: Browser;
  let page: Page;

  before(async () => {
    const assets = readWebAssets();
    server = createServer(({ url = "" }, response) => {
      const asset = assets[url];
      response.setHeader("Content-Type", asset?.type ?? "text/html");
      response.end(url === "/" ? "<!doctype html>" : asset?.text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    browser = await chromium.launch(LAUNCH);
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await page.evaluate(IN_PAGE);
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  keyValueSuite("indexeddb", async (folder) => remote(page, await call(page, "open", folder)));
});

/** Runs in the page: holds the stores and lists, and executes operations by name. */
const IN_PAGE = `
  const things = [];
  const kept = (thing) => things.push(thing) - 1;
  const revive = (key, value) =>
    value === ${JSON.stringify(UNDEFINED)} ? undefined : value === ${JSON.stringify(FUNCTION)} ? () => 1 : value;
  // JSON.parse drops values that the reviver makes undefined; this restores them in pairs.
  const pairs = (list) => list?.map(([key, value]) => [key, value]);
  const operations = {
    open: async (name) => kept(await (await import("/app/kv.js")).openKeyValueStore(name)),
    get: (id, key) => things[id].get(key),
    commit: (id, change) =>
      things[id].commit({ ...change, check: pairs(change.check), set: pairs(change.set) }),
    close: (id) => things[id].close(),
    list: (id, prefix) => kept(things[id].list(prefix)[Symbol.asyncIterator]()),
    next: (id) => things[id].next(),
  };
  window.call = async (text) => {
    const { operation, args } = JSON.parse(text, revive);
    try {
      return JSON.stringify({ result: await operations[operation](...args) });
    } catch (error) {
      return JSON.stringify({ error: error.message, name: error.name });
    }
  };
`;

/** A store that executes every operation in the page. */
function remote(page: Page, id: unknown): KeyValueStore {
  return {
    get: (key) => call(page, "get", id, key),
    async *list(prefix) {
      const listing = await call(page, "list", id, prefix);
      for (;;) {
        const { done, value } = (await call(page, "next", listing)) as IteratorResult<[string, unknown]>;
        if (done === true) return;
        yield value;
      }
    },
    commit: (change: KeyValueChange) => call(page, "commit", id, change) as Promise<boolean>,
    close: () => call(page, "close", id) as Promise<void>,
  };
}

async function call(page: Page, operation: string, ...args: unknown[]): Promise<unknown> {
  const text = JSON.stringify({ operation, args }, (_key, value) => {
    if (value === undefined) return UNDEFINED;
    return typeof value === "function" ? FUNCTION : value;
  });
  const answer = await page.evaluate(
    (asked) => (globalThis as unknown as { call: (asked: string) => Promise<string> }).call(asked),
    text,
  );
  const { result, error, name } = JSON.parse(answer);
  if (error === undefined) return result;
  throw new (ERRORS[name as keyof typeof ERRORS] ?? Error)(error);
}
