import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { NO_REACH_ENVIRONMENT } from "../parts/no-reach.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

// A chroot needs the same privileges as a namespace.
const { test } = await testsThatNeed("namespaces");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** docs/operations.md: the image has about 140 MB. */
const MAX_IMAGE_BYTES = 150e6;

test("the image: its files alone run the engine without root, and its health check passes", {
  timeout: 300_000,
}, async () => {
  const dockerfile = readFileSync(`${ROOT}deploy/docker/Dockerfile`, "utf8");
  const [, build] = /^RUN (npm run build && sh deploy\/docker\/rootfs\.sh dist\/sluice) \/image$/m.exec(
    dockerfile,
  )!;
  const [, healthCheck] = /HEALTHCHECK .* CMD \["(.+)"\]/.exec(dockerfile)!;
  const folder = await tempFolder("image");
  const root = folder.file("root");
  try {
    await run("sh", ["-c", `cd ${ROOT} && ${build} ${root}`]);
    assert.ok((await bytesBelow(root)) < MAX_IMAGE_BYTES);
    // Mounts what containers mount, in a namespace of its own.
    const mounts = `mount -t proc proc ${root}/proc && mount --bind /dev ${root}/dev`;
    const inside = [
      "--mount",
      "sh",
      "-c",
      `${mounts} && exec chroot --userspec=10001:10001 ${root} "$@"`,
      "sh",
    ];
    const port = String(await freePort());
    const env = {
      ...NO_REACH_ENVIRONMENT,
      SLUICE_DATA_DIR: "/data",
      SLUICE_LOG_FORMAT: "json",
      SLUICE_HTTP_PORT: port,
      SLUICE_P2P_PORT: "0",
    };
    const engine = startProcess("unshare", [...inside, "/usr/bin/sluice", "serve"], { env });
    try {
      const [program, ...args] = healthCheck!.split('", "') as [string, ...string[]];
      const check = async () => {
        const checked = startProcess("unshare", [...inside, program, ...args], { env });
        return new Promise<number | null>((resolve) => checked.child.on("close", resolve));
      };
      while ((await check()) !== 0)
        assert.equal(engine.child.exitCode, null, `the engine has ended: ${engine.output()}`);
      const page = await fetch(`http://127.0.0.1:${port}/`);
      assert.match(await page.text(), /<title>Sluice/);
    } finally {
      await engine.stop();
    }
  } finally {
    await folder.remove();
  }
});

async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(`${entry.parentPath}/${entry.name}`)).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
