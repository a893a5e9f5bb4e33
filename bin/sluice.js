#!/usr/bin/env node
// Starts src/main.ts, which is TypeScript: Bun and Deno run it as it is, Node with tsx. Node before 22.13 has no node:sqlite,
// so the Bun of the dependencies runs the program there.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const main = new URL("../src/main.ts", import.meta.url);
const [major, minor] = process.versions.node.split(".").map(Number);
const hasSqlite = major > 22 || (major === 22 && minor >= 13);
const isNode = process.versions.bun === undefined && process.versions.deno === undefined;
const bun = isNode && !hasSqlite ? bunPath() : undefined;

if (bun !== undefined) {
  const child = spawn(bun, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`sluice: cannot start ${bun}: ${error.message}. Use Node 22.13 or newer.`);
    process.exit(1);
  });
  child.on("close", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
} else if (isNode) {
  const { register } = await import("tsx/esm/api");
  register();
  await import(main.href);
} else {
  await import(main.href);
}

/** The program of the package `bun`; undefined if it is not installed. */
function bunPath() {
  try {
    const path = join(dirname(createRequire(import.meta.url).resolve("bun/package.json")), "bin/bun.exe");
    return existsSync(path) ? path : undefined;
  } catch {
    return undefined;
  }
}
