import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { clientNetworkOf } from "../http/access.ts";
import type { RouteDependencies, SettingsService } from "../http/dependencies.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { required, text } from "./params.ts";

/** Limit of one value: a long list of trackers. */
const MAX_VALUE_CHARACTERS = 16_384;

const settingResult = z.object({
  name: z.string().describe("The flag without dashes, such as http-port"),
  group: z.string(),
  help: z.string(),
  value: z
    .string()
    .nullable()
    .describe("As the user wrote it; null if the default applies or if it is a secret"),
  default: z.string(),
  expected: z.string().describe('Completes "expected …"'),
  values: z.array(z.string()).nullable().describe("All accepted values, if they are few"),
  is_secret: z.boolean(),
  source: z
    .enum(["flag", "variable", "file"])
    .nullable()
    .describe("A flag or variable overrides the config file; null if the default applies"),
  is_host_only: z.boolean().describe("Can be changed only from the engine's own computer"),
  is_live: z.boolean().describe("A change applies without a restart"),
});

const changes = z.record(z.string(), z.string().max(MAX_VALUE_CHARACTERS).nullable());

/** The settings of the engine: the same as its flags. */
export const settingsMethods = [
  controlMethod({
    name: "get_settings",
    summary: "Returns all settings with their values and the source of each value",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.object({
      settings: z.array(settingResult),
      file: z.string().nullable().describe("The config file; null for clients of other hosts"),
      needs_restart: z.boolean().describe("The engine runs with other values than the next start would"),
      problem: z.string().nullable().describe("Why the last restart with changed settings failed"),
      is_host: z.boolean().describe("The caller may change host-only settings"),
    }),
    async run(_, { dependencies, context }) {
      const isHost = clientNetworkOf(context.env.origin) === "local";
      const { settings, file, needsRestart, problem } = await serviceOf(dependencies).list();
      return {
        settings: settings.map(
          ({ defaultText, isSecret, from, isHostOnly, isLive, value, values, ...rest }) => ({
            ...rest,
            value: value ?? null,
            default: defaultText,
            values: values ?? null,
            is_secret: isSecret,
            source: from ?? null,
            is_host_only: isHostOnly,
            is_live: isLive,
          }),
        ),
        file: isHost ? (file ?? null) : null,
        needs_restart: needsRestart,
        problem: problem ?? null,
        is_host: isHost,
      };
    },
  }),
  controlMethod({
    name: "set_settings",
    summary:
      "Writes settings to the config file; those with is_live apply at once, the others after restart_engine or the next start",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      values: required(text).describe(
        'A JSON object of names and texts, such as {"cache-limit":"50GB"}; null restores the default',
      ),
    }),
    result: okResult,
    async run({ values }, { dependencies, context }) {
      const isHost = clientNetworkOf(context.env.origin) === "local";
      await serviceOf(dependencies).change(readChanges(values), { isHost });
      return "ok";
    },
  }),
  controlMethod({
    name: "restart_engine",
    summary: "Restarts the engine with the present settings; playback is interrupted",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: okResult,
    async run(_, { dependencies }) {
      serviceOf(dependencies).restart();
      return "ok";
    },
  }),
];

function serviceOf({ settings }: RouteDependencies): SettingsService {
  if (settings !== undefined) return settings;
  throw new SluiceError("bad_configuration", "settings can be changed only while sluice serve runs");
}

function readChanges(json: string): ReadonlyMap<string, string | null> {
  const problem = "values: expected a JSON object of setting names and texts";
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    throw new SluiceError("bad_parameter", problem, { cause: error });
  }
  const read = changes.safeParse(parsed);
  if (!read.success) throw new SluiceError("bad_parameter", problem);
  return new Map(Object.entries(read.data));
}
