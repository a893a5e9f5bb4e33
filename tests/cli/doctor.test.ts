import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { doctorText } from "../../src/cli/doctor-text.ts";
import { settingRows } from "../../src/cli/setting-rows.ts";
import { readConfig } from "../../src/settings/config.ts";
import { settingsTable } from "../../src/settings/settings.ts";
import { freePort } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { runInProcess } from "./run-in-process.ts";

const { test: slowTest } = await testsThatNeed("time");

const config = (flags: Record<string, string>) =>
  readConfig(settingsTable({ dataDir: "/nowhere" }), {
    flags: new Map(Object.entries(flags)),
    environment: {},
    file: undefined,
  });

test("settingRows: reports settings that conflict, with advice", () => {
  assert.deepEqual(
    settingRows(config({})).map(({ level }) => level),
    ["ok"],
  );
  const texts = (flags: Record<string, string>) =>
    settingRows(config(flags))
      .map(({ text }) => text)
      .join(" ");
  assert.match(texts({ "upload-limit": "1KB" }), /upload limit/);
  assert.match(texts({ dht: "off", lsd: "off" }), /never found/);
  assert.match(texts({ proxy: "socks5://127.0.0.1:1", "proxy-strict": "off" }), /bypasses it/);
  assert.match(texts({ "port-file": "/a", "port-command": "b" }), /file and a command/);
  assert.match(texts({ host: "198.51.100.1" }), /a public address/);
});

test("settingRows: suggests --compat deployed if a controlling program reads the status", () => {
  const advice = (program: string, flags: Record<string, string> = {}) =>
    settingRows(config(flags), program).map((row) => row.advice);
  assert.match(advice("Python-urllib/3.11")[0] ?? "", /--compat deployed/);
  assert.deepEqual(advice("Python-urllib/3.11", { compat: "deployed" }), [undefined]);
  assert.deepEqual(advice("Mozilla/5.0"), [undefined]);
});

test("doctorText: a line for each row, advice below it, and a summary", () => {
  const text = doctorText(
    {
      rows: [
        { name: "Port", level: "ok", text: "Fine.", advice: null },
        { name: "Clock", level: "warn", text: "Off\x1b[2J.", advice: "Set it." },
      ],
      streams: [
        {
          infohash: "00",
          name: "film",
          players: [{ buffering: { reason: "choked", text: "All choke us." } }],
          origins: {},
          peers: [
            {
              address: "1.2.3.4:5",
              client: "x",
              origin: "dht",
              bytes_per_second_down: 2_000_000,
              bytes_per_second_up: 0,
              slow: null,
            },
          ],
        },
      ],
    },
    false,
  );
  assert.equal(
    text,
    [
      "✓ Port   Fine.",
      "! Clock  Off\\u001b[2J.",
      "         → Set it.",
      "",
      "film",
      "  buffering: All choke us.",
      "    2.0 MB/s  1.2.3.4:5 x",
      "",
      "1 warning.",
      "",
    ].join("\n"),
  );
});

slowTest(
  "doctor: without a running engine it tests this machine",
  {
    timeout: 60_000,
  },
  async (t) => {
    const scratch = await tempFolder("doctor");
    t.after(() => rm(scratch.path, { recursive: true, force: true }));
    const ports = ["--http-port", String(await freePort()), "--p2p-port", "0", "--p2p-host", "127.0.0.1"];
    const ran = await runInProcess(["doctor", "--json", ...ports], { dataDir: scratch.path });
    const found = JSON.parse(ran.out) as { rows: { name: string; level: string; text: string }[] };
    assert.match(ran.err, /No engine answers/);
    const names = found.rows.map(({ name }) => name);
    for (const name of ["Peers", "Port", "Space", "Disk", "Names", "Settings"])
      assert.ok(names.includes(name), name);
    assert.equal(ran.code, found.rows.some(({ level }) => level === "fail") ? 1 : 0);
  },
);
