import type { Player, PlayerClient, PlayerCommand, Players } from "../../routes/http/dependencies.ts";
import type { AccessControl } from "../accounts/account-contract.ts";
import { SluiceError } from "../base/errors.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Device } from "../devices/contract.ts";
import type { FoundDevices } from "../devices/found-devices.ts";
import { DevicePlayer, type DevicePlayerDependencies } from "./device-player.ts";
import type { LocalPlayers } from "./local-players.ts";

/** Devices that are controlled at the same time; the connection to the one that was used least recently is closed. */
const MAX_PLAYING = 16;

/** Dependencies of {@link createPlayers}. */
export interface PlayersDependencies extends DevicePlayerDependencies {
  readonly local: LocalPlayers;
  /** Undefined if casting is off. */
  readonly devices: FoundDevices | undefined;
  /** True if clients of the network may open players on this host. */
  readonly isLocalForNetwork: boolean;
}

/**
 * The players that clients can choose: programs of this host, for clients that may open a window on it, and devices of the local network.
 *
 * CHOICE(player-types): a program of this host is `proxy`, a device `aircast`; only a Chromecast has a protocol, because the interface
 * names no other ones.
 */
export function createPlayers(dependencies: PlayersDependencies): Players & { close(): void } {
  const { local, devices, isLocalForNetwork } = dependencies;
  const playing = new Map<string, DevicePlayer>();
  const mayOpenWindow = ({ isLocal }: PlayerClient) => isLocal || isLocalForNetwork;
  const playerOf = async (id: string): Promise<DevicePlayer | undefined> => {
    const known = playing.get(id);
    const device =
      devices?.find(id) ?? known?.device ?? (await devices?.list())?.find((each) => each.id === id);
    if (device === undefined) return undefined;
    // A device that has moved to another address or port is found again under the same id.
    const player = known?.device === device ? known : new DevicePlayer(device, dependencies);
    if (known !== player) known?.close();
    playing.delete(id);
    playing.set(id, player);
    const before = [...playing.values()];
    trimOldest(playing, MAX_PLAYING);
    if (playing.size < before.length) before[0]!.close();
    return player;
  };
  const required = async (id: string): Promise<DevicePlayer> => {
    const player = await playerOf(id);
    if (player) return player;
    throw new SluiceError(
      "unknown_player",
      "no device of the network has this id; see get_available_players",
    );
  };
  return {
    async list(client, options) {
      const [programs, found] = await Promise.all([
        mayOpenWindow(client) ? local.list() : [],
        devices?.list(options) ?? [],
      ]);
      return [...programs, ...found.map(playerEntry)];
    },
    async open(id, media, client) {
      const device = await playerOf(id);
      if (device) return device.play(media, client);
      if (!mayOpenWindow(client))
        throw new SluiceError(
          "unknown_player",
          "clients of the network may not open players on this computer",
        );
      return local.open(id, media.url);
    },
    async control(id, command) {
      await run(await required(id), command);
    },
    async status(id) {
      return (await required(id)).status();
    },
    close() {
      for (const player of playing.values()) player.close();
      devices?.close();
      local.close();
    },
  };
}

function run(player: DevicePlayer, command: PlayerCommand): Promise<void> {
  switch (command.kind) {
    case "play":
      return player.command((control) => control.resume());
    case "pause":
      return player.command((control) => control.pause());
    case "stop":
      return player.stop();
    case "seek":
      return player.command((control) => control.seek(command.seconds));
    case "volume":
      return player.command((control) => control.setVolume(command.volume));
  }
}

function playerEntry({ id, kind, name, iconUrl }: Device): Player {
  const protocol = kind === "chromecast" ? "chromecast" : null;
  return { id, type: "aircast", protocol, name, icon: iconUrl ?? null };
}

/** Returns the port at which a device fetches content. Throws `player_failed` with the setting that prevents it. */
export function portForDevices(port: number | undefined, { allowsIntranet }: AccessControl): number {
  if (port === undefined)
    throw new SluiceError(
      "player_failed",
      "devices cannot reach this engine; let it listen on its network with --host ::",
    );
  if (!allowsIntranet)
    throw new SluiceError(
      "player_failed",
      "devices may not use this engine; allow access from the local network",
    );
  return port;
}
