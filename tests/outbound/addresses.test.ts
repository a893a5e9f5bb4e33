import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { homeHosts } from "./home-urls.ts";

// Two machines, as the kernel's namespaces make them: one runs the engine, one asks. Whatever listens on addresses that are
// nobody's business prints what comes; the port tells for whom the engine was asked.

const TOKEN = "0123456789abcdef".repeat(4);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand() as [string, ...string[]];

const ENGINE = { name: `sluice-e${process.pid}`, lan: "192.168.77.1", lan6: "fd77::1" };
const ASKER = { name: `sluice-a${process.pid}`, lan: "192.168.77.2", lan6: "fd77::2" };
const PUBLIC = "93.184.216.34";
/** Besides loopback and the network of the two. */
const AT_HOME = ["10.0.0.1/32", "172.16.0.1/32", "192.168.0.1/32", "169.254.169.254/32", "100.64.0.1/32"];
const AT_HOME_6 = ["fd00::1/128", "fd00:ec2::254/128"];

/** Asked for from the network, for who sits at the engine, and where a public server leads. */
const PORTS = { lan: 8081, local: 8082, led: 8083 };
const HTTP_PORT = 6878;

/** Every parameter that takes a URL: how it is asked for. */
const SINKS: readonly ((url: string) => [path: string, query: Record<string, string>])[] = [
  (url) => ["/ace/getstream", { url, format: "json" }],
  (url) => ["/ace/manifest.m3u8", { url, format: "json" }],
  (url) => ["/hls/manifest.m3u8", { manifest_url: url, format: "json" }],
  (url) => ["/server/api", { method: "analyze_content", query: url }],
  (url) => ["/server/api", { method: "analyze_content_multi", query: url }],
  (url) => ["/server/api", { method: "get_media_files", url }],
  (url) => ["/server/api", { method: "get_content_id", url }],
  (url) => ["/server/api", { method: "parse_m3u_playlist", url }],
  (url) => ["/server/api", { method: "get_image", url }],
];

/** Those that leave something behind, or keep at it: asked for with fewer URLs. */
const LASTING_SINKS: typeof SINKS = [
  (url) => ["/server/api", { method: "playlist_add_item", url, title: "x" }],
  (url) => ["/server/api", { method: "playlist_add_item", hls_manifest_url: url, title: "x" }],
  (url) => ["/server/api", { method: "playlist_import", url, name: "x", category: "tv" }],
  (url) => [
    "/server/api",
    {
      method: "external_playlist_add",
      type: "content",
      url,
      name: url,
      category: "tv",
      update_interval: "86400",
    },
  ],
];

const PLAIN_HOSTS = [
  ...["127.0.0.1", "[::1]", "localhost", ENGINE.lan, ASKER.lan, `[${ENGINE.lan6}]`, `[${ASKER.lan6}]`],
  ...[...AT_HOME, ...AT_HOME_6].map((address) => {
    const plain = address.replace(/\/.*/, "");
    return plain.includes(":") ? `[${plain}]` : plain;
  }),
];

/** One magnet that names all of them, as trackers of both kinds and as peers. */
function magnetSink(hosts: readonly string[], port: number): [path: string, query: Record<string, string>] {
  const parts = hosts.flatMap((host) => [
    `tr=${encodeURIComponent(`http://${host}:${port}/announce`)}`,
    `tr=${encodeURIComponent(`udp://${host}:${port}`)}`,
    `x.pe=${host}:${port}`,
  ]);
  const magnet = `magnet:?xt=urn:btih:${port.toString(16).padStart(40, "0")}&${parts.join("&")}`;
  return ["/ace/getstream", { magnet, format: "json" }];
}

const problem = await whyNot();
if (problem) console.log(`addresses.test.ts is skipped: ${problem}`);

describe("an engine on a network, and what it may be made to ask", {
  skip: problem,
  timeout: 600_000,
}, () => {
  let scratch: TempFolder;
  const running: RunningProcess[] = [];
  const canaries: RunningProcess[] = [];
  const hits = (port: number) =>
    canaries
      .flatMap((canary) => canary.output().split("\n"))
      .filter((line) => line.startsWith(`HIT ${port} `));

  before(async () => {
    scratch = await tempFolder("addresses");
    await mkdir(scratch.path, { recursive: true });
    await layCables();
    for (const { name } of [ENGINE, ASKER]) {
      const ports = [PORTS.lan, PORTS.local, PORTS.led, ...(name === ASKER.name ? [80] : [])].map(String);
      const canary = inside(name, here("canary.ts"), ...ports);
      for (const port of ports) await canary.line((line) => line === `listening ${port}`);
      canaries.push(canary);
    }
    running.push(
      startProcess(
        "ip",
        ["netns", "exec", ENGINE.name, RUNTIME, ...RUNTIME_ARGS, `${ROOT}/src/main.ts`, "serve"],
        {
          cwd: ROOT,
          env: {
            ...{ SLUICE_HTTP_PORT: String(HTTP_PORT), SLUICE_P2P_PORT: "0", SLUICE_HOST: "0.0.0.0" },
            ...{ SLUICE_DATA_DIR: scratch.file("data"), XDG_CONFIG_HOME: scratch.path },
            ...{ SLUICE_ACCESS_TOKEN: TOKEN, SLUICE_LOG: "warn" },
          },
        },
      ),
    );
    await ask(
      ENGINE.name,
      [`http://127.0.0.1:${HTTP_PORT}/webui/api/service?method=get_version`],
      "--until-it-answers",
    );
    const allow = { method: "set_allow_intranet_access", value: "1" };
    await ask(ENGINE.name, [asked("127.0.0.1", ["/server/api", allow])]);
  });
  after(async () => {
    for (const one of [...running, ...canaries]) await one.stop();
    for (const { name } of [ENGINE, ASKER]) await run("ip", ["netns", "del", name]).catch(() => {});
    await scratch?.remove();
  });

  /** Asks from within a namespace; returns how often each status came. */
  async function ask(
    name: string,
    urls: readonly string[],
    ...mode: string[]
  ): Promise<Record<string, number>> {
    const file = scratch.file(`urls-${name}.json`);
    await writeFile(file, JSON.stringify(urls));
    const said = await run("ip", [
      ...["netns", "exec", name, RUNTIME, ...RUNTIME_ARGS, here("asker.ts"), file, ...mode],
    ]);
    return JSON.parse(said.trim() || "{}") as Record<string, number>;
  }

  test("who asks from the network makes it ask nobody: every parameter, every form of an address", async () => {
    const all = homeHosts().map((host) => `http://${host}:${PORTS.lan}/`);
    const plain = PLAIN_HOSTS.map((host) => `http://${host}:${PORTS.lan}/`);
    const urls = [
      ...[...all, ...plain].flatMap((url) => SINKS.map((sink) => asked(ENGINE.lan, sink(url)))),
      ...plain.flatMap((url) => LASTING_SINKS.map((sink) => asked(ENGINE.lan, sink(url)))),
      asked(ENGINE.lan, magnetSink(PLAIN_HOSTS, PORTS.lan)),
    ];
    const statuses = await ask(ASKER.name, urls);
    console.log(`${urls.length} requests from the network, by status: ${JSON.stringify(statuses)}`);
    assert.equal(
      Object.values(statuses).reduce((a, b) => a + b, 0),
      urls.length,
    );
    // The engine answered them all: it was not merely deaf.
    assert.equal(statuses.TypeError ?? 0, 0);
    assert.deepEqual(hits(PORTS.lan), []);
  });

  test("a public server leads nobody home, neither who asks from the network nor who sits at the engine", async () => {
    const led = ["redirect", "master.m3u8", "media.m3u8", "split.m3u8"].flatMap((way) =>
      PLAIN_HOSTS.map((host) => {
        const to = `http://${host}:${PORTS.led}/`;
        return `http://${PUBLIC}/${way}?${new URLSearchParams({ to })}`;
      }),
    );
    for (const [name, host] of [
      [ASKER.name, ENGINE.lan],
      [ENGINE.name, "127.0.0.1"],
    ] as const)
      await ask(
        name,
        led.flatMap((url) => SINKS.map((sink) => asked(host, sink(url)))),
      );
    const reached = canaries[1]!
      .output()
      .split("\n")
      .filter((line) => line.startsWith("ASKED 80 "));
    assert.ok(reached.length > 0, "the public server was asked");
    assert.deepEqual(hits(PORTS.led), []);
  });

  test("who sits at the engine may name its own networks, by every parameter that is asked at once", async () => {
    for (const sink of SINKS) {
      const before = hits(PORTS.local).length;
      const urls = ["127.0.0.1", ASKER.lan].map((host) =>
        asked("127.0.0.1", sink(`http://${host}:${PORTS.local}/`)),
      );
      await ask(ENGINE.name, urls);
      const [path, query] = sink("");
      assert.ok(hits(PORTS.local).length > before, `${path} ${query.method ?? ""}`);
    }
    for (const [index, sink] of LASTING_SINKS.entries()) {
      const path = `/lasting-${index}`;
      const [, query] = sink(`http://127.0.0.1:${PORTS.local}${path}`);
      // The links of an item are fetched when it is played.
      if (query.method === "playlist_add_item") continue;
      await ask(ENGINE.name, [asked("127.0.0.1", sink(`http://127.0.0.1:${PORTS.local}${path}`))]);
      await canaries[0]!.line((line) => line.startsWith("ASKED") && line.includes(path));
    }
    await ask(ENGINE.name, [asked("127.0.0.1", magnetSink(["127.0.0.1"], PORTS.local))]);
    await canaries[0]!.line((line) => line.startsWith("ASKED") && line.includes("/announce"));
    await canaries[0]!.line((line) => line.startsWith(`HIT ${PORTS.local} udp`));
    assert.deepEqual(hits(PORTS.lan), []);
  });
});

function asked(host: string, [path, query]: readonly [string, Record<string, string>]): string {
  const token = path === "/server/api" ? { api_version: "3", token: TOKEN } : {};
  return `http://${host}:${HTTP_PORT}${path}?${new URLSearchParams({ ...query, ...token })}`;
}

function inside(name: string, file: string, ...args: string[]): RunningProcess {
  return startProcess("ip", ["netns", "exec", name, RUNTIME, ...RUNTIME_ARGS, file, ...args], { cwd: ROOT });
}

async function layCables(): Promise<void> {
  const [a, b] = [`sve${process.pid}`, `sva${process.pid}`];
  const ip = (...args: string[]) => run("ip", args);
  for (const { name } of [ENGINE, ASKER]) {
    await ip("netns", "add", name);
    await ip("-n", name, "link", "set", "lo", "up");
  }
  await ip("link", "add", a, "netns", ENGINE.name, "type", "veth", "peer", "name", b, "netns", ASKER.name);
  for (const [{ name, lan, lan6 }, device] of [
    [ENGINE, a],
    [ASKER, b],
  ] as const) {
    await ip("-n", name, "addr", "add", `${lan}/24`, "dev", device);
    await ip("-n", name, "addr", "add", `${lan6}/64`, "dev", device, "nodad");
    await ip("-n", name, "link", "set", device, "up");
  }
  for (const address of AT_HOME) await ip("-n", ENGINE.name, "addr", "add", address, "dev", "lo");
  for (const address of AT_HOME_6) await ip("-n", ENGINE.name, "addr", "add", address, "dev", "lo", "nodad");
  await ip("-n", ASKER.name, "addr", "add", `${PUBLIC}/32`, "dev", "lo");
  await ip("-n", ENGINE.name, "route", "add", `${PUBLIC}/32`, "via", ASKER.lan);
}

/** Why this machine cannot do it; false where it can. */
async function whyNot(): Promise<string | false> {
  const name = `sluice-t${process.pid}`;
  try {
    await run("ip", ["netns", "add", name]);
    await run("ip", ["-n", name, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"]);
    return false;
  } catch (thrown) {
    return `no network namespaces here (${(thrown as Error).message.split("\n").slice(0, 3).join(" ")})`;
  } finally {
    await run("ip", ["netns", "del", name]).catch(() => {});
  }
}
