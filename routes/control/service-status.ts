import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { isSameOrigin } from "../http/access.ts";
import type { RouteDependencies } from "../http/dependencies.ts";
import { engineMethod, OPEN, PUBLIC } from "./method.ts";
import { text } from "./params.ts";

/**
 * CHOICE(version): deployed clients switch features by this number, so it is the generation of the interface, not the
 * version of this program; `code` = major · 1,000,000 + minor · 10,000 + patch · 100.
 */
const INTERFACE_VERSION = { version: "3.2.11", code: 3_021_100 };

const versionResult = z.object({
  version: z.string().describe("The version of the interface"),
  code: z.int().describe("The version as a number: major · 1,000,000 + minor · 10,000 + patch · 100"),
  platform: z.enum(["linux", "win32", "android"]),
  engine: z.string().describe("The name of this program"),
  engine_version: z.string().describe("The version of this program"),
  device_id: z.string().optional().describe("With params=device-id, for same-origin pages and programs"),
});

function versionOf({ version, platform = "linux" }: RouteDependencies) {
  return { ...INTERFACE_VERSION, platform, engine: "Sluice", engine_version: version };
}

/** CHOICE(connected): connected means that a host of the Internet answered within 16 minutes, or that a peer is connected. */
function isConnected({ hasRemoteContact, engine }: RouteDependencies): boolean {
  if (hasRemoteContact?.()) return true;
  return engine.figures().transfers.some(({ figures }) => figures.connectedPeers > 0);
}

/** The status of the engine (interface: Service methods). */
export const statusMethods = [
  engineMethod({
    name: "get_status",
    summary: "Returns the version, and whether the playlist is loaded",
    ...OPEN,
    params: z.object({}),
    result: z.object({ playlist_loaded: z.boolean(), version: versionResult }),
    // The engine opens the store before it listens.
    run: async (_, { dependencies }) => ({ playlist_loaded: true, version: versionOf(dependencies) }),
  }),
  engineMethod({
    name: "get_network_connection_status",
    summary: "Returns whether a remote host has answered recently",
    ...OPEN,
    params: z.object({}),
    result: z.object({ connected: z.boolean() }),
    run: async (_, { dependencies }) => ({ connected: isConnected(dependencies) }),
  }),
];

/** The version and the identifier of this installation. */
export const versionMethods = [
  engineMethod({
    name: "get_version",
    summary: "Returns the version",
    ...OPEN,
    isExtra: true,
    params: z.object({ params: text.describe("device-id: the result includes device_id") }),
    result: versionResult,
    async run({ params }, { dependencies, context }) {
      // Pages of other sites could use the identifier to track the user.
      const includesDevice = params === "device-id" && isSameOrigin(context);
      return {
        ...versionOf(dependencies),
        device_id: includesDevice ? dependencies.deviceId : undefined,
      };
    },
  }),
  engineMethod({
    name: "get_public_user_key",
    summary: "Returns a permanent identifier of this installation",
    ...PUBLIC,
    isExtra: true,
    params: z.object({}),
    result: z.string(),
    async run(_, { dependencies }) {
      if (dependencies.deviceId === undefined)
        throw new SluiceError("unsupported_content", "this engine has no identifier");
      return dependencies.deviceId;
    },
  }),
];
