import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { doctorText } from "../../src/cli/doctor-text.ts";
import { settingRows } from "../../src/cli/setting-rows.ts";
import { readConfig } from "../../src/config.ts";
import { settingsTable } from "../../src/settings.ts";
import { freePort } from "../parts/engine.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { runInProcess } from "./run-in-process.ts";

const config = (flags: Record<string, string>) =>
  readConfig(settingsTable({ dataDir: "/nowhere" }), {
    flags: new Map(Object.entries(flags)),
    environment: {},
    file: undefined,
  });

test("settingRows: what works against each other is told, with what to do", () => {
  assert.deepEqual(
    settingRows(config({})).map(({ level }) => level),
    ["ok"],
  );
  const told = (flags: Record<string, string>) =>
    settingRows(config(flags))
      .map(({ text }) => text)
      .join(" ");
  assert.match(told({ "upload-limit": "1KB" }), /upload limit/);
  assert.match(told({ dht: "off", lsd: "off" }), /never found/);
  assert.match(told({ proxy: "socks5://127.0.0.1:1", "proxy-strict": "off" }), /goes around it/);
  assert.match(told({ "port-file": "/a", "port-command": "b" }), /file and a command/);
  assert.match(told({ host: "198.51.100.1" }), /address of the Internet/);
});

test("doctorText: a line for each row, what to do below it, and a verdict", () => {
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
      "  waits: All choke us.",
      "    2.0 MB/s  1.2.3.4:5 x",
      "",
      "1 is worth a look.",
      "",
    ].join("\n"),
  );
});

test("doctor: without an engine it tries by itself, says how the disk is, and leaves nothing", {
  timeout: 60_000,
}, async (t) => {
  const scratch = await tempFolder("doctor");
  t.after(() => rm(scratch.path, { recursive: true, force: true }));
  const ports = ["--http-port", String(await freePort()), "--p2p-port", "0", "--p2p-host", "127.0.0.1"];
  const ran = await runInProcess(["doctor", "--json", ...ports], { dataDir: scratch.path });
  const told = JSON.parse(ran.out) as { rows: { name: string; level: string; text: string }[] };
  assert.match(ran.err, /No engine answers/);
  const names = told.rows.map(({ name }) => name);
  for (const name of ["Peers", "Port", "Space", "Disk", "Names", "Settings"])
    assert.ok(names.includes(name), name);
  assert.equal(ran.code, told.rows.some(({ level }) => level === "fail") ? 1 : 0);
});
