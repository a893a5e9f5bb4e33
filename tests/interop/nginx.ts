import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { freePort } from "../parts/engine.ts";
import { startProcess } from "../parts/process.ts";

const NGINX = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((path) => existsSync(path));

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
events { worker_connections 4096; }
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
