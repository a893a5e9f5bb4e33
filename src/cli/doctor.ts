import { diagnosisAnswer, type PresentedDiagnosis, presentDiagnosis } from "../../routes/diagnosis.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import { visibleAddressRow } from "../net/confined/visible-address.ts";
import type { Diagnosis } from "../playback/diagnosis/contract.ts";
import { reachSettings } from "../settings/config.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { diagnose } from "./diagnose.ts";
import { doctorText } from "./doctor-text.ts";
import { openService } from "./service.ts";
import { askEngine, urlOf } from "./status.ts";

/** The DHT, the router and a proxy answer within this time or not at all. */
const TRIAL_MS = 8_000;
/** A running engine answers at once, except for the time of its disk test. */
const ANSWER_MS = 20_000;

/**
 * `sluice doctor`: shows the diagnosis of the running engine, or starts a temporary engine if none runs. Resolves to the exit
 * code: 0 if no check failed.
 */
export async function doctor(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  if (args.operands.length > 0) throw usageError("doctor: takes no operands");
  const { stdout, stderr } = context;
  const running = await diagnosisOf(config);
  if (!running)
    stderr.write(`No engine answers at ${urlOf(config)}. Testing this machine for ${TRIAL_MS / 1000} s …\n`);
  const found = running ?? presentDiagnosis(await tryAlone(context, config, log));
  const diagnosis = args.flags.has("seen") ? await withSeen(context, config, found) : found;
  if (args.flags.has("json")) stdout.write(`${JSON.stringify(diagnosis, undefined, 2)}\n`);
  else stdout.write(doctorText(diagnosis, stdout.isTTY === true && config.logColors !== "never"));
  return diagnosis.rows.some(({ level }) => level === "fail") ? 1 : 0;
}

/** Adds the row of `--seen`, whose test reveals this machine to DHT nodes. */
async function withSeen(
  { runtime }: Context,
  config: Config,
  found: PresentedDiagnosis,
): Promise<PresentedDiagnosis> {
  const row = await visibleAddressRow(runtime, reachSettings(config), config.dhtNodes);
  return { ...found, rows: [...presentDiagnosis({ rows: [row], streams: [] }).rows, ...found.rows] };
}

/** Returns the diagnosis of the running engine; undefined if none runs. */
async function diagnosisOf(config: Config): Promise<PresentedDiagnosis | undefined> {
  const answer = await askEngine(config, "api/diagnosis", ANSWER_MS);
  const read = diagnosisAnswer.safeParse(answer?.json);
  return read.success ? read.data.result : undefined;
}

/** Starts an engine without database and cache, waits while it finds peers, and returns its diagnosis. */
async function tryAlone(context: Context, config: Config, log: Log): Promise<Diagnosis> {
  const { runtime } = context;
  const alone = { ...config, store: "memory", cache: undefined, cacheLimit: 0, liveLimit: 0 } as const;
  let service: Awaited<ReturnType<typeof openService>>;
  try {
    service = await openService({ ...context, config: alone, log });
  } catch (error) {
    const nothing = { diagnosis: async (): Promise<Diagnosis> => ({ rows: [], streams: [] }) };
    const { rows } = await diagnose(runtime, config, nothing);
    return { rows: [{ name: "Engine", level: "fail", text: messageOf(error) }, ...rows], streams: [] };
  }
  try {
    const { clock } = runtime;
    // The timers of the engine do not keep the process alive.
    const staying = setInterval(() => {}, TRIAL_MS);
    await new Promise<void>((resolve) => clock.at(after(clock.now(), TRIAL_MS), resolve));
    clearInterval(staying);
    return await diagnose(runtime, config, service.engine);
  } finally {
    await service.close();
  }
}
