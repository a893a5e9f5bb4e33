import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { privateHosts } from "./private-hosts.ts";

const { after, before, describe, test } = await testsThatNeed("namespaces");

// Two machines in network namespaces: one runs the engine, the other the client. Canaries listen on the private addresses
// and print every connection; the port identifies the caller that triggered it.

const TOKEN = "0123456789abcdef".repeat(4);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand() as [string, ...string[]];

const ENGINE = { name: `sluice-e${process.pid}`, lan: "192.168.77.1", lan6: "fd77::1" };
const CLIENT = { name: `sluice-c${process.pid}`, lan: "192.168.77.2", lan6: "fd77::2" };
const PUBLIC = "93.184.216.34";
/** Private addresses of the engine's host besides loopback and the network between the two. */
const PRIVATE = ["10.0.0.1/32", "172.16.0.1/32", "192.168.0.1/32", "169.254.169.254/32", "100.64.0.1/32"];
const PRIVATE_V6 = ["fd00::1/128", "fd00:ec2::254/128"];

/** Ports that a client on the network, a local client, and a public server lead the engine to. */
const PORTS = { lan: 8081, local: 8082, redirected: 8083 };
const HTTP_PORT = 6878;

/** Every parameter that takes a URL, as path and query of a request. */
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

/** Requests that store something or repeat; used with fewer URLs. */
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
  ...["127.0.0.1", "[::1]", "localhost", ENGINE.lan, CLIENT.lan, `[${ENGINE.lan6}]`, `[${CLIENT.lan6}]`],
  ...[...PRIVATE, ...PRIVATE_V6].map((address) => {
    const plain = address.replace(/\/.*/, "");
    return plain.includes(":") ? `[${plain}]` : plain;
  }),
];

/** One magnet with all hosts as HTTP trackers, UDP trackers and peers. */
function magnetSink(hosts: readonly string[], port: number): [path: string, query: Record<string, string>] {
  const parts = hosts.flatMap((host) => [
    `tr=${encodeURIComponent(`http://${host}:${port}/announce`)}`,
    `tr=${encodeURIComponent(`udp://${host}:${port}`)}`,
    `x.pe=${host}:${port}`,
  ]);
  const magnet = `magnet:?xt=urn:btih:${port.toString(16).padStart(40, "0")}&${parts.join("&")}`;
  return ["/ace/getstream", { magnet, format: "json" }];
}

describe("SSRF between two network namespaces", {
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
    await connectNamespaces();
    for (const { name } of [ENGINE, CLIENT]) {
      const ports = [PORTS.lan, PORTS.local, PORTS.redirected, ...(name === CLIENT.name ? [80] : [])].map(
        String,
      );
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
    await request(
      ENGINE.name,
      [`http://127.0.0.1:${HTTP_PORT}/webui/api/service?method=get_version`],
      "--until-it-answers",
    );
    const allow = { method: "set_allow_intranet_access", value: "1" };
    await request(ENGINE.name, [urlOf("127.0.0.1", ["/server/api", allow])]);
  });
  after(async () => {
    for (const process of [...running, ...canaries]) await process.stop();
    for (const { name } of [ENGINE, CLIENT]) await run("ip", ["netns", "del", name]).catch(() => {});
    await scratch?.remove();
  });

  /** Sends requests from within a namespace; returns how often each status occurred. */
  async function request(
    name: string,
    urls: readonly string[],
    ...mode: string[]
  ): Promise<Record<string, number>> {
    const file = scratch.file(`urls-${name}.json`);
    await writeFile(file, JSON.stringify(urls));
    const printed = await run("ip", [
      ...["netns", "exec", name, RUNTIME, ...RUNTIME_ARGS, here("request-urls.ts"), file, ...mode],
    ]);
    return JSON.parse(printed.trim() || "{}") as Record<string, number>;
  }

  test("a client on the network cannot reach private addresses: every parameter, every form of an address", async () => {
    const all = privateHosts().map((host) => `http://${host}:${PORTS.lan}/`);
    const plain = PLAIN_HOSTS.map((host) => `http://${host}:${PORTS.lan}/`);
    const urls = [
      ...[...all, ...plain].flatMap((url) => SINKS.map((sink) => urlOf(ENGINE.lan, sink(url)))),
      ...plain.flatMap((url) => LASTING_SINKS.map((sink) => urlOf(ENGINE.lan, sink(url)))),
      urlOf(ENGINE.lan, magnetSink(PLAIN_HOSTS, PORTS.lan)),
    ];
    const statuses = await request(CLIENT.name, urls);
    console.log(`${urls.length} requests from the network, by status: ${JSON.stringify(statuses)}`);
    assert.equal(
      Object.values(statuses).reduce((a, b) => a + b, 0),
      urls.length,
    );
    // The engine responded to every request.
    assert.equal(statuses.TypeError ?? 0, 0);
    assert.deepEqual(hits(PORTS.lan), []);
  });

  test("a public server cannot lead the engine to private addresses, whether the client is remote or local", async () => {
    const urls = ["redirect", "master.m3u8", "media.m3u8", "split.m3u8"].flatMap((way) =>
      PLAIN_HOSTS.map((host) => {
        const to = `http://${host}:${PORTS.redirected}/`;
        return `http://${PUBLIC}/${way}?${new URLSearchParams({ to })}`;
      }),
    );
    for (const [name, host] of [
      [CLIENT.name, ENGINE.lan],
      [ENGINE.name, "127.0.0.1"],
    ] as const)
      await request(
        name,
        urls.flatMap((url) => SINKS.map((sink) => urlOf(host, sink(url)))),
      );
    const reached = canaries[1]!
      .output()
      .split("\n")
      .filter((line) => line.startsWith("REQUEST 80 "));
    assert.ok(reached.length > 0, "the public server got requests");
    assert.deepEqual(hits(PORTS.redirected), []);
  });

  test("a local client may use private addresses, by every parameter that the engine requests at once", async () => {
    for (const sink of SINKS) {
      const before = hits(PORTS.local).length;
      const urls = ["127.0.0.1", CLIENT.lan].map((host) =>
        urlOf("127.0.0.1", sink(`http://${host}:${PORTS.local}/`)),
      );
      await request(ENGINE.name, urls);
      const [path, query] = sink("");
      assert.ok(hits(PORTS.local).length > before, `${path} ${query.method ?? ""}`);
    }
    for (const [index, sink] of LASTING_SINKS.entries()) {
      const path = `/lasting-${index}`;
      const [, query] = sink(`http://127.0.0.1:${PORTS.local}${path}`);
      // The URL of an item is requested when it is played.
      if (query.method === "playlist_add_item") continue;
      await request(ENGINE.name, [urlOf("127.0.0.1", sink(`http://127.0.0.1:${PORTS.local}${path}`))]);
      await canaries[0]!.line((line) => line.startsWith("REQUEST") && line.includes(path));
    }
    await request(ENGINE.name, [urlOf("127.0.0.1", magnetSink(["127.0.0.1"], PORTS.local))]);
    await canaries[0]!.line((line) => line.startsWith("REQUEST") && line.includes("/announce"));
    await canaries[0]!.line((line) => line.startsWith(`HIT ${PORTS.local} udp`));
    assert.deepEqual(hits(PORTS.lan), []);
  });
});

function urlOf(host: string, [path, query]: readonly [string, Record<string, string>]): string {
  const token = path === "/server/api" ? { api_version: "3", token: TOKEN } : {};
  return `http://${host}:${HTTP_PORT}${path}?${new URLSearchParams({ ...query, ...token })}`;
}

function inside(name: string, file: string, ...args: string[]): RunningProcess {
  return startProcess("ip", ["netns", "exec", name, RUNTIME, ...RUNTIME_ARGS, file, ...args], { cwd: ROOT });
}

async function connectNamespaces(): Promise<void> {
  const [a, b] = [`sve${process.pid}`, `sva${process.pid}`];
  const ip = (...args: string[]) => run("ip", args);
  for (const { name } of [ENGINE, CLIENT]) {
    await ip("netns", "add", name);
    await ip("-n", name, "link", "set", "lo", "up");
  }
  await ip("link", "add", a, "netns", ENGINE.name, "type", "veth", "peer", "name", b, "netns", CLIENT.name);
  for (const [{ name, lan, lan6 }, device] of [
    [ENGINE, a],
    [CLIENT, b],
  ] as const) {
    await ip("-n", name, "addr", "add", `${lan}/24`, "dev", device);
    await ip("-n", name, "addr", "add", `${lan6}/64`, "dev", device, "nodad");
    await ip("-n", name, "link", "set", device, "up");
  }
  for (const address of PRIVATE) await ip("-n", ENGINE.name, "addr", "add", address, "dev", "lo");
  for (const address of PRIVATE_V6) await ip("-n", ENGINE.name, "addr", "add", address, "dev", "lo", "nodad");
  await ip("-n", CLIENT.name, "addr", "add", `${PUBLIC}/32`, "dev", "lo");
  await ip("-n", ENGINE.name, "route", "add", `${PUBLIC}/32`, "via", CLIENT.lan);
}
