import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/runtime/open-store.ts";
import { inFolder } from "./folder.ts";
import { keyValueSuite } from "./key-value-suite.ts";

const warn = (message: string) => assert.fail(message);
const openKind = (kind: "sqlite" | "memory" | "deno-kv") => (folder: string) =>
  openStore({ folder: `${folder}/sub/records`, kind, shared: false, warn });

keyValueSuite("memory", openKind("memory"), { isForgetful: true });
keyValueSuite("sqlite", openKind("sqlite"));

const isDeno = "Deno" in globalThis;
const hasDenoKv = isDeno && "openKv" in (globalThis as { Deno?: object }).Deno!;

if (hasDenoKv) keyValueSuite("deno-kv", openKind("deno-kv"));
else {
  test("deno-kv: where it is not there, that is said", async () => {
    await inFolder((folder) =>
      assert.rejects(openKind("deno-kv")(folder), {
        code: "bad_configuration",
        message: /needs Deno with the flag --unstable-kv/,
      }),
    );
  });
}

test("deno-kv: does what every store does", { skip: !isDeno || hasDenoKv }, async () => {
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    const args = ["test", "-A", "--no-check", "--unstable-kv", fileURLToPath(import.meta.url)];
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, output: stdout + stderr }),
    );
  });
  assert.equal(code, 0, output);
  assert.match(output, /deno-kv: close waits for what was begun/);
});
