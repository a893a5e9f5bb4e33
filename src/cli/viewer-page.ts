import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseInfohash } from "../base/ids.ts";
import { staticViewer, viewerEngine } from "../web/static-viewer.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { printable } from "./log.ts";

/** `sluice viewer-page`: writes the page for viewers of a live stream into a folder, for any web server. Resolves to the exit code. */
export async function viewerPage(context: Context, args: Arguments): Promise<number> {
  const [folder] = args.operands;
  if (folder === undefined) throw usageError("viewer-page: expected a folder to write to");
  const infohash = parseInfohash(textOf(args, "infohash"));
  if (infohash === undefined) throw usageError("viewer-page: --infohash: expected 40 hexadecimal digits");
  const engine = viewerEngine(textOf(args, "engine"));
  if (engine === undefined)
    throw usageError(
      "viewer-page: --engine: expected the URL of the engine, such as https://tv.example.org/, without password, query and fragment",
    );
  const trackers = (args.lists.get("tracker") ?? []).map((tracker) => {
    if (URL.canParse(tracker) && /^wss?:$/.test(new URL(tracker).protocol)) return new URL(tracker);
    throw usageError(
      `viewer-page: --tracker: expected the URL of a WebSocket tracker, such as wss://tracker.example.org/, not ${printable(tracker)}`,
    );
  });
  const files = await staticViewer(context.webAssets, { engine, infohash, trackers });
  const target = resolve(folder);
  for (const [name, text] of files) {
    const path = join(target, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  if (args.flags.has("json"))
    context.stdout.write(`${JSON.stringify({ folder: target, files: [...files.keys()] })}\n`);
  else context.stderr.write(`${printable(folder)}: ${files.size} files\n`);
  return 0;
}

function textOf({ flags }: Arguments, name: string): string {
  const value = flags.get(name);
  return typeof value === "string" ? value : "";
}
