import { z } from "zod";
import { controlMethod, okResult, PRIVATE, PRIVATE_LOCAL } from "./method.ts";
import { bool, required } from "./params.ts";

const settingsResult = z.object({
  allow_intranet_access: z.boolean(),
  allow_remote_access: z.boolean(),
  addresses: z
    .array(z.string())
    .describe("The URLs at which other devices reach this engine; empty if it listens on loopback only"),
});

const switchParams = z.object({ value: required(bool).describe("1: allow; 0: refuse") });

/** The access token and the access switches (interface: Authentication 2 to 4). */
export const accessMethods = [
  controlMethod({
    name: "get_api_access_token",
    summary:
      "Returns the token that private methods require; only to this host, and to no page of another site",
    isPublic: true,
    isRemote: false,
    isCrossOrigin: false,
    params: z.object({}),
    result: z.object({ token: z.string().describe("64 hexadecimal digits") }),
    run: async (_, { library }) => ({ token: await library.access.token() }),
  }),
  controlMethod({
    name: "renew_api_access_token",
    summary: "Generates a new access token, and revokes the old one on all devices",
    isExtra: true,
    ...PRIVATE_LOCAL,
    params: z.object({}),
    result: z.object({ token: z.string().describe("64 hexadecimal digits") }),
    run: async (_, { library }) => ({ token: await library.access.renewToken() }),
  }),
  controlMethod({
    name: "set_allow_remote_access",
    summary: "Allows or refuses clients of the Internet",
    ...PRIVATE_LOCAL,
    params: switchParams,
    result: okResult,
    async run({ value }, { library }) {
      await library.access.setAllowsRemote(value);
      return "ok";
    },
  }),
  controlMethod({
    name: "set_allow_intranet_access",
    summary: "Allows or refuses clients of the same network",
    ...PRIVATE_LOCAL,
    params: switchParams,
    result: okResult,
    async run({ value }, { library }) {
      await library.access.setAllowsIntranet(value);
      return "ok";
    },
  }),
  controlMethod({
    name: "get_server_settings",
    summary: "Returns the access switches, and the URLs of this engine for other devices",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: settingsResult,
    run: async (_, { dependencies, library: { access } }) => ({
      allow_intranet_access: access.allowsIntranet,
      allow_remote_access: access.allowsRemote,
      addresses: dependencies.networkUrls?.() ?? [],
    }),
  }),
];
