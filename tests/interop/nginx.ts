import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../parts/engine.ts";
import { startProcess } from "../parts/process.ts";

const NGINX = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((path) => existsSync(path));

const EXAMPLE = fileURLToPath(new URL("../../deploy/edge/nginx.conf", import.meta.url));

/**
 * Returns deploy/edge/nginx.conf with the lines that its comments tell operators to change. Requests to engines are written to the file `log`:
 * path, engines, and their status.
 */
export async function edgeExample(
  engines: readonly { readonly url: string }[],
  port: number,
  folder: string,
  log?: string,
): Promise<string> {
  const text = await readFile(EXAMPLE, "utf8");
  const servers = engines.map(({ url }) => `server ${new URL(url).host} max_fails=3 fail_timeout=10s;`);
  const asked =
    'map $upstream_addr $asked { default 1; "" 0; } log_format asked "$uri $upstream_addr $upstream_status";';
  const changes = [
    ["server 127.0.0.1:6878 max_fails=3 fail_timeout=10s;", servers.join("\n")],
    ["/var/cache/nginx/sluice", `${folder}/cache`],
    [
      "listen 80;",
      `listen 127.0.0.1:${port} backlog=4096;${log ? ` access_log ${log} asked if=$asked;` : ""}`,
    ],
    // The engines of this test have different ports; both answer to any of these names.
    ["localhost:6878", "edge.test"],
    [
      "$upstream_cache_status always;",
      "$upstream_cache_status always; add_header X-Engine $upstream_addr always;",
    ],
  ] as const;
  return changes.reduce((config, [from, to]) => {
    assert.ok(config.includes(from), from);
    return config.replace(from, to);
  }, `${asked}\n${text}`);
}

/** Starts nginx with the files of a folder, its own files in `scratch`; `url` ends without a slash. */
export function startNginx(folder: string, scratch: string) {
  return startNginxWith((port) => `server { listen 127.0.0.1:${port}; root ${folder}; }`, scratch);
}

/** Starts nginx with this text in its `http` block, its own files in `scratch`; `url` ends without a slash. */
export async function startNginxWith(http: (port: number) => string | Promise<string>, scratch: string) {
  await mkdir(scratch, { recursive: true });
  const port = await freePort();
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const config = `daemon off; master_process off; pid ${scratch}/pid; error_log ${scratch}/error.log;
events { worker_connections 16384; }
http { access_log ${scratch}/access.log;
${temporary.map((name) => `${name}_temp_path ${scratch}/${name};`).join("\n")}
${await http(port)} }`;
  await writeFile(`${scratch}/nginx.conf`, config);
  const running = startProcess(NGINX!, [
    "-p",
    scratch,
    "-c",
    `${scratch}/nginx.conf`,
    "-e",
    `${scratch}/error.log`,
  ]);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    const isThere = await fetch(url).then(
      (response) => response.body?.cancel().then(() => true),
      () => false,
    );
    if (isThere !== false) return { ...running, url, accessLog: `${scratch}/access.log` };
    if (tries > 600 || running.child.exitCode !== null) throw new Error(`nginx: ${running.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
