import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { ReachSettings } from "./contract.ts";

/** A port that another program, such as a VPN client, has opened for this machine. It can change. */
export interface ForwardedPort {
  /** Undefined while no port is forwarded. */
  readonly port: number | undefined;
  /** Calls `changed` with the present port, if any, and at every change. */
  onChange(changed: (port: number | undefined) => void): void;
  close(): void;
}

/** Interval of file reads. Peers cannot connect while a changed port is unknown. */
const FILE_MS = 5_000;
/** Interval of command runs; documented with the setting `port-command`. */
const COMMAND_MS = 60_000;
const COMMAND_TIMEOUT_MS = 20_000;
/** Enough for a port number and white space. */
const MAX_BYTES = 1024;
/** Consecutive reads without a port until the port counts as gone: a file that is being written is empty for a moment. */
const MISSING_READS = 2;

/** Reads the port from a file, or from the output of a user's command, repeatedly. The file is used if both are configured. */
export function followForwardedPort(
  { files, clock, surroundings }: Pick<Runtime, "files" | "clock" | "surroundings">,
  { portFile, portCommand }: Pick<ReachSettings, "portFile" | "portCommand">,
  log: Log,
): ForwardedPort {
  const followers: ((port: number | undefined) => void)[] = [];
  const isFile = portFile !== "";
  let port: number | undefined;
  let loggedProblem: string | undefined;
  let missing = 0;
  let isClosed = false;
  let cancel = () => {};
  const read = async () => {
    if (!isFile) return surroundings.run(portCommand, COMMAND_TIMEOUT_MS);
    const bytes = await files.read(portFile, MAX_BYTES);
    return bytes === undefined ? "" : decodeUtf8(bytes);
  };
  const logProblem = (problem: string) => {
    if (problem !== loggedProblem) log.warn("cannot read the forwarded port", { reason: problem });
    loggedProblem = problem;
  };
  const check = async () => {
    const found = await read().then(parsePort, (error: unknown) => messageOf(error));
    if (isClosed) return;
    cancel = clock.at(after(clock.now(), isFile ? FILE_MS : COMMAND_MS), () => void check());
    missing = typeof found === "number" ? 0 : missing + 1;
    const next = typeof found === "number" ? found : missing < MISSING_READS ? port : undefined;
    if (next === undefined) logProblem(String(found));
    if (next === port) return;
    port = next;
    if (port !== undefined) log.info("forwarded port", { port });
    if (port !== undefined) loggedProblem = undefined;
    for (const changed of followers) changed(port);
  };
  void check();
  return {
    get port() {
      return port;
    },
    onChange(changed) {
      followers.push(changed);
      if (port !== undefined) changed(port);
    },
    close() {
      isClosed = true;
      cancel();
    },
  };
}

/** Parses the first line of `text` as a port number. Returns the problem as a text if it is none. */
export function parsePort(text: string): number | string {
  const line = text
    .trim()
    .split(/[\r\n]/, 1)[0]!
    .trim();
  // VPN clients write this while no port is forwarded.
  if (line === "" || line === "0") return "no port is forwarded at the moment";
  const port = /^\d{1,5}$/.test(line) ? Number(line) : 0;
  return port > 0 && port < 65_536 ? port : `expected a port, got ${JSON.stringify(line.slice(0, 40))}`;
}
