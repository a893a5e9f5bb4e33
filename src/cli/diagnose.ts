import type { Diagnosis } from "../engine/diagnosis/contract.ts";
import type { Engine } from "../engine/engine.ts";
import { insideRows } from "../engine/reach/inside/self-test.ts";
import { reachSettings } from "../reach-settings.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { machineRows } from "./machine-rows.ts";
import { settingRows } from "./setting-rows.ts";

/** Everything that can be told of a running engine: the machine, the settings, how peers are found and reached, what plays.
 * `runtime` is the machine as it is: whether traffic stays inside is tried from outside. */
export async function diagnose(
  runtime: Runtime,
  config: Config,
  engine: Pick<Engine, "diagnosis">,
): Promise<Diagnosis> {
  const [inside, machine, { rows, streams }] = await Promise.all([
    insideRows(runtime, reachSettings(config)),
    machineRows(runtime, config),
    engine.diagnosis(),
  ]);
  return { rows: [...inside, ...rows, ...machine, ...settingRows(config)], streams };
}
