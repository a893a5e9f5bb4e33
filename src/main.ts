#!/usr/bin/env bun
import { runtime } from "#runtime";
import { webAssets } from "#web-assets";
import { run } from "./cli/run.ts";

const code = await run({
  runtime,
  webAssets,
  args: process.argv.slice(2),
  environment: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
process.exit(code);
