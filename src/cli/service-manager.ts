import { spawn } from "node:child_process";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";

/** Reports the state of the engine to the service manager that started it. */
export interface ServiceManager {
  /** The engine serves players. Starts the watchdog. */
  ready(): void;
  close(): void;
}

/**
 * Returns the reports to systemd (sd_notify(3), units of `Type=notify` with `NotifyAccess=all`); without a service manager they do
 * nothing. `NOTIFY_SOCKET` is a datagram socket of the file system, which no runtime can open, so the program `systemd-notify` sends
 * the reports. With `WatchdogSec`, a report follows at half of that interval: if the event loop hangs, systemd restarts the engine.
 */
export function serviceManager(
  environment: Readonly<Record<string, string | undefined>>,
  log: Log,
): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog } = environment;
  if (!socket) return { ready() {}, close() {} };
  const notify = (state: string) => {
    const child = spawn("systemd-notify", [`--pid=${process.pid}`, state], {
      env: environment,
      stdio: "ignore",
    });
    child.on("error", (error) => log.warn("cannot report to systemd", { state, reason: messageOf(error) }));
  };
  const intervalMs = Number(watchdog ?? 0) / 2000;
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    ready() {
      notify("READY=1");
      if (!(intervalMs >= 1) || timer !== undefined) return;
      timer = setInterval(() => notify("WATCHDOG=1"), intervalMs);
      timer.unref();
    },
    close() {
      clearInterval(timer);
      notify("STOPPING=1");
    },
  };
}

/** Descriptor of the first passed socket: `SD_LISTEN_FDS_START`. */
const FIRST_SOCKET = 3;

/**
 * Returns the descriptor of the socket on which systemd listens for this process (sd_listen_fds(3)); undefined if there is none. Throws
 * `bad_configuration` if there are several.
 */
export function passedSocket({
  LISTEN_PID: pid,
  LISTEN_FDS: count,
}: Readonly<Record<string, string | undefined>>): number | undefined {
  if (pid !== String(process.pid) || !(Number(count) > 0)) return undefined;
  if (count === "1") return FIRST_SOCKET;
  throw new SluiceError(
    "bad_configuration",
    `systemd passes ${Number(count)} sockets, but the engine uses one. Keep one ListenStream= in the socket unit.`,
  );
}
