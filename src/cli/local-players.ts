import { spawn } from "node:child_process";
import { once } from "node:events";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { installedPlayers } from "./players.ts";

/** A media player on this host, as `get_available_players` lists it (interface: Player). */
export interface LocalPlayer {
  readonly id: string;
  readonly type: "proxy";
  readonly protocol: null;
  readonly name: string;
  readonly icon: null;
}

/** Maximum number of open players: any device on the network may open them. */
const MAX_OPEN = 4;

/** The media players of this host, for other devices. */
export interface LocalPlayers {
  /** Lists the installed players; empty if this host has no screen. */
  list(): Promise<readonly LocalPlayer[]>;
  /** Opens `url` in the player `id`; -1 means the first. Rejects with `unknown_player` or `too_many`. */
  open(id: string, url: string): Promise<void>;
  /** Terminates all opened players. */
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
        throw new SluiceError("unknown_player", "see get_available_players for the players of this host");
      if (open.size >= MAX_OPEN) throw new SluiceError("too_many", `${MAX_OPEN} players are already open`);
      // No shell is involved, and the URL cannot be parsed as an option: see `players.ts`.
      const child = spawn(player.program, [...player.args, url], { stdio: "ignore" });
      const end = () => void child.kill("SIGTERM");
      open.add(end);
      child.once("close", () => open.delete(end));
      try {
        await once(child, "spawn");
      } catch (error) {
        open.delete(end);
        throw new SluiceError("unknown_player", `cannot start ${player.name}: ${messageOf(error)}`);
      }
      log.info("opened a player", { player: player.name });
    },
    close() {
      for (const end of open) end();
    },
  };
}

/** On Linux these variables name the screen; other systems are assumed to have one. */
function hasScreen(environment: Readonly<Record<string, string | undefined>>, system: string): boolean {
  return system !== "linux" || Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY);
}
