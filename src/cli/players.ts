import { spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { messageOf, SluiceError } from "../base/errors.ts";
import { usageError } from "./usage.ts";

/** The players we know how to start, best first: the arguments before the URL. Their own lines about time would mix with ours. */
const PLAYERS: readonly (readonly [name: string, args: readonly string[]])[] = [
  ["mpv", ["--msg-level=all=error", "--"]],
  ["vlc", ["--play-and-exit", "--"]],
  ["ffplay", ["-autoexit", "-loglevel", "error", "-i"]],
];

/** The program to play in: the one that was asked for, or the first that is installed. Rejects where there is none. */
export async function findPlayer(
  environment: Readonly<Record<string, string | undefined>>,
  asked: string | true | undefined,
): Promise<string> {
  const names = typeof asked === "string" ? [asked] : PLAYERS.map(([name]) => name);
  for (const name of names) {
    const program = await findProgram(environment, name);
    if (program !== undefined) return program;
  }
  if (typeof asked === "string") throw usageError(`--player: there is no program "${asked}"`);
  throw usageError(
    "no player found (mpv, vlc, ffplay): install one, name one with --player, or use --output FILE",
  );
}

/** A player that is installed: where, and what it is told before the URL. */
export interface InstalledPlayer {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
}

/** The players we know that are installed, best first. */
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

/** Starts the player on `url` and resolves to its exit code. The signal ends it. No shell is involved. */
export function playIn(program: string, url: string, signal: AbortSignal): Promise<number> {
  const name = program.split("/").pop() ?? program;
  const args = PLAYERS.find(([known]) => known === name)?.[1] ?? [];
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args, url], { stdio: ["ignore", "ignore", "inherit"] });
    const onAbort = () => void child.kill("SIGTERM");
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) =>
      reject(new SluiceError("bad_configuration", `${name} could not be started: ${messageOf(error)}`)),
    );
    child.once("close", (code) => {
      signal.removeEventListener("abort", onAbort);
      resolve(signal.aborted ? 130 : (code ?? 1));
    });
  });
}

async function findProgram(
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
