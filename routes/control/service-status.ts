import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { isOwnPage } from "../access.ts";
import type { House } from "../house.ts";
import { versionOf } from "../version.ts";
import { houseMethod } from "./method.ts";
import { text } from "./params.ts";
import { versionResult } from "./results.ts";

const open = { isPublic: true, isRemote: true, isOpenToPages: true } as const;

/**
 * CHOICE(connected): whether there is a way to others: an address besides loopback, or peers that we are connected with all the same.
 * Both are true figures; neither says that the Internet answers.
 */
function isConnected({ hasNetwork, engine }: Pick<House, "hasNetwork" | "engine">): boolean {
  if (hasNetwork?.()) return true;
  return engine.figures().transfers.some(({ figures }) => figures.connectedPeers > 0);
}

/** How the engine is (interface: Service methods). */
export const statusMethods = [
  houseMethod({
    name: "get_status",
    summary: "Whether the playlist can be asked for, and the version",
    ...open,
    params: z.object({}),
    result: z.object({ playlist_loaded: z.boolean(), version: versionResult }),
    // The store is open before the interface is.
    run: async (_, { house }) => ({ playlist_loaded: true, version: versionOf(house) }),
  }),
  houseMethod({
    name: "get_network_connection_status",
    summary: "Whether this machine has a network",
    ...open,
    params: z.object({}),
    result: z.object({ connected: z.boolean() }),
    run: async (_, { house }) => ({ connected: isConnected(house) }),
  }),
];

/** What `/webui/api/service` answers besides: the version, and the name of this installation. */
export const versionMethods = [
  houseMethod({
    name: "get_version",
    summary: "The version",
    ...open,
    isExtra: true,
    params: z.object({ params: text.describe("device-id: the answer holds device_id as well") }),
    result: versionResult,
    async run({ params }, { house, context }) {
      // Pages of other sites could follow a user by it.
      const wantsDevice = params === "device-id" && isOwnPage(context);
      return { ...versionOf(house), device_id: wantsDevice ? house.deviceId : undefined };
    },
  }),
  houseMethod({
    name: "get_public_user_key",
    summary: "Digits that stay the same for this installation, for programs that tell engines apart",
    ...open,
    isOpenToPages: false,
    isExtra: true,
    params: z.object({}),
    result: z.string(),
    async run(_, { house }) {
      if (house.deviceId === undefined)
        throw new SluiceError("unsupported_content", "this engine has no key");
      return house.deviceId;
    },
  }),
];
