import { spawn } from "node:child_process";
import { once } from "node:events";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { installedPlayers } from "./players.ts";

/** A program on this host that plays, as `get_available_players` lists it (interface: Player). */
export interface LocalPlayer {
  readonly id: string;
  readonly type: "proxy";
  readonly protocol: null;
  readonly name: string;
  readonly icon: null;
}

/** Anyone on the network may ask to play here: so many windows at once, and no more. */
const MAX_OPEN = 4;

/** The players of this host, as other devices see and use them. */
export interface LocalPlayers {
  /** Those that are installed; none where there is no screen to play on. */
  list(): Promise<readonly LocalPlayer[]>;
  /** Opens `url` in a player of the list, -1 for the first. Rejects with `unknown_player` or `too_many`. */
  open(id: string, url: string): Promise<void>;
  /** Ends what was opened. */
  close(): void;
}

/** Finds players on the `PATH` of `environment`. */
export function createLocalPlayers(
  environment: Readonly<Record<string, string | undefined>>,
  system: string,
  log: Log,
): LocalPlayers {
  const open = new Set<() => void>();
  const find = async () => (hasScreen(environment, system) ? installedPlayers(environment) : []);
  return {
    list: async () =>
      (await find()).map(({ name }) => ({ id: name, type: "proxy", protocol: null, name, icon: null })),
    async open(id, url) {
      const players = await find();
      const player = id === "-1" ? players[0] : players.find(({ name }) => name === id);
      if (!player)
        throw new SluiceError("unknown_player", "ask get_available_players for those of this host");
      if (open.size >= MAX_OPEN) throw new SluiceError("too_many", `${MAX_OPEN} players are open already`);
      // No shell, and nothing of the URL can be taken for an option: see `players.ts`.
      const child = spawn(player.program, [...player.args, url], { stdio: "ignore" });
      const end = () => void child.kill("SIGTERM");
      open.add(end);
      child.once("close", () => open.delete(end));
      try {
        await once(child, "spawn");
      } catch (error) {
        open.delete(end);
        throw new SluiceError("unknown_player", `${player.name} could not be started: ${messageOf(error)}`);
      }
      log.info("opened in a player", { player: player.name });
    },
    close() {
      for (const end of open) end();
    },
  };
}

/** Linux programs find their screen by these variables; elsewhere there is one. */
function hasScreen(environment: Readonly<Record<string, string | undefined>>, system: string): boolean {
  return system !== "linux" || Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY);
}
