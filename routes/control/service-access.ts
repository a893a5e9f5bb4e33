import { z } from "zod";
import { controlMethod } from "./method.ts";
import { bool, required } from "./params.ts";
import { okResult } from "./results.ts";

const settingsResult = z.object({
  allow_intranet_access: z.boolean(),
  allow_remote_access: z.boolean(),
  addresses: z
    .array(z.string())
    .describe(
      "Where other devices of the network find this engine; none while it listens for this host alone",
    ),
});

const switchParams = z.object({ value: required(bool).describe("1 lets them in, 0 refuses them") });

/** The access token, and who else is let in (interface: Authentication 2 to 4). */
export const accessMethods = [
  controlMethod({
    name: "get_api_access_token",
    summary: "The token that private methods ask for; told to this host only, and to no page of another site",
    isPublic: true,
    isRemote: false,
    isOpenToPages: false,
    params: z.object({}),
    result: z.object({ token: z.string().describe("64 hexadecimal digits") }),
    run: async (_, { library }) => ({ token: await library.access.token() }),
  }),
  controlMethod({
    name: "set_allow_remote_access",
    summary: "Lets addresses of the Internet in, or keeps them out",
    isPublic: false,
    isRemote: false,
    isOpenToPages: false,
    params: switchParams,
    result: okResult,
    async run({ value }, { library }) {
      await library.access.setAllowsRemote(value);
      return "ok";
    },
  }),
  controlMethod({
    name: "set_allow_intranet_access",
    summary: "Lets addresses of the same network in, or keeps them out",
    isPublic: false,
    isRemote: false,
    isOpenToPages: false,
    params: switchParams,
    result: okResult,
    async run({ value }, { library }) {
      await library.access.setAllowsIntranet(value);
      return "ok";
    },
  }),
  controlMethod({
    name: "get_server_settings",
    summary: "Who else is let in, and where they find this engine",
    isExtra: true,
    isPublic: false,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({}),
    result: settingsResult,
    run: async (_, { house, library: { access } }) => ({
      allow_intranet_access: access.allowsIntranet,
      allow_remote_access: access.allowsRemote,
      addresses: house.networkUrls?.() ?? [],
    }),
  }),
];
