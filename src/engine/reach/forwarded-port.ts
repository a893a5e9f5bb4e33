import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { ReachSettings } from "./contract.ts";

/** A port that somebody else, such as a VPN, has opened for us, and that changes now and then. */
export interface ForwardedPort {
  /** Undefined while there is none. */
  readonly port: number | undefined;
  /** Hears of every change from now on, and at once of the port that is there. */
  follow(changed: (port: number | undefined) => void): void;
  close(): void;
}

/** A file is looked at so often: it costs little, and a port that has changed lets nobody in. */
const FILE_MS = 5_000;
/** As the setting says. */
const COMMAND_MS = 60_000;
const COMMAND_TIMEOUT_MS = 20_000;
/** A port, and space around. */
const MAX_BYTES = 1024;
/** A file that is being written is empty for a moment: so often in a row it must be so to count. */
const EMPTY_ROUNDS = 2;

/** Follows the port that a file holds, or that a command of the user's own prints; the file where both are named. */
export function followForwardedPort(
  { files, clock, surroundings }: Pick<Runtime, "files" | "clock" | "surroundings">,
  { portFile, portCommand }: Pick<ReachSettings, "portFile" | "portCommand">,
  log: Log,
): ForwardedPort {
  const followers: ((port: number | undefined) => void)[] = [];
  const isFile = portFile !== "";
  let port: number | undefined;
  let told: string | undefined;
  let empties = 0;
  let isClosed = false;
  let cancel = () => {};
  const ask = async () => {
    if (!isFile) return surroundings.run(portCommand, COMMAND_TIMEOUT_MS);
    const bytes = await files.read(portFile, MAX_BYTES);
    return bytes === undefined ? "" : decodeUtf8(bytes);
  };
  const tell = (problem: string) => {
    if (problem !== told) log.warn("no forwarded port is known", { reason: problem });
    told = problem;
  };
  const look = async () => {
    const found = await ask().then(readPort, (error: unknown) => messageOf(error));
    if (isClosed) return;
    cancel = clock.at(after(clock.now(), isFile ? FILE_MS : COMMAND_MS), () => void look());
    empties = typeof found === "number" ? 0 : empties + 1;
    const next = typeof found === "number" ? found : empties < EMPTY_ROUNDS ? port : undefined;
    if (next === undefined) tell(String(found));
    if (next === port) return;
    port = next;
    if (port !== undefined) log.info("others reach us at a forwarded port", { port });
    if (port !== undefined) told = undefined;
    for (const changed of followers) changed(port);
  };
  void look();
  return {
    get port() {
      return port;
    },
    follow(changed) {
      followers.push(changed);
      if (port !== undefined) changed(port);
    },
    close() {
      isClosed = true;
      cancel();
    },
  };
}

/** A port out of what a file holds or a command prints: a number alone, in its first line; otherwise what is wrong. */
export function readPort(text: string): number | string {
  const line = text
    .trim()
    .split(/[\r\n]/, 1)[0]!
    .trim();
  // As VPN programs write it while there is none.
  if (line === "" || line === "0") return "there is none now";
  const port = /^\d{1,5}$/.test(line) ? Number(line) : 0;
  return port > 0 && port < 65_536 ? port : `expected a port, got ${JSON.stringify(line.slice(0, 40))}`;
}
