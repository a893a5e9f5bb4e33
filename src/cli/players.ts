import { spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { messageOf, SluiceError } from "../base/errors.ts";
import { usageError } from "./args.ts";

/** Known players in order of preference, with the arguments before the URL. Their status output is turned off. */
const PLAYERS: readonly (readonly [name: string, args: readonly string[]])[] = [
  ["mpv", ["--msg-level=all=error", "--"]],
  ["vlc", ["--play-and-exit", "--"]],
  ["ffplay", ["-autoexit", "-loglevel", "error", "-i"]],
];

/** Returns the path of the player named `asked`, or of the first installed one. Rejects with a usage error if none is found. */
export async function findPlayer(
  environment: Readonly<Record<string, string | undefined>>,
  asked: string | true | undefined,
): Promise<string> {
  const names = typeof asked === "string" ? [asked] : PLAYERS.map(([name]) => name);
  for (const name of names) {
    const program = await findProgram(environment, name);
    if (program !== undefined) return program;
  }
  if (typeof asked === "string") throw usageError(`--player: cannot find the program "${asked}"`);
  throw usageError(
    "no player found (mpv, vlc, ffplay). Install one, choose one with --player, or use --output FILE",
  );
}

/** An installed player: its path, and the arguments before the URL. */
export interface InstalledPlayer {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
}

/** Returns the installed players in order of preference. */
export async function installedPlayers(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<InstalledPlayer[]> {
  const found = await Promise.all(
    PLAYERS.map(async ([name, args]) => {
      const program = await findProgram(environment, name);
      return program === undefined ? [] : [{ name, program, args }];
    }),
  );
  return found.flat();
}

/** Starts the player without a shell, with URLs to play one after another; resolves to its exit code. `signal` terminates it. */
export function playIn(program: string, urls: readonly string[], signal: AbortSignal): Promise<number> {
  const name = program.split("/").pop() ?? program;
  const args = PLAYERS.find(([known]) => known === name)?.[1] ?? [];
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args, ...urls], { stdio: ["ignore", "ignore", "inherit"] });
    const onAbort = () => void child.kill("SIGTERM");
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) =>
      reject(new SluiceError("bad_configuration", `cannot start ${name}: ${messageOf(error)}`)),
    );
    child.once("close", (code) => {
      signal.removeEventListener("abort", onAbort);
      resolve(signal.aborted ? 130 : (code ?? 1));
    });
  });
}

/** Returns the path of a program: of a name in `PATH`, or the given path; undefined if it cannot be run. */
export async function findProgram(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): Promise<string | undefined> {
  const folders = (environment.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const places =
    isAbsolute(name) || name.includes("/") ? [name] : folders.map((folder) => join(folder, name));
  for (const place of places) if (await isProgram(place)) return place;
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
