import { join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { contentIdOf } from "../base/ids.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { MAX_LIVE_FILE_BYTES } from "../wire/live/limits.ts";
import { parseLiveTransportFile } from "../wire/live/transport-file.ts";
import type { Context } from "./context.ts";
import { printable } from "./log.ts";

/** A broadcast in the data folder. */
interface Known {
  readonly name: string;
  readonly title: string | null;
  readonly infohash: string | null;
  readonly content_id: string | null;
  /** Time of the last run (ISO 8601); null if it never ran. */
  readonly last_run: string | null;
  readonly transport_file: string;
  /** Why its transport file cannot be read; null if it can. */
  readonly problem: string | null;
}

/** `sluice broadcast --list`: lists the broadcasts in the data folder. Resolves to the exit code. */
export async function broadcastList(context: Context, config: Config, isJson: boolean): Promise<number> {
  const { stdout, runtime } = context;
  const folder = join(config.dataDir, "broadcasts");
  const names = (await runtime.files.list(folder)).sort();
  const all: Known[] = [];
  for (const name of names) all.push(await knownAt(folder, name, runtime));
  if (isJson) stdout.write(`${JSON.stringify(all)}\n`);
  else if (all.length > 0) stdout.write(`${all.map(lineOf).join("\n")}\n`);
  else stdout.write(`no broadcasts in ${printable(folder)}\n`);
  return 0;
}

async function knownAt(folder: string, name: string, runtime: Runtime): Promise<Known> {
  const { files, sha1, ed25519Verifier } = runtime;
  const path = join(folder, name, `${name}.sluice`);
  const state = await files.stat(join(folder, name, "state"));
  const about = {
    name,
    last_run: state === undefined ? null : new Date(state.modifiedMs).toISOString(),
    transport_file: path,
  };
  const unknown = { ...about, title: null, infohash: null, content_id: null };
  try {
    const bytes = await files.read(path, MAX_LIVE_FILE_BYTES);
    if (bytes === undefined) return { ...unknown, problem: "was never on air" };
    const { infohash, meta } = parseLiveTransportFile(bytes, sha1, ed25519Verifier);
    return {
      ...about,
      title: meta.title ?? null,
      infohash,
      content_id: contentIdOf(infohash),
      problem: null,
    };
  } catch (thrown) {
    return { ...unknown, problem: messageOf(thrown) };
  }
}

function lineOf({ name, title, infohash, last_run, problem }: Known): string {
  const when = last_run === null ? "never" : last_run.slice(0, 16).replace("T", " ");
  const what = title === null || title === name ? "" : `  (${printable(title)})`;
  return `${infohash ?? `– ${printable(problem ?? "")}`}  ${when}  ${printable(name)}${what}`;
}
