import type { Engine } from "../engine/engine.ts";
import { confinementRows } from "../net/confined/self-test.ts";
import type { Diagnosis } from "../playback/diagnosis/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import { reachSettings } from "../settings/config.ts";
import type { Config } from "../settings/settings.ts";
import { machineRows } from "./machine-rows.ts";
import { settingRows } from "./setting-rows.ts";

/**
 * Diagnoses a running engine: machine, settings, peer network and playback. `runtime` is the one without proxy or interface
 * binding, which the leak test needs. `statReader`: see {@link settingRows}.
 */
export async function diagnose(
  runtime: Runtime,
  config: Config,
  engine: Pick<Engine, "diagnosis">,
  statReader?: string,
): Promise<Diagnosis> {
  const [inside, machine, { rows, streams }] = await Promise.all([
    confinementRows(runtime, reachSettings(config)),
    machineRows(runtime, config),
    engine.diagnosis(),
  ]);
  return { rows: [...inside, ...rows, ...machine, ...settingRows(config, statReader)], streams };
}
