import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("namespaces");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TIME = { timeout: 60_000 };
const LAN = "http://192.168.7.1:6878";
const VERSION = "/webui/api/service?method=get_version";

/** Starts an engine without network settings; resolves to it and its banner. */
async function engineIn(space: Space, folder: string) {
  const [command, ...args] = engineCommand();
  const engine = startProcess("ip", [...space.prefix.slice(1), command, ...args, "serve"], {
    cwd: ROOT,
    env: {
      ...{ SLUICE_DATA_DIR: folder, XDG_CONFIG_HOME: folder, SLUICE_P2P_PORT: "0" },
      ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off" },
    },
  });
  await engine.line((line) => line.includes("Stop"));
  return engine;
}

/** Requests a URL from a network namespace; resolves to the status (0: no connection) and the body. */
async function get(space: Space, url: string, host?: string): Promise<{ status: number; body: string }> {
  const header = host === undefined ? [] : ["-H", `Host: ${host}`];
  const output = await space.run("curl", "-s", "-m", "10", "-w", "\\n%{http_code}", ...header, url);
  const at = output.trimEnd().lastIndexOf("\n");
  return { status: Number(output.slice(at + 1)), body: output.slice(0, at) };
}

const statusOf = async (...request: Parameters<typeof get>) => (await get(...request)).status;

test(
  "by default, the subnet may play but not edit, and the Internet has no access; the switches survive a restart",
  TIME,
  async () => {
    const scratch = await tempFolder("lan");
    const spaces = makeSpaces();
    let engine: RunningProcess | undefined;
    try {
      const [host, tv, far] = await Promise.all([spaces.make("host"), spaces.make("tv"), spaces.make("far")]);
      const end = (space: Space, device: string, address: string) => ({
        space,
        device,
        addresses: [address],
      });
      await spaces.wire(end(host, "eth0", "192.168.7.1/24"), end(tv, "eth0", "192.168.7.2/24"));
      await spaces.wire(end(host, "wan0", "203.0.113.1/30"), end(far, "eth0", "203.0.113.2/30"));
      await far.run("ip", "route", "add", "192.168.7.0/24", "via", "203.0.113.1");

      engine = await engineIn(host, scratch.path);
      assert.match(engine.output(), /Network +http:\/\/192\.168\.7\.1:6878\//);
      assert.match(engine.output(), /203\.0\.113\.1 is a public address/);
      const token = async () => {
        const { body } = await get(
          host,
          "http://127.0.0.1:6878/server/api?api_version=3&method=get_api_access_token",
        );
        return (JSON.parse(body) as { result: { token: string } }).result.token;
      };
      const set = async (method: string, value: number) =>
        get(
          host,
          `http://127.0.0.1:6878/server/api?api_version=3&method=${method}&value=${value}&token=${await token()}`,
        );

      assert.equal(await statusOf(tv, `${LAN}${VERSION}`), 200);
      const edit = await get(tv, `${LAN}/server/api?api_version=3&method=playlist_clear&owner=x`);
      assert.match(edit.body, /access token required/);
      assert.equal(await statusOf(far, `${LAN}${VERSION}`), 403);
      // DNS rebinding: only names of this machine and the address of the connection.
      assert.equal(await statusOf(tv, `${LAN}${VERSION}`, "rebound.example:6878"), 421);
      assert.equal(await statusOf(tv, `${LAN}${VERSION}`, "192.168.7.9:6878"), 421);

      await set("set_allow_intranet_access", 0);
      await set("set_allow_remote_access", 1);
      assert.equal(await statusOf(tv, `${LAN}${VERSION}`), 403);
      assert.equal(await statusOf(far, `${LAN}${VERSION}`), 200);
      await engine.stop();
      engine = await engineIn(host, scratch.path);
      assert.equal(await statusOf(tv, `${LAN}${VERSION}`), 403);
      assert.equal(await statusOf(far, `${LAN}${VERSION}`), 200);
      await set("set_allow_intranet_access", 1);
      assert.equal(await statusOf(tv, `${LAN}${VERSION}`), 200);
    } finally {
      await engine?.stop();
      await spaces.remove();
      await scratch.remove();
    }
  },
);
