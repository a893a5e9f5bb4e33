import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium");

/** A busy machine answers late. */
const SLOW = { timeout: 100_000 };
/** Kills of the engine while it saves. */
const KILLS = 6;

interface Setting {
  readonly name: string;
  readonly value: string | null;
  readonly default: string;
  readonly expected: string;
  readonly values: readonly string[] | null;
  readonly source: string | null;
  readonly is_secret: boolean;
}

/** Valid values of settings whose default is not a value but a description. */
const SAMPLES: readonly (readonly [expected: RegExp, value: string])[] = [
  [/bytes per second|bytes/i, "3MB"],
  [/port/i, "7123"],
  [/duration|seconds|time/i, "90s"],
  [/whole number|number/i, "7"],
  [/^stun:/, "stun:198.51.100.1:3478"],
  [/^turn:/, "turn:user:word@198.51.100.1:3478"],
  [/^socks5:/, "socks5://127.0.0.1:1080"],
  [/printable characters/, "0123456789abcdef0123456789abcdef"],
];

describe("the settings in Chromium", { timeout: 400_000 }, () => {
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;

  before(async () => {
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    page = await openPage(browser);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
  });

  test("each flag round-trips through the page", SLOW, async () => {
    const changes = new Map<string, string>();
    const { result: before } = await call(engine, "get_settings");
    for (const setting of before.settings as Setting[]) {
      // The engine of the test was started with these.
      if (setting.source === "variable" || setting.source === "flag") continue;
      const value = await validValue(engine, setting);
      if (value !== undefined) changes.set(setting.name, value);
    }
    assert.ok(changes.size >= 62, `${changes.size} settings can be changed`);
    await page.goto(`${engine.url}/#/control/settings`);
    await page.locator(".setting").first().waitFor();
    for (const [name, value] of changes) {
      const input = page.locator(`#setting-${name}`);
      if ((await input.evaluate((each) => each.tagName)) === "SELECT") await input.selectOption(value);
      else await input.fill(value);
    }
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".settings-state", { hasText: /^Saved/ }).waitFor();
    const { result } = await call(engine, "get_settings");
    const saved = new Map((result.settings as Setting[]).map((setting) => [setting.name, setting]));
    for (const [name, value] of changes) {
      const setting = saved.get(name)!;
      assert.equal(setting.source, "file", name);
      if (!setting.is_secret) assert.equal(setting.value, value, name);
    }
    // The page shows what was saved.
    await page.reload();
    await page.locator(".setting").first().waitFor();
    for (const [name, value] of changes)
      if (!saved.get(name)!.is_secret) assert.equal(await page.inputValue(`#setting-${name}`), value, name);
  });

  test("a change that is not saved yet survives when the page is shown again", SLOW, async () => {
    await page.goto(`${engine.url}/#/control/settings`);
    await page.fill("#setting-upload-limit", "5MB");
    await page.goto(`${engine.url}/#/control/overview`);
    await page.locator("#control .verdict h2").waitFor();
    const shown = page.waitForResponse((response) => response.url().includes("get_settings"));
    await page.goto(`${engine.url}/#/control/settings/upload-limit`);
    await shown;
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".settings-state", { hasText: /^Saved/ }).waitFor();
    const { result } = await call(engine, "get_settings");
    assert.equal((result.settings as Setting[]).find(({ name }) => name === "upload-limit")!.value, "5MB");
  });

  test(
    "a bad value of each flag is refused with the flag's own words, and changes nothing",
    SLOW,
    async () => {
      const { result } = await call(engine, "get_settings");
      let refused = 0;
      for (const { name, expected } of result.settings as Setting[]) {
        const answer = await call(engine, "set_settings", {
          values: JSON.stringify({ [name]: "\u00a7 \u00a7" }),
        });
        if (answer.error === null) {
          // Any text is a value of this setting.
          await call(engine, "set_settings", { values: JSON.stringify({ [name]: null }) });
          continue;
        }
        refused++;
        assert.match(answer.error.message, new RegExp(`^${name}|--${name}|${name}:`), answer.error.message);
        assert.ok(
          answer.error.message.includes(expected.slice(0, 20)),
          `${answer.error.message} / ${expected}`,
        );
      }
      assert.ok(refused >= 50, `${refused} settings refuse it`);
    },
  );
});

describe("saving settings", { timeout: 400_000 }, () => {
  test(
    `an engine that is killed while it saves, ${KILLS} times, keeps the old or the new settings`,
    SLOW,
    async (t) => {
      const scratch = await tempFolder("settings");
      t.after(() => scratch.remove());
      let known = "";
      for (let kill = 0; kill < KILLS; kill++) {
        const engine = await startEngine({ dataDir: scratch.path });
        const { result } = await call(engine, "get_settings");
        const value =
          (result.settings as Setting[]).find(({ name }) => name === "max-connections")!.value ?? "";
        // Saved values were acknowledged one after another; the last one may be either.
        assert.ok(
          kill === 0 || value === known || Number(value) === Number(known) + 1,
          `${value} after ${known}`,
        );
        const { file } = result;
        known = value || "50";
        const end = Date.now() + 100 + 37 * kill;
        const saving = (async () => {
          for (let next = Number(known) + 1; ; next++) {
            const answer = await call(engine, "set_settings", {
              values: JSON.stringify({ "max-connections": String(next) }),
            });
            assert.equal(answer.error, null);
            known = String(next);
          }
        })().catch((error: unknown) => {
          // The killed engine closes the connection.
          if (error instanceof assert.AssertionError) throw error;
        });
        while (Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
        engine.child.kill("SIGKILL");
        await saving;
        await engine.stop();
        const written = await readFile(file, "utf8");
        assert.doesNotThrow(() => JSON.parse(written), written);
      }
    },
  );
});

/** Calls a control method with the token of the engine. */
async function call(engine: { url: string }, method: string, parameters: Record<string, string> = {}) {
  const ask = async (query: Record<string, string>) => {
    const body = new URLSearchParams({ api_version: "3", ...query });
    const response = await fetch(`${engine.url}/server/api?api_version=3&method=${query.method}`, {
      method: "POST",
      body,
    });
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    return (await response.json()) as any;
  };
  const { token } = (await ask({ method: "get_api_access_token" })).result;
  return ask({ method, token, ...parameters });
}

/** Returns a value that the engine accepts for a setting, another one than the default if possible; the file is unchanged afterwards. */
async function validValue(engine: EngineProcess, setting: Setting): Promise<string | undefined> {
  const { name, values, expected } = setting;
  const others = values?.filter((value) => value !== setting.default) ?? [];
  const example = / such as (.+?)(?:,? or .*| \(.*|, at least .*)?$/.exec(expected)?.[1];
  const samples = SAMPLES.flatMap(([pattern, value]) => (pattern.test(expected) ? [value] : []));
  for (const value of [...others, ...samples, example ?? "", setting.default]) {
    if (value === "") continue;
    const { error } = await call(engine, "set_settings", { values: JSON.stringify({ [name]: value }) });
    if (error !== null) continue;
    await call(engine, "set_settings", { values: JSON.stringify({ [name]: null }) });
    return value;
  }
  return undefined;
}
